"""What every source keeps; a new one is tested by being listed."""

from collections.abc import Sequence
from itertools import pairwise
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowtime.replayer.comparison import Plan
from shadowtime.replayer.event_order import EVENT_ORDER
from shadowtime.replayer.source import Source
from shadowtime.replayer.sources import SOURCES
from shadowtime.replayer.workload import Workload
from shadowtime.services.catalogue import configure
from shadowtime.shared.events import CapacityChanged, Envelope, Event, JobEnded, JobSubmitted, SchedulingPoint
from tests.strategies.workloads import workloads

EVERY_SOURCE = pytest.mark.parametrize("mode", list(SOURCES))
LOGS = workloads(max_jobs=12, waits=True)
GROWING = (CapacityChanged(time=5, processors=4), CapacityChanged(time=40, processors=8))


def plan(mode: str, jobs: Workload) -> Plan:
    return Plan("easy", "c", jobs, configure("easy"), mode, capacity=GROWING)


def played(of: Plan) -> list[Envelope]:
    envelopes: list[Envelope] = []
    of.replay([envelopes.append]).run_to_end()
    return envelopes


@EVERY_SOURCE
def test_its_name_is_that_of_its_mode(mode: str) -> None:
    assert SOURCES[mode].name == mode


@EVERY_SOURCE
@given(jobs=LOGS)
@settings(max_examples=20, deadline=None)
def test_every_job_is_submitted_once_and_ends_for_good_once(mode: str, jobs: Workload) -> None:
    events = [envelope.event for envelope in played(plan(mode, jobs))]
    numbers = sorted(job.job_number for job in jobs)
    assert sorted(event.job_number for event in events if isinstance(event, JobSubmitted)) == numbers
    ended = [event.job_number for event in events if isinstance(event, JobEnded) and not event.requeued]
    assert sorted(ended) == numbers


@EVERY_SOURCE
@given(jobs=LOGS)
@settings(max_examples=20, deadline=None)
def test_it_tells_instants_in_order_each_with_one_scheduling_point(mode: str, jobs: Workload) -> None:
    instants: list[Sequence[Event]] = []
    next_instant = SOURCES[mode].next_instant

    def watched(source: Source) -> Sequence[Event]:
        instants.append(next_instant(source))
        return instants[-1]

    with mock.patch.object(SOURCES[mode], "next_instant", watched):
        played(plan(mode, jobs))
    told = [instant for instant in instants if instant]
    for instant in told:
        assert len({event.time for event in instant}) == 1
        places = [EVENT_ORDER.index(type(event)) for event in instant]
        assert places == sorted(places)
        assert sum(isinstance(event, SchedulingPoint) for event in instant) == 1
    assert all(before[0].time < after[0].time for before, after in pairwise(told))


@EVERY_SOURCE
@given(jobs=LOGS, share=st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_a_restored_source_goes_on_as_if_never_interrupted(mode: str, jobs: Workload, share: float) -> None:
    whole = played(plan(mode, jobs))
    first = plan(mode, jobs).replay()
    for _ in range(int(share * len(whole))):
        first.step()
    rest: list[Envelope] = []
    again = plan(mode, jobs).replay([rest.append])
    again.restore(first.snapshot())
    if not again.closed:
        again.run_to_end()
    assert rest == whole[int(share * len(whole)) :]
