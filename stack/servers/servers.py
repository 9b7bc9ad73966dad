"""The servers that tests and `shadowtime stack up` run.

>>> [server.name for server in SERVERS]
['kafka', 'redis', 'victoria-metrics']
"""

from shadowtime.stack.servers.kafka_server import Kafka
from shadowtime.stack.servers.redis_server import Redis
from shadowtime.stack.servers.server import Server
from shadowtime.stack.servers.victoria_metrics import VictoriaMetrics

SERVERS: tuple[type[Server], ...] = (Kafka, Redis, VictoriaMetrics)
