"""Replays of one process share their clients, and each hears its own."""

import asyncio
from typing import Any

from shadowtime.shared.stages.topics import DECISIONS, JOBS
from shadowtime.shared.streaming.kafka.batch_sender import send_alone
from shadowtime.shared.streaming.kafka.shared_clients import PartitionFeed, RunClients, released, shared
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka


async def next_values(feed: PartitionFeed, key: bytes, count: int) -> list[bytes]:
    found: list[bytes] = []
    async for record in feed.records(key):
        found.append(record.value)
        if len(found) == count:
            break
    return found


def test_each_run_hears_its_own_in_order_and_the_last_one_closes(kafka: Kafka) -> None:
    settings = Settings(kafka_bootstrap=kafka.address)

    async def work() -> None:
        one, other = shared(settings), shared(settings)
        assert one is other
        await asyncio.gather(one.start(), other.start())
        feed = await one.feed(0)
        assert await other.feed(0) is feed
        for key in (b"heard-a", b"heard-b"):
            feed.expect(key)
        values = [b"%d" % number for number in range(60)]
        for key in (b"heard-b", b"heard-c", b"heard-a"):
            under_way: list[Any] = [*await one.sender.send(DECISIONS, 0, key, [(value, None) for value in values])]
            under_way += await one.sender.send(DECISIONS, 0, key, [(b"few", 1_000)])
            under_way.append(await send_alone(one.sender.producer, DECISIONS, 0, key, (b"alone", None)))
            for delivery in under_way:
                await delivery
        for key in (b"heard-a", b"heard-b"):
            assert await next_values(feed, key, len(values) + 2) == [*values, b"few", b"alone"]
        await released(one)
        closed = [other.broken]
        await released(other)
        assert [*closed, other.broken] == [False, True]
        new = shared(settings)
        assert new is not other
        await released(new)

    asyncio.run(work())


def test_what_was_published_of_a_run_is_found_also_by_who_has_read_the_log_before(kafka: Kafka) -> None:
    settings = Settings(kafka_bootstrap=kafka.address)

    async def work() -> None:
        clients = RunClients(settings)
        await clients.start()
        try:
            for told in (1, 2, 3):
                for delivery in await clients.sender.send(JOBS, 0, b"told", [(b"%d" % told, None)]):
                    await delivery
                assert not await clients.published(b"never-told", 0)
                found = await clients.published(b"told", 0)
                assert [record.value for record in found] == [b"%d" % number for number in range(1, told + 1)]
        finally:
            await clients.stop()

    asyncio.run(work())
