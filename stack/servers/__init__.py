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
    from shadowtime.stack.servers.ports import HOST, is_free
    from shadowtime.stack.servers.private_file import give_to, write_private
    from shadowtime.stack.servers.redis_server import Redis
    from shadowtime.stack.servers.server import OWNER_ONLY, Server, ServerError, open_log
    from shadowtime.stack.servers.servers import SERVERS
    from shadowtime.stack.servers.victoria_metrics import VictoriaMetrics
    from shadowtime.stack.servers.worker import OURS, LivePage, Worker

__all__ = [
    "HOST",
    "OURS",
    "OWNER_ONLY",
    "SERVERS",
    "Access",
    "Kafka",
    "LivePage",
    "Redis",
    "Server",
    "ServerError",
    "VictoriaMetrics",
    "Worker",
    "certify",
    "fetch_jars",
    "give_to",
    "grant",
    "is_free",
    "jar_folder",
    "open_log",
    "run",
    "sha256",
    "write_private",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "access": ("Access",),
        "certificates": ("certify",),
        "checksums": ("sha256",),
        "commands": ("run",),
        "jars": (
            "fetch_jars",
            "jar_folder",
        ),
        "kafka_access": ("grant",),
        "kafka_server": ("Kafka",),
        "ports": (
            "HOST",
            "is_free",
        ),
        "private_file": (
            "give_to",
            "write_private",
        ),
        "redis_server": ("Redis",),
        "server": (
            "OWNER_ONLY",
            "Server",
            "ServerError",
            "open_log",
        ),
        "servers": ("SERVERS",),
        "victoria_metrics": ("VictoriaMetrics",),
        "worker": (
            "LivePage",
            "OURS",
            "Worker",
        ),
    },
)
