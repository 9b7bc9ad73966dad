"""Followers of topics: what becomes of a partition that is taken away, and of errors of Kafka."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import IllegalStateError, TopicAuthorizationFailedError

from shadowtime.shared.errors import BusError
from shadowtime.shared.streaming.kafka.topic_follower import GroupFollower, TopicFollower
from shadowtime.shared.streaming.settings import Settings

KEPT, LOST = TopicPartition("scores", 0), TopicPartition("scores", 1)


class Rebalanced:
    """A consumer that loses a partition while it is asked for positions; its errors are aiokafka's."""

    def __init__(self) -> None:
        self._assigned = [KEPT, LOST]
        self.sought: dict[TopicPartition, int] = {}

    def assignment(self) -> list[TopicPartition]:
        return self._assigned

    async def position(self, place: TopicPartition) -> int:
        if place == LOST:
            self._assigned = [KEPT]
            raise IllegalStateError(f"Partition {place} is not assigned")
        return 5

    def highwater(self, place: TopicPartition) -> int:
        assert place in self._assigned, "Partition is not assigned"
        return 7

    async def committed(self, place: TopicPartition) -> int:
        self._assigned = [KEPT]
        return 3

    def seek(self, place: TopicPartition, offset: int) -> None:
        if place not in self._assigned:
            raise IllegalStateError(f"Partition {place} is not assigned")
        self.sought[place] = offset


def test_positions_leave_out_a_partition_that_is_taken_away_meanwhile() -> None:
    async def run() -> None:
        follower = GroupFollower(Settings(), "scores", "metrics")
        own = follower._consumer  # noqa: SLF001
        follower._consumer = Rebalanced()  # noqa: SLF001
        assert await follower.positions() == {KEPT: 5}
        assert follower.lag({KEPT: 5, LOST: 3}) == 2
        follower._consumer = again = Rebalanced()  # noqa: SLF001
        await follower.go_back()
        assert again.sought == {KEPT: 3}
        await own.stop()

    asyncio.run(run())


def test_a_refusal_during_the_reading_is_an_error_of_the_bus() -> None:
    class Refused(TopicFollower):
        async def next_batch(self, most: int, seconds: float) -> Sequence[Any]:
            raise TopicAuthorizationFailedError("decisions")

    async def run() -> None:
        follower = Refused(Settings(), "decisions")
        with pytest.raises(BusError, match=r"^Kafka at 127.0.0.1:9092 cannot be used: .*decisions"):
            await follower.messages()
        await follower._consumer.stop()  # noqa: SLF001

    asyncio.run(run())
