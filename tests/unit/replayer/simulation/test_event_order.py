"""At one instant, the same order of events from every source."""

from itertools import permutations
from typing import get_args

import pytest

from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.replayer.simulation.source import ReplaySource
from shadowtime.shared.cluster.event_order import EVENT_ORDER, in_order
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.messages.reasons import FitsNow
from tests.support.small_logs import job, workload_of

AT_ONCE: tuple[Event, ...] = (
    JobEnded(time=5, job_number=1, run_time=5, outcome="completed"),
    JobSuspended(time=5, job_number=4),
    JobWithdrawn(time=5, job_number=5),
    CapacityChanged(time=5, processors=8),
    JobResumed(time=5, job_number=6),
    JobChanged(time=5, job_number=7, requested_time=90),
    JobSubmitted(time=5, job_number=2, requested_processors=1, requested_time=60),
    JobExpected(time=5, job_number=2, start=4),
    SchedulingPoint(time=5),
    JobStarted(time=5, job_number=2, processors=1, limit=60),
)


def test_it_has_a_place_for_every_event_of_a_source() -> None:
    of_others = {ClusterOpened, ClusterClosed, Decided, Rejected}
    assert set(EVENT_ORDER) == set(get_args(Event)) - of_others


def test_however_they_come_they_are_told_in_one_order() -> None:
    assert tuple(map(type, AT_ONCE)) == EVENT_ORDER
    assert in_order(reversed(AT_ONCE)) == list(AT_ONCE)
    for pair in permutations(AT_ONCE, 2):
        assert in_order(pair) == sorted(pair, key=AT_ONCE.index)


def test_those_of_a_kind_stay_as_they_came() -> None:
    ends = [JobEnded(time=5, job_number=number, run_time=5, outcome="completed") for number in (3, 1, 2)]
    assert in_order([SchedulingPoint(time=5), *ends])[:3] == ends


@pytest.mark.parametrize("kind", [Machine, Recorded])
def test_every_source_keeps_it(kind: type[Machine | Recorded]) -> None:
    """Job 1 ends at second 60, where the machine grows and job 2 arrives."""
    workload = workload_of(job(1, 0, wait_time=0), job(2, 60, wait_time=0))
    source: ReplaySource = kind(workload, [CapacityChanged(time=60, processors=8)])
    source.next_instant()
    start = Start(job_number=1, processors=1, limit=100, reason=FitsNow())
    source.apply(Decided(time=0, starts=(start,)))
    kinds = [type(event) for event in source.next_instant()]
    assert kinds == [each for each in EVENT_ORDER if each in kinds]
    assert len(kinds) >= 4
