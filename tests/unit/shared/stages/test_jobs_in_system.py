"""The rules that the events of a job keep."""

import pytest

from shadowtime.shared.errors import LogViolation
from shadowtime.shared.messages.envelope import JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.stages.jobs_in_system import JobsInSystem, RunningJob


def submitted(job_number: int) -> JobSubmitted:
    return JobSubmitted(time=10, job_number=job_number, requested_processors=2, user_id=job_number)


def started(job_number: int) -> JobStarted:
    return JobStarted(time=20, job_number=job_number, processors=2)


def ended(job_number: int, *, requeued: bool = False) -> JobEnded:
    return JobEnded(time=30, job_number=job_number, run_time=10, requeued=requeued)


@pytest.fixture
def jobs() -> JobsInSystem:
    """Job 1 waits, job 2 runs, job 3 has ended."""
    system = JobsInSystem()
    for job_number in (2, 3, 1):
        system.submit(submitted(job_number))
    system.start(started(2))
    system.start(started(3))
    system.end(ended(3))
    return system


def test_a_job_waits_then_runs_then_is_gone(jobs: JobsInSystem) -> None:
    assert list(jobs.waiting) == [1]
    assert jobs.running == {2: RunningJob(submitted(2), started(2))}


def test_a_new_job_is_one_that_neither_waits_nor_runs(jobs: JobsInSystem) -> None:
    jobs.require_new(submitted(3))
    jobs.require_new(submitted(4))
    with pytest.raises(LogViolation, match="job 1 submitted at 10 is already waiting"):
        jobs.require_new(submitted(1))
    with pytest.raises(LogViolation, match="job 2 submitted at 10 is already running"):
        jobs.require_new(submitted(2))


def test_only_a_waiting_job_starts(jobs: JobsInSystem) -> None:
    assert jobs.require_waiting(started(1)) == submitted(1)
    with pytest.raises(LogViolation, match="job 2, started at 20, runs already"):
        jobs.require_waiting(started(2))
    for gone in (3, 4):
        with pytest.raises(LogViolation, match=f"job {gone}, started at 20, neither waits nor runs"):
            jobs.require_waiting(started(gone))


def test_only_a_running_job_ends(jobs: JobsInSystem) -> None:
    assert jobs.require_running(ended(2)) == RunningJob(submitted(2), started(2))
    with pytest.raises(LogViolation, match="job 1, ended at 30, still waits"):
        jobs.require_running(ended(1))
    for gone in (3, 4):
        with pytest.raises(LogViolation, match=f"job {gone}, ended at 30, neither waits nor runs"):
            jobs.require_running(ended(gone))


def test_questions_change_nothing(jobs: JobsInSystem) -> None:
    before = jobs.snapshot()
    jobs.require_new(submitted(5))
    jobs.require_waiting(started(1))
    jobs.require_running(ended(2))
    assert jobs.snapshot() == before


def test_a_requeued_job_waits_again_as_submitted(jobs: JobsInSystem) -> None:
    jobs.end(ended(2, requeued=True))
    assert jobs.running == {}
    assert jobs.waiting == {1: submitted(1), 2: submitted(2)}
    jobs.start(started(2))
    assert 2 in jobs.running


def test_a_snapshot_has_all_jobs_in_order(jobs: JobsInSystem) -> None:
    jobs.submit(submitted(0))
    other = JobsInSystem()
    other.submit(submitted(99))
    other.restore(jobs.snapshot())
    assert other.waiting == jobs.waiting
    assert list(other.waiting) == [1, 0]
    assert other.running == jobs.running
