"""Recorded replay: what happened, in the order in which it happened."""

import json

import pytest

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.options import Requests
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.shared.errors import TraceError
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    Decided,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.reasons import FitsNow
from tests.support.small_logs import job, plan_of, workload_of


def told(source: Recorded) -> list[Event]:
    """Return everything that is left."""
    events: list[Event] = []
    while instant := source.next_instant():
        events.extend(instant)
    return events


def brief(event: Event) -> tuple[int, str, int]:
    number = event.job_number if isinstance(event, JobSubmitted | JobStarted | JobEnded) else 0
    return event.time, event.kind, number


def overlapping() -> Workload:
    """Return two jobs that together hold more than the 4 processors there are."""
    return workload_of(
        job(1, 0, wait_time=0, processors=3, run_time=100, requested_time=50),
        job(2, 10, wait_time=0, processors=3, run_time=20),
    )


def test_order_at_one_instant() -> None:
    """Ends, changes of capacity, arrivals, the scheduling point, then starts (G1)."""
    workload = workload_of(
        job(1, 0, wait_time=0, run_time=60), job(2, 5, wait_time=55), job(3, 60, wait_time=0), job(4, 60, wait_time=9)
    )
    events = told(Recorded(workload, [CapacityChanged(time=60, processors=2)]))
    assert [brief(each) for each in events if each.time == 60] == [
        (60, "JobEnded", 1),
        (60, "CapacityChanged", 0),
        (60, "JobSubmitted", 3),
        (60, "JobSubmitted", 4),
        (60, "SchedulingPoint", 0),
        (60, "JobStarted", 2),
        (60, "JobStarted", 3),
    ]
    times = [each.time for each in events]
    assert times == sorted(times)
    assert sum(isinstance(each, SchedulingPoint) for each in events) == len(set(times))


@pytest.mark.parametrize("wait", [-1, -30, 0])
def test_a_start_before_its_submission_moves_to_it(wait: int) -> None:
    events = told(Recorded(workload_of(job(1, 100, wait_time=wait), job(2, 100, wait_time=50))))
    assert [brief(each) for each in events if brief(each)[2] == 1] == [
        (100, "JobSubmitted", 1),
        (100, "JobStarted", 1),
        (160, "JobEnded", 1),
    ]


def test_run_times_stay_beyond_the_request() -> None:
    events = told(Recorded(overlapping()))
    started = next(each for each in events if isinstance(each, JobStarted) and each.job_number == 1)
    ended = next(each for each in events if isinstance(each, JobEnded) and each.job_number == 1)
    assert (started.limit, ended.time, ended.run_time, ended.outcome) == (50, 100, 100, "completed")


@pytest.mark.parametrize("requests", ["at-least-run", "actual", "doubled"])
def test_rewritten_requests_leave_the_waits(requests: Requests) -> None:
    events = told(Recorded(workload_of(job(1, 0, wait_time=7), requests=requests)))
    assert [brief(each) for each in events if isinstance(each, JobStarted | JobEnded)] == [
        (7, "JobStarted", 1),
        (67, "JobEnded", 1),
    ]


def test_free_processors_may_go_below_zero() -> None:
    """The whole pipeline bears it, starts nothing then, and scores the waits that happened."""
    plan = plan_of(overlapping())._replace(mode="recorded")
    envelopes: list[Event] = []
    last = plan.replay([lambda envelope: envelopes.append(envelope.event)]).run_to_end()
    assert [len(each.starts) for each in envelopes if isinstance(each, Decided)] == [1, 0, 0, 0]
    assert last.scores is not None
    assert (last.scores.policy.jobs, last.scores.policy.mean_wait) == (2, 0)
    assert last.scores.policy.makespan == 100


def test_decisions_are_advice() -> None:
    source = Recorded(workload_of(job(1, 0, wait_time=30)))
    source.next_instant()
    decided = Decided(time=0, starts=(Start(job_number=1, processors=1, limit=100, reason=FitsNow()),))
    assert source.apply(decided) == ()
    assert source.next_time() == 30


def test_a_log_without_waits_is_refused() -> None:
    with pytest.raises(TraceError, match=r"^small: its jobs have no wait times, "):
        Recorded(workload_of(job(1), job(2)))


def test_restored_at_any_instant_it_tells_the_same_rest() -> None:
    workload = workload_of(*(job(n, 10 * n, wait_time=n % 4 * 7, run_time=30 + n) for n in range(1, 20)))
    source = Recorded(workload)
    while True:
        state = json.loads(json.dumps(source.snapshot()))
        again, same = Recorded(workload), Recorded(workload)
        again.restore(state)
        same.restore(state)
        assert told(again) == told(same)
        instant = source.next_instant()
        again.restore(state)
        assert list(again.next_instant()) == list(instant)
        if not instant:
            break
