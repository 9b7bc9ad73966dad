"""What the guards of an order keep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import canonical
from shadowtime.services.scheduler.ordering.bypassed_work import BypassedWork
from shadowtime.services.scheduler.ordering.compiled import compiled, sort_keys
from shadowtime.services.scheduler.ordering.ordering import Ordering
from shadowtime.services.scheduler.ordering.orders import ORDERS
from shadowtime.services.scheduler.ordering.settings import OrderedSettings
from shadowtime.services.scheduler.tables.job_table import Queue
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, instances
from shadowtime.testing.workloads import TraceRow, workload, workloads


def events(policy: str, jobs: Workload, runtime: str = "requested") -> list[Event]:
    opened = ClusterOpened(
        time=0, cluster="c", processors=8, policy=canonical("policy", policy), runtime=canonical("runtime", runtime)
    )
    return [event for event, _ in Chain(opened).play(Machine(jobs))]


def starts(told: list[Event]) -> dict[int, int]:
    return {event.job_number: event.time for event in told if isinstance(event, JobStarted)}


@given(
    jobs=workloads(),
    order=st.sampled_from(["fcfs", "spf", "srf", "wfp3", "unicep"]),
    threshold=st.sampled_from([5, 30]),
)
@examples(60)
def test_without_further_guards_it_is_easy_on_requests(jobs: Workload, order: str, threshold: int) -> None:
    keys = f"queue={order},threshold={threshold}"
    assert starts(events(f"guarded:{keys}", jobs)) == starts(events(f"easy:{keys},plan=requested", jobs))


@given(instance=instances(), order=st.sampled_from(["fcfs", "saf", "f2", "exp", "wfp3", "unicep"]))
def test_compiled_orders_sort_by_the_same_numbers(instance: Instance, order: str) -> None:
    queue, _ = instance.tables()
    if not len(queue):
        return
    ordering = Ordering(OrderedSettings(queue=order))
    kind, key = compiled(ORDERS[order])
    basis = ordering.keys(key, instance.now, queue)
    rows = ordering.rows(instance.now, queue)
    found = sort_keys(kind, instance.now, queue.submit_time, queue.processors, basis, rows)
    assert found.tolist() == ordering.keys(ordering.key, instance.now, queue)[rows].tolist()


def test_a_job_goes_first_once_it_has_been_overtaken_enough() -> None:
    """A long job of the whole machine waits while small ones pass it, which would keep the machine busy to the end."""
    small = [TraceRow(number, number - 1, 4, 5, 5) for number in range(1, 40)]
    jobs = workload(8, [*small, TraceRow(100, 1, 8, 50, 5)])
    found = [starts(events(f"guarded:queue=spf,overtaken={seconds}", jobs))[100] for seconds in (0, 10, 40, 1000)]
    assert found == sorted(set(found))


def test_the_job_that_has_waited_longest_finds_room_once_its_patience_is_over() -> None:
    """Small jobs would keep out a large one for ever; all of them run as long as they ask for."""
    small = [TraceRow(number, 2 * number, 3, 10, 10) for number in range(1, 80)]
    jobs = workload(8, [*small, TraceRow(100, 3, 8, 5, 5)])
    last = starts(events("guarded:queue=sqf", jobs))[100]
    for patience in (10, 30, 60):
        start = starts(events(f"guarded:queue=sqf,patience={patience}", jobs))[100]
        assert start <= 3 + patience + 10 < last, "the last that began before its time ends ten seconds later"


@given(jobs=workloads(beyond_request=False))
@examples(60)
def test_what_jobs_are_overtaken_by_is_that_of_later_ones_that_started_before(jobs: Workload) -> None:
    """Brute force, at the end of each instant, once all that had started has ended."""
    order = {job.job_number: (job.submit_time, job.job_number) for job in jobs}
    sizes = {job.job_number: job.processors for job in jobs}
    kept, waiting = BypassedWork(), set()
    work: dict[int, float] = {}
    running: set[int] = set()
    for event in events("easy:queue=spf", jobs):
        kept.observe(event)
        if isinstance(event, JobSubmitted):
            waiting.add(event.job_number)
            work[event.job_number] = 0.0
        elif isinstance(event, JobStarted):
            waiting.remove(event.job_number)
            running.add(event.job_number)
        elif isinstance(event, JobEnded):
            running.remove(event.job_number)
            for number in waiting:
                if order[number] < order[event.job_number]:
                    work[number] += event.run_time * sizes[event.job_number]
        elif isinstance(event, SchedulingPoint):
            numbers = sorted(waiting, key=order.__getitem__)
            assert kept.numbers.tolist() == numbers
            assert kept.work.tolist() == pytest.approx([work[number] for number in numbers])


def test_past_its_patience_the_job_that_has_waited_longest_starts_as_soon_as_it_fits() -> None:
    """Job 3 has waited longest; the order puts job 4 first, which does not fit and which it would delay."""
    rows = [TraceRow(1, 0, 4, 200, 200), TraceRow(2, 0, 4, 100, 100), TraceRow(3, 1, 4, 999, 999)]
    jobs = workload(8, [*rows, TraceRow(4, 2, 8, 50, 50)])
    assert starts(events("guarded:queue=spf,patience=10", jobs))[3] == 100
    assert starts(events("guarded:queue=spf,patience=10000", jobs))[3] == 250


def test_an_order_that_gives_too_few_keys_fails_and_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue()
    for number in (1, 2):
        queue.add((number, 0, 1, *[60] * 4, -1))
    ordering = Ordering(OrderedSettings(queue="sqf"))
    for keys in (np.zeros(1), None, 3.0):
        monkeypatch.setattr(ordering, "key", lambda waiting, keys=keys: keys)
        with pytest.raises((ValueError, TypeError)):
            ordering.rows(0, queue)
    monkeypatch.setattr(ordering, "key", lambda waiting: -waiting.queue.job_number)
    assert ordering.keys(ordering.key, 0, queue).dtype == np.float64


def test_a_candidate_behind_the_head_does_not_delay_the_job_that_has_waited_longest() -> None:
    """Job 4 would fit beside job 3, the head, but not beside job 2, which needs the whole machine at 20."""
    jobs = workload(
        8, [TraceRow(1, 0, 6, 20, 20), TraceRow(2, 1, 8, 100, 100), TraceRow(3, 2, 4, 5, 5), TraceRow(4, 3, 2, 50, 50)]
    )
    patient, impatient = (starts(events(f"guarded:queue=spf,patience={seconds}", jobs)) for seconds in (10_000, 15))
    assert patient[4] == 3
    assert impatient[2] == 20
    assert impatient[4] == 120
