"""EASY as the textbook has it, over lists: the twin that the compiled passes must equal.

D. G. Feitelson and A. Mu'alem, "Utilization, predictability, workloads, and user runtime estimates in scheduling the
IBM SP2 with backfilling", IEEE TPDS 12(6), 2001, algorithm of section 2.
"""

from services.scheduler.job_table import NEVER
from shared.events import Backfilled, FitsNow, Start
from tests.services.scheduler.instances import Instance, StartedJob, WaitingJob


def expected_end(job: StartedJob, now: int, corrections: tuple[int, ...]) -> int:
    """Return when a running job is expected to end: the first guess that is not over yet, capped by the request."""
    guesses = [job.predicted_time, *(job.predicted_time + each for each in corrections), job.requested_time]
    elapsed = now - job.start_time
    still_possible = [min(guess, job.requested_time) for guess in guesses if guess > elapsed]
    return job.start_time + max(still_possible[0] if still_possible else 0, elapsed + 1)


def shadow(needed: int, free: int, ends: list[tuple[int, int]]) -> tuple[int | None, int]:
    """Return shadow time, None for never, and extra processors; `ends` has (time, processors) pairs."""
    for time in sorted({time for time, _ in ends}):
        released = free + sum(processors for end, processors in ends if end <= time)
        if released >= needed:
            return time, released - needed
    return None, free + sum(processors for _, processors in ends)


def easy(instance: Instance, *, shortest_first: bool = False) -> list[Start]:
    """Return the starts of one pass."""
    now, free, queue, running, corrections = instance
    if free <= 0:
        return []
    starts = []
    ends = [(expected_end(job, now, corrections), job.processors) for job in running]
    waiting = list(queue)
    while waiting and waiting[0].processors <= free:
        job = waiting.pop(0)
        free -= job.processors
        ends.append((now + job.predicted_time, job.processors))
        starts.append(_start(job, FitsNow()))
    if not waiting:
        return starts
    head, *candidates = waiting
    shadow_time, extra = shadow(head.processors, free, ends)
    if shortest_first:
        candidates.sort(key=lambda job: job.predicted_time)
    for job in candidates:
        if job.processors > free:
            continue
        in_time = shadow_time is None or now + job.predicted_time <= shadow_time
        if not in_time and job.processors > extra:
            continue
        told = shadow_time if shadow_time is not None and shadow_time - now < NEVER // 2 else None
        end = now + job.predicted_time
        reason = Backfilled(
            head=head.job_number,
            shadow_time=told,
            extra_processors=extra,
            expected_end=end if job.predicted_time < NEVER else None,
            ends_by_shadow_time=in_time,
        )
        starts.append(_start(job, reason))
        free -= job.processors
        if not in_time:
            extra -= job.processors
    return starts


def _start(job: WaitingJob, reason: FitsNow | Backfilled) -> Start:
    limit = None if job.requested_time == NEVER else job.requested_time
    return Start(job_number=job.job_number, processors=job.processors, limit=limit, reason=reason)
