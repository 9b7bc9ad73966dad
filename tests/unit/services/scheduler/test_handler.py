"""The scheduler's picture of the machine: what moves it, and what each pass makes of it."""

import pytest

from shadowtime.services.scheduler.tables.job_table import NEVER
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import CapacityChanged, Decided, SchedulingPoint
from shadowtime.shared.messages.job_events import JobChanged
from shadowtime.shared.messages.reasons import Backfilled, FitsNow
from shadowtime.shared.stages.stage import StageRun
from tests.support.told_scheduler import Told


def test_every_scheduling_point_is_answered_also_by_nothing() -> None:
    told = Told()
    assert told.tell(SchedulingPoint(time=3)) == Decided(time=3)


def test_a_decision_alone_changes_nothing() -> None:
    told = Told()
    told.submit(1, 10, 60)
    first = told.starts(0)
    assert first == (Start(job_number=1, processors=10, limit=60, reason=FitsNow()),)
    assert told.starts(0) == first
    told.start(1, 10)
    assert told.numbers(0) == []


def test_a_job_without_a_request_has_no_limit() -> None:
    told = Told()
    told.submit(1, 1, None)
    assert told.scheduler.queue.requested_time.tolist() == [NEVER]
    assert told.starts(0)[0].limit is None


@pytest.mark.parametrize(
    ("point", "expected"), [(None, 60), (30.0, 30), (30.9, 30), (0.0, 1), (0.4, 1), (60.0, 60), (1e6, 60)]
)
def test_predictions_are_whole_seconds_within_the_request(point: float | None, expected: int) -> None:
    told = Told()
    told.submit(1, 1, 60, point=point)
    assert told.scheduler.queue.predicted_time.tolist() == [expected]


def test_the_limit_is_the_request_whatever_is_predicted() -> None:
    told = Told()
    told.submit(1, 1, 60, point=5.0)
    assert told.starts(0)[0].limit == 60


# Predictions that prove wrong: 6 of 10 processors are held by a job that was thought to end at 100.


def outlived(fallback: str) -> Told:
    told = Told(keys=f"fallback={fallback}")
    told.submit(1, 6, 1000, point=100.0)
    told.start(1, 6, limit=1000)
    told.submit(2, 8, 50)
    told.submit(3, 4, 60)
    return told


@pytest.mark.parametrize(
    ("fallback", "time", "expected"),
    [
        ("request", 0, 100),
        ("request", 40, 100),
        ("request", 100, 1000),
        ("request", 940, 1000),
        ("incremental", 40, 100),
        ("incremental", 100, 160),
        ("incremental", 160, 400),
        ("incremental", 400, 1000),
    ],
)
def test_the_shadow_moves_when_a_prediction_is_outlived(fallback: str, time: int, expected: int) -> None:
    assert outlived(fallback).shadow_time(time) == expected


@pytest.mark.parametrize("fallback", ["request", "incremental"])
@pytest.mark.parametrize("time", [1000, 1001, 5000])
def test_a_job_past_its_request_is_expected_to_end_within_a_second(fallback: str, time: int) -> None:
    told = outlived(fallback)
    assert told.numbers(time) == []  # job 3 would run for 60 s, and 2 processors are not extra enough
    told.submit(4, 2, 7000, time=time)
    told.submit(5, 1, 1, time=time)
    assert [(each.job_number, each.reason) for each in told.starts(time)] == [
        (
            4,
            Backfilled(
                head=2, shadow_time=time + 1, extra_processors=2, expected_end=time + 7000, ends_by_shadow_time=False
            ),
        ),
        (
            5,
            Backfilled(
                head=2, shadow_time=time + 1, extra_processors=0, expected_end=time + 1, ends_by_shadow_time=True
            ),
        ),
    ]


# Capacity


def test_a_machine_that_shrinks_below_what_is_used_starts_nothing() -> None:
    told = Told()
    told.submit(1, 8, 100)
    told.start(1, 8, limit=100)
    told.submit(2, 1, 10)
    told.tell(CapacityChanged(time=5, processors=6))
    assert told.scheduler.free == -2
    assert told.starts(5) == ()
    told.end(1, 20)
    assert told.numbers(20) == [2]


def test_a_head_larger_than_the_shrunk_machine_lets_others_by() -> None:
    told = Told()
    told.submit(1, 9, 100)
    told.submit(2, 4, 10**6)
    told.submit(3, 3, 50)
    told.submit(4, 2, 50)
    told.tell(CapacityChanged(time=5, processors=6))
    starts = told.starts(5)
    assert [each.job_number for each in starts] == [2, 4]
    for each in starts:
        expected_end = 5 + (10**6 if each.job_number == 2 else 50)
        assert each.reason == Backfilled(
            head=1, shadow_time=None, extra_processors=6, expected_end=expected_end, ends_by_shadow_time=True
        )


def test_a_machine_that_grows_back_takes_the_head() -> None:
    told = Told()
    told.tell(CapacityChanged(time=1, processors=0))
    told.submit(1, 9, 100, time=2)
    assert told.numbers(2) == []
    told.tell(CapacityChanged(time=5, processors=20))
    told.submit(2, 11, 100, time=5)
    told.submit(3, 1, 100, time=5)
    assert told.numbers(5) == [1, 2]


def test_a_head_reserves_only_what_a_shrunk_machine_will_have() -> None:
    told = Told()
    told.submit(1, 6, 100)
    told.start(1, 6, limit=100)
    told.submit(2, 7, 100)
    told.submit(3, 1, 200)
    told.tell(CapacityChanged(time=5, processors=8))
    assert told.starts(5)[0].reason == Backfilled(
        head=2, shadow_time=100, extra_processors=1, expected_end=205, ends_by_shadow_time=False
    )


# Requeueing


def test_a_requeued_job_waits_where_it_waited_before() -> None:
    told = Told(policy="fcfs")
    for job_number, time in ((5, 0), (3, 1), (4, 1), (1, 2)):
        told.submit(job_number, 4, 100, time=time, point=30.0)
    for job_number in (3, 5):
        told.start(job_number, 4, time=2, limit=100)
    assert told.queue == [4, 1]
    told.end(3, 9, requeued=True)
    assert told.queue == [3, 4, 1]
    told.end(5, 9, requeued=True)
    assert told.queue == [5, 3, 4, 1]
    assert told.scheduler.queue.predicted_time.tolist() == [30] * 4
    assert told.scheduler.used == 0
    assert told.numbers(9) == [5, 3]


def test_a_reshaped_job_is_requeued_as_it_was_submitted() -> None:
    told = Told()
    told.submit(1, 8, 100)
    told.start(1, 4, limit=100)
    assert told.scheduler.used == 4
    told.end(1, 9, requeued=True)
    assert told.scheduler.used == 0
    assert told.starts(9) == (Start(job_number=1, processors=8, limit=100, reason=FitsNow()),)


@pytest.mark.parametrize("limit", [20, 300])
def test_a_job_that_changed_while_it_ran_is_requeued_as_it_was_submitted(limit: int) -> None:
    told = Told(policy="fcfs")
    told.submit(1, 8, 100, point=80.0)
    told.start(1, 8, limit=100)
    for of_limit in (limit, limit + 1):
        told.tell(JobChanged(time=5, job_number=1, requested_processors=6, requested_time=of_limit))
    assert told.scheduler.running.requested_time.tolist() == [limit + 1]
    told.end(1, 9, requeued=True)
    assert told.scheduler.queue.requested_time.tolist() == [100]
    assert told.scheduler.queue.predicted_time.tolist() == [80]
    assert told.starts(9) == (Start(job_number=1, processors=8, limit=100, reason=FitsNow()),)


@pytest.mark.parametrize("policy", ["easy", "fcfs"])
def test_a_running_job_whose_limit_is_taken_away_ends_never_in_plans(policy: str) -> None:
    """The second job fits beside the head until the head can start. Nobody knows when that is any more."""
    told = Told(policy=policy)
    told.submit(1, 8, 100)
    told.start(1, 8, limit=100)
    told.tell(JobChanged(time=5, job_number=1, unlimited=True))
    snapshot, told.run = told.run.snapshot(), StageRun(told.run.stage)
    told.run.restore(snapshot)
    assert told.scheduler.running.requested_time.tolist() == [NEVER]
    told.tell(JobChanged(time=6, job_number=1, priority=5))
    assert told.scheduler.running.requested_time.tolist() == [NEVER]
    told.submit(2, 10, 100, time=7)
    told.submit(3, 2, 10_000, time=7)
    assert told.numbers(7) == ([3] if policy == "easy" else [])
    told.tell(JobChanged(time=8, job_number=1, requested_time=60))
    assert told.scheduler.running.requested_time.tolist() == [60]
    assert told.numbers(8) == []
    told.tell(JobChanged(time=9, job_number=1, unlimited=True))
    told.end(1, 9, requeued=True)
    assert told.scheduler.queue.requested_time.tolist()[0] == 100


def test_fcfs_lets_nobody_by() -> None:
    told = Told(policy="fcfs")
    for job_number, processors in ((1, 4), (2, 6), (3, 1), (4, 9)):
        told.submit(job_number, processors, 100)
    assert told.numbers(0) == [1, 2]
    told.start(1, 4, limit=100)
    assert told.numbers(0) == [2]
    told.start(2, 6, limit=100)
    assert told.numbers(0) == []
    told.end(1, 7)
    assert told.numbers(7) == [3]
    told.start(3, 1, time=7, limit=100)
    assert told.numbers(7) == []
