"""Starts of a policy step by step: what was until then is as it really was."""

import pytest

from shadowtime.replayer.analysis.stepped import Stepped, stepped_starts
from shadowtime.replayer.logs.other_schedule import real_starts
from shadowtime.shared.messages.envelope import Decided, SchedulingPoint
from tests.support.small_logs import job, plan_of, workload_of


@pytest.mark.parametrize(("run_time", "third"), [(60, 360), (599, 899), (700, 901)])
def test_a_late_job_starts_when_the_policy_alone_would_have_started_it(run_time: int, third: int) -> None:
    """The site lets the second job wait, though it fits from 100 on, and starts the third at 300."""
    workload = workload_of(
        job(1, 0, processors=4, run_time=100, wait_time=0),
        job(2, 10, processors=4, run_time=run_time, requested_time=700, wait_time=1990),
        job(3, 20, processors=4, run_time=60, wait_time=280),
    )
    assert stepped_starts(plan_of(workload, "fcfs"), 600).tolist() == [0, 100, third]


def test_an_early_difference_moves_no_later_start() -> None:
    """Each job follows the one before 50 s late: left to itself the policy is ever further off, step by step never."""
    jobs = (job(number, 0, processors=4, wait_time=110 * (number - 1)) for number in range(1, 6))
    workload = workload_of(*jobs)
    assert (real_starts(workload) - stepped_starts(plan_of(workload, "fcfs"), 600)).tolist() == [0, 50, 50, 50, 50]


def test_the_policy_is_not_asked_because_a_job_is_about_to_start() -> None:
    """At 500 nothing happens but a start that was not decided; the policy is asked a second later."""
    source = Stepped(
        workload_of(job(1, 0, processors=4, run_time=100, wait_time=0), job(2, 10, processors=4, wait_time=490))
    )
    told: dict[int, list[str]] = {}
    while (time := source.next_time()) is not None:
        events = list(source.next_instant())
        told.setdefault(time, []).extend(each.kind for each in events)
        if isinstance(events[-1], SchedulingPoint):
            assert source.apply(Decided(time=time)) == ()
    assert told == {
        0: ["JobSubmitted", "SchedulingPoint", "JobStarted"],
        1: ["SchedulingPoint"],
        10: ["JobSubmitted", "SchedulingPoint"],
        100: ["JobEnded", "SchedulingPoint"],
        500: ["JobStarted"],
        501: ["SchedulingPoint"],
        560: ["JobEnded", "SchedulingPoint"],
    }
