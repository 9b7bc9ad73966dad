"""Tests of what a follower stores: events in a journal, and its whole state only now and then."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from shadowtime.services.follower.cluster.live_source import Opening, SourceLoad
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.io.follower import STORE, Follower
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.topics import JOBS
from shadowtime.shared.streaming.kafka.clients import partition_of
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Kafka, Redis

OPENED = ClusterOpened(time=0, cluster="counted", processors=1, mode="recorded", wait_bound="none")


class Counted:
    """A source of an instant for each second; it can be killed before it has answered."""

    name, takes = "counted", frozenset[str]()

    def __init__(self, last: int, *, seen_once: bool = False, killed_at: int | None = None) -> None:
        self.load, self.names, self.seen_once = SourceLoad(), NameTable(Names(None)), seen_once
        self.last, self.killed_at = last, killed_at
        self.reached, self.heard, self.snapshots, self.repeated = 0, 0, 0, 0

    @property
    def over(self) -> bool:
        return self.reached >= self.last

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        return Opening(1, None, 0, 0)

    def next_time(self) -> int | None:
        return self.reached + 1 if self.reached < self.heard else None

    def next_instant(self) -> Sequence[Event]:
        self.reached += 1
        return [SchedulingPoint(time=self.reached)]

    async def listen(self) -> None:
        if self.reached == self.killed_at:
            raise KeyboardInterrupt
        self.heard += 1

    async def close(self) -> None: ...

    def routes(self) -> Sequence[Any]:
        return ()

    def published(self, event: Event) -> None:
        self.reached = self.heard = event.time
        self.repeated += 1

    def snapshot(self) -> Any:
        self.snapshots += 1
        return self.reached

    def restore(self, state: Any) -> None:
        self.reached = self.heard = state


async def followed(run: str, source: Counted, settings: Settings) -> None:
    client = connect(settings)
    try:
        await Follower(run, OPENED, cast("Any", source), RedisStore(client, STORE), settings).follow()
    finally:
        await client.aclose()


async def told(run: str, settings: Settings) -> list[int]:
    partition = partition_of(run, settings.partitions)
    log = [Envelope.from_bytes(r.value) async for r in read_log(settings, JOBS, partition) if r.key == run.encode()]
    times = {envelope.sequence: envelope.event.time for envelope in log}  # what was in the outbox is delivered twice
    return list(times.values())


def test_a_commit_stores_its_events_and_not_the_whole_state(kafka: Kafka, empty_redis: Redis) -> None:
    settings = Settings(kafka_bootstrap=kafka.address, redis_url=empty_redis.url)

    async def run() -> None:
        source = Counted(100)
        await followed("counted/many", source, settings)
        assert source.snapshots <= 3
        assert await told("counted/many", settings) == list(range(101))
        once = Counted(20, seen_once=True)
        await followed("counted/once", once, settings)
        assert once.snapshots == 21  # one with the opening, one for each second

    asyncio.run(run())


def test_after_a_kill_the_journal_counts_as_published(kafka: Kafka, empty_redis: Redis) -> None:
    settings = Settings(kafka_bootstrap=kafka.address, redis_url=empty_redis.url)
    killed, after = Counted(100, killed_at=50), Counted(100)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(followed("counted/killed", killed, settings))
    asyncio.run(followed("counted/killed", after, settings))
    assert after.repeated == 50
    assert asyncio.run(told("counted/killed", settings)) == list(range(101))
