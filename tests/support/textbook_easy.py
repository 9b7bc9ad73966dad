"""EASY and WFP as the textbooks have them, over lists: the twins that the compiled passes must equal.

docs/algorithms.md#easy (Mu'alem 2001, section 2), docs/algorithms.md#wfp (Tang 2013, equation 5) and
docs/algorithms.md#uses-of-an-adjusted-request (Tang 2013, section 5.2).
"""

from fractions import Fraction

from shadowtime.services.scheduler.tables.job_table import NEVER
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.reasons import Backfilled, FitsNow
from shadowtime.testing.instances import Instance, StartedJob, WaitingJob


def run_time(job: WaitingJob | StartedJob, *, truncate: bool) -> int:
    """Return what a job is planned to run for, at most its adjusted request if that counts."""
    if not truncate or job.adjusted_time is None:
        return job.predicted_time
    return min(job.predicted_time, job.adjusted_time)


def expected_end(job: StartedJob, now: int, corrections: tuple[int, ...], *, truncate: bool = False) -> int:
    """Return when a running job is expected to end: the first guess that is not over yet, capped by the request."""
    elapsed, first = now - job.start_time, run_time(job, truncate=truncate)
    adjusted = job.adjusted_time if truncate and job.adjusted_time is not None else job.requested_time
    guesses = [first, *(first + each for each in corrections), adjusted, elapsed + 300]
    still_possible = [min(guess, job.requested_time) for guess in guesses if guess > elapsed]
    return job.start_time + max(still_possible[0] if still_possible else 0, elapsed + 1)


def expected_ends_of(instance: Instance) -> list[tuple[int, int]]:
    """Return expected end and processors of each running job."""
    now, corrections, truncate = instance.now, instance.corrections, instance.uses.running
    ends = [expected_end(job, now, corrections, truncate=truncate) for job in instance.running]
    return [(end, job.processors) for end, job in zip(ends, instance.running, strict=True)]


def shadow(needed: int, free: int, ends: list[tuple[int, int]]) -> tuple[int | None, int]:
    """Return shadow time, None for never, and extra processors; `ends` has (time, processors) pairs."""
    for time in sorted({time for time, _ in ends}):
        released = free + sum(processors for end, processors in ends if end <= time)
        if released >= needed:
            return time, released - needed
    return None, free + sum(processors for _, processors in ends)


def easy(instance: Instance, *, shortest_first: bool = False) -> list[Start]:
    """Return the starts of one pass."""
    now, free, queue, uses = instance.now, instance.free, instance.queue, instance.uses
    if free <= 0:
        return []
    starts = []
    ends = expected_ends_of(instance)
    waiting = list(queue)
    while waiting and waiting[0].processors <= free:
        job = waiting.pop(0)
        free -= job.processors
        ends.append((now + run_time(job, truncate=uses.adjust_candidates), job.processors))
        starts.append(_start(job, FitsNow()))
    if not waiting:
        return starts
    head, *candidates = waiting
    shadow_time, extra = shadow(head.processors, free, ends)
    if shortest_first:
        candidates.sort(key=lambda job: run_time(job, truncate=uses.adjust_queue))
    for job in candidates:
        if job.processors > free:
            continue
        end = now + run_time(job, truncate=uses.adjust_candidates)
        in_time = shadow_time is None or end <= shadow_time
        if not in_time and job.processors > extra:
            continue
        told = shadow_time if shadow_time is not None and shadow_time - now < NEVER // 2 else None
        reason = Backfilled(
            head=head.job_number,
            shadow_time=told,
            extra_processors=extra,
            expected_end=end if end - now < NEVER else None,
            ends_by_shadow_time=in_time,
        )
        starts.append(_start(job, reason))
        free -= job.processors
        if not in_time:
            extra -= job.processors
    return starts


def wfp(instance: Instance) -> list[Start]:
    """Return the starts of one pass over the queue in order of exact scores."""

    def score(job: WaitingJob) -> Fraction:
        waited = instance.now - job.submit_time
        return Fraction(waited, run_time(job, truncate=instance.uses.adjust_queue)) ** 3 * job.processors

    in_order = sorted(instance.queue, key=lambda job: (-score(job), job.submit_time, job.job_number))
    return easy(instance._replace(queue=in_order))


def _start(job: WaitingJob, reason: FitsNow | Backfilled) -> Start:
    limit = None if job.requested_time == NEVER else job.requested_time
    return Start(job_number=job.job_number, processors=job.processors, limit=limit, reason=reason)
