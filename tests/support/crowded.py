"""A followed cluster with many waiting jobs, as a scheduler stage and the live page see it."""

import random
from collections.abc import Iterator
from typing import Any

from shadowtime.services.catalogue import configure
from shadowtime.services.explained import EXPLAINED
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    Event,
    JobExpected,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.protocols import StateStore, Transaction

RUN, CLUSTER, NOW = "mine/live", "mine", 4_000
NAMES = {"user:alice": b"1", "user:a.name.of.thirty.characters.x": b"2", "partition:gpu": b"1"}
NAMES |= {"partition:batch": b"2", "requeued:100000311": b"311"}


def events(waiting: int, policy: str) -> Iterator[Event]:
    chance = random.Random(7)
    yield ClusterOpened(time=0, cluster=CLUSTER, processors=400, mode="recorded", name="live", policy=policy)
    for number in range(1, 51):
        limit = 3_600 * chance.randint(2, 30)
        yield JobSubmitted(
            time=0, job_number=number, requested_processors=8, requested_time=limit, user_id=2, queue_number=2
        )
        yield JobStarted(time=0, job_number=number, processors=7 + number % 2, limit=limit)
    for place in range(waiting):
        number = number_of(2754, place) if place else 100_000_311
        yield JobSubmitted(
            time=3_000,
            eligible_time=chance.randint(0, 3_000),
            job_number=number,
            requested_processors=chance.choice((1, 2, 4, 8, 64, 128, 400)),
            requested_time=3_600 * chance.randint(1, 40),
            user_id=1 + place % 2,
            queue_number=1 + place % 2,
            priority=place,
            blocked=True if place % 17 == 16 else None,
        )
        if place % 7 == 6:
            yield JobExpected(time=3_000, job_number=number, start=9_000 + place)
    yield SchedulingPoint(time=NOW)


def bounds(place: int) -> tuple[WaitBound, ...]:
    table = tuple((share / 100, 600 * share * (1 + place % 5) // 10) for share in (5, 10, 25, 50, 75, 90, 95, 99))
    single = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=20_000 if place % 3 else 2_000)
    return (
        (single,) if place % 4 == 0 else (WaitBound(**vars(single) | {"grouping": "ensemble", "starts_within": table}),)
    )


class Crowded:
    """The run in the scheduler stage (`state`), in the live page (`runs`), and stored."""

    def __init__(self, waiting: int = 120, policy: str = "easy:forecast=yes") -> None:
        self.state, self.runs = StageRun(EXPLAINED), LiveRuns()
        self._outputs: list[bytes] = []
        for sequence, event in enumerate(events(waiting, configure(policy, "last-two").policy)):
            more: Any = {"wait_bounds": bounds(sequence)} if isinstance(event, JobSubmitted) else {}
            answer = self.state.push(Envelope(run=RUN, cluster=CLUSTER, sequence=sequence, event=event, **more))
            assert answer is not None
            self.runs.push(answer)
            self._outputs = [answer.to_bytes()]

    async def store(self, store: StateStore) -> None:
        at = self.state.sequence
        await store.commit(Transaction(RUN, -1, at, at, 0, self.state.snapshot(), [], self._outputs, 0))
