"""The servers that tests and `make stack` run.

>>> [server.name for server in SERVERS]
['kafka', 'redis', 'victoria-metrics']
"""

from stack.kafka_server import Kafka
from stack.redis_server import Redis
from stack.server import Server, ServerError
from stack.victoria_metrics import VictoriaMetrics

SERVERS: tuple[type[Server], ...] = (Kafka, Redis, VictoriaMetrics)

__all__ = ["SERVERS", "Kafka", "Redis", "Server", "ServerError", "VictoriaMetrics"]
