"""Servers that ask who one is, with all roles, as `shadowtime stack up --secure` has them; for tests."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.streaming.kafka.topic_admin import prepare_topics
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.roles import ADMIN, SUBSCRIBER
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import SERVERS, Kafka, Redis, VictoriaMetrics
from tests.support.patience import PATIENCE
from tests.support.real_servers import require

FLOW = tuple(stage.name for stage in STAGES)


@dataclass(frozen=True)
class Guarded:
    """Running servers; `folder` holds the settings file of each role."""

    plan: StackPlan
    kafka: Kafka
    redis: Redis
    store: VictoriaMetrics

    @property
    def folder(self) -> Path:
        return self.plan.access.folder

    def settings(self, role: str = SUBSCRIBER) -> Settings:
        values = self.plan.role_settings()[role]
        return Settings.model_validate(values | {"connect_seconds": str(PATIENCE)})


@contextmanager
def guarded(folder: Path, *, tls: bool = True) -> Iterator[Guarded]:
    """Start the three servers with every role and all topics."""
    for server in SERVERS:
        require(server)
    ports = (free_port(), free_port(), free_port())
    plan = StackPlan(str(folder), FLOW, 1, *ports, secure=True, tls=tls)
    plan.access.prepare()
    plan.access.write_settings(plan.role_settings())
    plan.write_scrape_config()
    kafka, redis, store = plan.make_servers()
    assert isinstance(kafka, Kafka)
    assert isinstance(redis, Redis)
    assert isinstance(store, VictoriaMetrics)
    with kafka, redis, store:
        kafka.grant()
        made = Guarded(plan, kafka, redis, store)
        asyncio.run(prepare_topics(made.settings(ADMIN)))
        yield made
