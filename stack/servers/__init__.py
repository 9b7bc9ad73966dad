"""Real servers as child processes: Kafka, Redis, VictoriaMetrics, with ports, rights and certificates."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.stack.servers.access import Access
    from shadowtime.stack.servers.certificates import certify
    from shadowtime.stack.servers.checksums import sha256
    from shadowtime.stack.servers.commands import run
    from shadowtime.stack.servers.jars import fetch_jars, jar_folder
    from shadowtime.stack.servers.kafka_access import grant
    from shadowtime.stack.servers.kafka_server import Kafka
    from shadowtime.stack.servers.ports import HOST, is_free, reserve
    from shadowtime.stack.servers.redis_server import Redis
    from shadowtime.stack.servers.server import OWNER_ONLY, Server, ServerError, open_log
    from shadowtime.stack.servers.servers import SERVERS
    from shadowtime.stack.servers.victoria_metrics import VictoriaMetrics
    from shadowtime.stack.servers.worker import ENOUGH_MB, MEMORY, OURS, LivePageProcess, Worker

__getattr__ = lazy_exports(__name__)
