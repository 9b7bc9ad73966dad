"""Tests of what no shadow may do: stand still for a job whose end is not known."""

import asyncio
import json
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition

from shadowtime.services.shadows.io.pages import health_of
from shadowtime.services.shadows.io.source import ShadowSource
from shadowtime.services.shadows.machine.machine import PATIENCE, TwinMachine
from shadowtime.services.shadows.options import ShadowOf
from shadowtime.shared.errors import BusError, FollowError
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.messages.reasons import FitsNow
from shadowtime.shared.streaming.settings import Settings

POOL = Pool(name="all", processors=4, memory=8, gpus=2)
OPENED = ClusterOpened(time=0, cluster="mine", processors=4, mode="recorded", wait_bound="none", pools=(POOL,))


def submitted(number: int, time: int = 0) -> JobSubmitted:
    return JobSubmitted(
        time=time, job_number=number, requested_processors=4, requested_time=500, memory=8, gpus=2, pool=0
    )


class Driven:
    """A twin that starts each job as soon as its resources are free, and is restored at each step."""

    def __init__(self, *, exact: bool) -> None:
        self.exact, self.log = exact, list[Event]()
        self.twin = TwinMachine(OPENED, exact=exact)

    def hear(self, *events: Event) -> None:
        for event in events:
            self.twin.receive(event)
            self._play()

    def _play(self) -> None:
        while self.twin.next_time() is not None or self.twin.deciding:
            state = json.loads(json.dumps(self.twin.snapshot()))
            self.twin = TwinMachine(OPENED, exact=self.exact)
            self.twin.restore(state)
            if not self.twin.deciding:
                self.log += self.twin.next_instant()
                continue
            rooms = self.twin._machine._resources.free[0]  # noqa: SLF001
            waiting = list(self.twin._machine.waiting)  # noqa: SLF001
            starts = tuple(
                Start(job_number=n, processors=4, reason=FitsNow())
                for n in waiting[:1]
                if rooms[0] >= 4 and rooms[1] >= 8
            )
            for number in waiting:
                self.twin.predict(number, 100.0)
            time = max(event.time for event in self.log)
            self.twin.apply(Decided(time=time, starts=starts))

    def of(self, *kinds: type) -> list[Any]:
        return [event for event in self.log if isinstance(event, kinds)]


def test_a_job_that_is_presumed_to_be_over_does_not_block_memory_and_gpus() -> None:
    """Job 1 waits on the cluster, and both jobs need all memory: the second one waited for ever."""
    shadow = Driven(exact=False)
    shadow.hear(submitted(1), submitted(2), SchedulingPoint(time=0), SchedulingPoint(time=150))
    assert [(event.job_number, event.time) for event in shadow.of(JobStarted)] == [(1, 0), (2, 100)]
    assert [event.job_number for event in shadow.of(JobSuspended)] == [1]
    (lent,) = shadow.of(CapacityChanged)
    assert (lent.time, lent.processors, lent.memory, lent.gpus) == (100, 4, 16, 4)
    shadow.hear(CapacityChanged(time=160, processors=4, memory=4, gpus=0), SchedulingPoint(time=160))
    assert (shadow.of(CapacityChanged)[-1].memory, shadow.of(CapacityChanged)[-1].gpus) == (12, 2)
    start = JobStarted(time=200, job_number=1, processors=4, limit=500)
    end = JobEnded(time=240, job_number=1, run_time=40, outcome="completed")
    shadow.hear(start, SchedulingPoint(time=200), end, SchedulingPoint(time=240))
    last = shadow.of(CapacityChanged)[-1]
    assert last.time == shadow.of(JobEnded)[-1].time
    in_use = {event.job_number for event in shadow.of(JobSuspended)} - {
        event.job_number for event in shadow.of(JobEnded)
    }
    assert (last.memory, last.gpus) == (4 + 8 * len(in_use), 2 * len(in_use))


def followed(shadow: Driven) -> SimpleNamespace:
    source = ShadowSource.__new__(ShadowSource)
    source._twin = shadow.twin  # noqa: SLF001
    return SimpleNamespace(run="mine/shadow/easy", sequence=3, source=source, behind=7_200.0, failure=lambda: None)


def test_an_exact_shadow_names_the_job_that_it_waits_for_and_gives_it_up() -> None:
    shadow = Driven(exact=True)
    shadow.hear(submitted(1), submitted(2), SchedulingPoint(time=0), SchedulingPoint(time=7_200))
    assert health_of([cast("Any", followed(shadow))])[0], "jobs really wait for hours"
    shadow.hear(SchedulingPoint(time=90_000))
    assert shadow.twin.waits_for == (1, 0)
    assert [event.job_number for event in shadow.of(JobStarted)] == [1]
    well, page = health_of([cast("Any", followed(shadow))])
    assert not well
    assert "waits for job 1: it started in the shadow 25.0 h ago, and not yet on the cluster" in str(page)

    shadow.hear(SchedulingPoint(time=PATIENCE - 1))
    assert len(shadow.of(JobStarted)) == 1
    shadow.hear(SchedulingPoint(time=PATIENCE))
    assert [(event.job_number, event.time) for event in shadow.of(JobStarted)] == [(1, 0), (2, 100)]
    assert shadow.twin.waits_for == (2, 100)
    shadow.hear(JobWithdrawn(time=PATIENCE + 5, job_number=2), SchedulingPoint(time=PATIENCE + 5))
    assert shadow.twin.waits_for is None


def test_a_shadow_does_not_wait_in_silence_for_a_kafka_that_is_away() -> None:
    class Silent:
        answered = time.time()

        async def getmany(self, *places: TopicPartition, **_: int) -> dict[TopicPartition, list[Any]]:
            return {}

        def last_poll_timestamp(self, place: TopicPartition) -> float:
            return 1_000 * self.answered

    source = ShadowSource.__new__(ShadowSource)
    source._consumer = consumer = Silent()  # noqa: SLF001
    source._placed_at = 0.0  # noqa: SLF001
    place = TopicPartition("jobs", 0)
    assert asyncio.run(source._poll(place)) == ()  # noqa: SLF001
    consumer.answered -= 95
    with pytest.raises(BusError, match="Kafka has not answered for 95 s"):  # the follower reports it, and reconnects
        asyncio.run(source._poll(place))  # noqa: SLF001


def test_a_shadow_continues_as_it_was_begun() -> None:
    """Exact is the default. One by predictions of an earlier version goes on by predictions, unless asked."""

    def source_of(exact: bool | None) -> ShadowSource:
        source = ShadowSource(ShadowOf("c", "c/live", "c/shadow/easy", Settings(), exact=exact))
        source._begin(OPENED, None)  # noqa: SLF001
        return source

    assert [source_of(exact).snapshot()["exact"] for exact in (None, True, False)] == [True, True, False]
    for begun in (True, False):
        state = source_of(begun).snapshot()
        continued = source_of(None)
        continued.restore(state)
        assert continued.snapshot()["exact"] == begun
        with pytest.raises(FollowError, match="exists already as"):
            source_of(not begun).restore(state)
