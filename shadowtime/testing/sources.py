"""The tests that every source must pass."""

from collections.abc import Sequence
from itertools import pairwise
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison import RunPlan
from shadowtime.replayer.logs import Workload
from shadowtime.replayer.simulation import SOURCES, ReplaySource
from shadowtime.services.catalogue import configure
from shadowtime.shared.cluster import EVENT_ORDER
from shadowtime.shared.messages import CapacityChanged, Envelope, Event, JobEnded, JobSubmitted, SchedulingPoint
from shadowtime.testing.examples import examples
from shadowtime.testing.pipeline import foresees_nothing, played
from shadowtime.testing.workloads import workloads

LOGS = workloads(max_jobs=12, waits=True)
GROWING = (CapacityChanged(time=5, processors=4), CapacityChanged(time=40, processors=8))


def plan(mode: str, jobs: Workload) -> RunPlan:
    return RunPlan("easy", "c", jobs, configure("easy"), mode, capacity=GROWING)


class Sources:
    """The tests that a source must pass."""

    def test_its_name_is_that_of_its_mode(self, spec: str) -> None:
        assert SOURCES[spec].name == spec

    @given(jobs=LOGS)
    @examples(20)
    def test_every_job_is_submitted_once_and_ends_for_good_once(self, spec: str, jobs: Workload) -> None:
        events = [envelope.event for envelope in played(plan(spec, jobs))]
        numbers = sorted(job.job_number for job in jobs)
        assert sorted(event.job_number for event in events if isinstance(event, JobSubmitted)) == numbers
        ended = [event.job_number for event in events if isinstance(event, JobEnded) and not event.requeued]
        assert sorted(ended) == numbers

    @given(jobs=LOGS)
    @examples(20)
    def test_it_tells_instants_in_order_each_with_one_scheduling_point(self, spec: str, jobs: Workload) -> None:
        instants: list[Sequence[Event]] = []
        next_instant = SOURCES[spec].next_instant

        def watched(source: ReplaySource) -> Sequence[Event]:
            instants.append(next_instant(source))
            return instants[-1]

        with mock.patch.object(SOURCES[spec], "next_instant", watched):
            played(plan(spec, jobs))
        known = [instant for instant in instants if instant]
        for instant in known:
            assert len({event.time for event in instant}) == 1
            places = [EVENT_ORDER.index(type(event)) for event in instant]
            assert places == sorted(places)
            assert sum(isinstance(event, SchedulingPoint) for event in instant) == 1

        assert all(before[0].time < after[0].time for before, after in pairwise(known))

    @given(jobs=LOGS, share=st.floats(0, 1))
    @examples(20)
    def test_a_restored_source_goes_on_as_if_never_interrupted(self, spec: str, jobs: Workload, share: float) -> None:
        whole = played(plan(spec, jobs))
        first = plan(spec, jobs).replay()
        for _ in range(int(share * len(whole))):
            first.step()
        rest: list[Envelope] = []
        again = plan(spec, jobs).replay([rest.append])
        again.restore(first.snapshot())
        if not again.closed:
            again.run_to_end()
        assert rest == whole[int(share * len(whole)) :]

    @given(jobs=LOGS, share=st.floats(0, 1))
    @examples(20)
    def test_it_tells_nothing_of_the_future(self, spec: str, jobs: Workload, share: float) -> None:
        foresees_nothing(lambda known: plan(spec, known), jobs, share)
