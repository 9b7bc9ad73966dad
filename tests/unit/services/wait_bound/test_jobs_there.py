"""The jobs from which futures begin are those of the log, whatever happened to them."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.wait_bound.futures.jobs_in_system import JobsThere
from shadowtime.shared.messages import JobEnded, JobStarted, JobSubmitted

SIZES = st.integers(1, 8)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "withdraw", "start", "suspend", "resume", "end", "requeue", "restore"]),
        st.integers(0, 99),
        SIZES,
    ),
    max_size=40,
)


@dataclass
class Plain:
    """The same in lists: of each job its number, processors and request, those that run with their start."""

    waiting: list[tuple[int, int, int]] = field(default_factory=list)
    running: list[tuple[int, int, int, int]] = field(default_factory=list)
    suspended: list[tuple[int, int, int, int]] = field(default_factory=list)


def ended(time: int, number: int, *, requeued: bool) -> JobEnded:
    return JobEnded(time=time, job_number=number, run_time=1, requeued=requeued)


def restored(jobs: JobsThere) -> JobsThere:
    again = JobsThere()
    again.restore(jobs.snapshot())
    return again


@given(steps=STEPS)
def test_they_are_those_of_a_plain_list(steps: list[tuple[str, int, int]]) -> None:
    jobs, plain = JobsThere(), Plain()
    for time, (what, chance, size) in enumerate(steps):
        if what == "submit":
            plain.waiting.append((time, size, 60 + chance))
            jobs.submit(
                JobSubmitted(time=time, job_number=time, requested_processors=size, requested_time=60 + chance), ()
            )
        elif what in ("withdraw", "start") and plain.waiting:
            number, size, request = plain.waiting.pop(chance % len(plain.waiting))
            if what == "withdraw":
                jobs.withdraw(number)
            else:
                plain.running.append((number, size, request, time))
                jobs.start(JobStarted(time=time, job_number=number, processors=size, limit=request))
        elif what in ("suspend", "end", "requeue") and plain.running:
            job = plain.running.pop(chance % len(plain.running))
            if what == "suspend":
                plain.suspended.append(job)
                jobs.suspend(job[0])
            else:
                jobs.end(ended(time, job[0], requeued=what == "requeue"))
                if what == "requeue":
                    plain.waiting.append(job[:3])
        elif what == "resume" and plain.suspended:
            job = plain.suspended.pop(chance % len(plain.suspended))
            plain.running.append(job)
            jobs.resume(job[0])
        elif what == "restore":
            jobs = restored(jobs)
        now = time + 1
        ends = [max(start + request, now + 1) for _, _, request, start in plain.running]
        assert jobs.waiting().T.tolist() == [[size, request] for _, size, request in plain.waiting]
        assert jobs.running(now).T.tolist() == [[job[1], end] for job, end in zip(plain.running, ends, strict=True)]
        assert jobs.held == sum(size for _, size, *_ in plain.running)
        assert len(jobs) == len(plain.waiting) + len(plain.running)


@pytest.mark.parametrize("requeued", [False, True])
def test_a_suspended_job_that_ends_lets_go_of_nothing_twice(requeued: bool) -> None:
    jobs = JobsThere()
    jobs.submit(JobSubmitted(time=0, job_number=1, requested_processors=4, requested_time=60), ())
    jobs.start(JobStarted(time=1, job_number=1, processors=4, limit=60))
    jobs.suspend(1)
    assert (jobs.held, jobs.running(2).tolist()) == (0, [[], []])
    jobs.end(ended(3, 1, requeued=requeued))
    assert (jobs.held, jobs.waiting().T.tolist()) == (0, [[4, 60]] if requeued else [])
