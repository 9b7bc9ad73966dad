"""Policies on processors, memory and GPUs over plain numbers: what the compiled passes must equal.

docs/algorithms.md#pools. Running jobs end at their requests.
"""

from collections.abc import Callable, Iterable, Mapping

from shadowtime.shared.messages.envelope import JobSubmitted
from tests.support.occupancy import Held, Occupancy, Size, fits, size_of, without

Taken = tuple[int, int, Size]
"""From when, until when, and what."""

Ends = Mapping[float, float]
"""The probability of each time of termination."""


def asked(job: JobSubmitted) -> Size:
    return size_of(job, job.requested_processors)


def seconds(job: JobSubmitted) -> int:
    assert job.requested_time is not None
    return job.requested_time


def heads_of(queue: list[JobSubmitted], free: Size) -> list[JobSubmitted]:
    heads: list[JobSubmitted] = []
    for job in queue:
        if not fits(asked(job), free):
            break
        heads.append(job)
        free = without(free, asked(job))
    return heads


def shadow(needed: Size, free: Size, held: Iterable[tuple[int, Size]]) -> tuple[float, Size]:
    """Return when all that a job needs will have been given back, and what is left beside it then."""
    ends = sorted({end for end, _ in held})
    for time in ends:
        then = {name: left + sum(size.get(name, 0) for end, size in held if end <= time) for name, left in free.items()}
        if fits(needed, then):
            return time, without(then, needed)
    return float("inf"), free


def easy(now: int, queue: list[JobSubmitted], running: list[Held], free: Size) -> list[int]:
    """Return who starts."""
    heads = heads_of(queue, free)
    starts, rest = [job.job_number for job in heads], queue[len(heads) :]
    held = [(max(job.end, now + 1), job.size) for job in running]
    for job in heads:
        held.append((now + seconds(job), asked(job)))
        free = without(free, asked(job))
    if not rest:
        return starts
    time, extra = shadow(asked(rest[0]), free, held)
    for job in rest[1:]:
        in_time = now + seconds(job) <= time
        if fits(asked(job), free) and (in_time or fits(asked(job), extra)):
            starts.append(job.job_number)
            free = without(free, asked(job))
            extra = extra if in_time else without(extra, asked(job))
    return starts


def probabilistic(
    now: int,
    queue: list[JobSubmitted],
    running: list[Held],
    free: Size,
    tau: float,
    ends_of: Callable[[int], Ends],
    numbers: list[int],
    delay: Callable[[int, list[tuple[int, Ends]], tuple[int, Ends]], float],
) -> list[int]:
    """Return who starts.

    Parameters
    ----------
    ends_of, numbers
        When a waiting or running job may end; the numbers of the running ones.
    delay
        The probability that a candidate delays a head that lacks so many processors.
    """
    heads = heads_of(queue, free)
    rest = queue[len(heads) :]
    busy = [(max(job.end, now + 1), job.size, number) for job, number in zip(running, numbers, strict=True)]
    starts: list[int] = []

    def begin(job: JobSubmitted) -> None:
        nonlocal free
        busy.append((now + seconds(job), asked(job), job.job_number))
        free = without(free, asked(job))
        starts.append(job.job_number)

    for job in heads:
        begin(job)
    if not rest:
        return starts
    head, candidates = asked(rest[0]), rest[1:]
    while candidates := [job for job in candidates if fits(asked(job), free)]:
        time, extra = shadow(head, free, [(end, size) for end, size, _ in busy])
        lacking = head["processors"] - free["processors"]
        leaves = extra if lacking <= 0 else {**extra, "processors": 10**9}
        candidates = [job for job in candidates if now + seconds(job) <= time or fits(asked(job), leaves)]
        may_end = [(size["processors"], ends_of(number)) for _, size, number in busy]
        passing = (
            at
            for at, job in enumerate(candidates)
            if lacking <= 0
            or round(delay(lacking, may_end, (asked(job)["processors"], ends_of(job.job_number))), 6) < tau
        )
        if (at := next(passing, None)) is None:
            break
        begin(candidates[at])
        candidates = candidates[at + 1 :]
    return starts


class Conservative:
    """Every waiting job has a place, which moves when something ends, to an earlier time or not at all."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}

    def starts(
        self, now: int, queue: list[JobSubmitted], running: list[Held], room: Size, held: Size, *, freed: bool
    ) -> list[int]:
        """Return who starts; `held` is what is held for ever, by suspended jobs."""
        plan: dict[int, Taken] = {-at: (now, max(job.end, now + 1), job.size) for at, job in enumerate(running, 1)}

        def fit(job: JobSubmitted, start: int) -> bool:
            end = start + seconds(job)
            for time in {start, *(first for first, _, _ in plan.values() if start < first < end)}:
                left = without(room, held)
                for first, last, size in plan.values():
                    left = without(left, size) if first <= time < last else left
                if not fits(asked(job), left):
                    return False
            return True

        def put(job: JobSubmitted, start: int) -> None:
            plan[job.job_number] = (start, start + seconds(job), asked(job))

        def earliest(job: JobSubmitted) -> int | None:
            times = sorted({now, *(last for _, last, _ in plan.values())})
            return next((time for time in times if fit(job, time)), None)

        promised = {job.job_number: self.places.get(job.job_number, -1) for job in queue}
        for job in sorted(queue, key=lambda job: promised[job.job_number]):
            if promised[job.job_number] >= now and fit(job, promised[job.job_number]):
                put(job, promised[job.job_number])
        for job in queue if freed else []:
            if job.job_number in plan:
                start, _, _ = plan.pop(job.job_number)
                sooner = earliest(job)
                put(job, start if sooner is None else min(start, sooner))
        for job in queue:
            if job.job_number not in plan and (start_ := earliest(job)) is not None:
                put(job, start_)
        self.places = {job.job_number: plan[job.job_number][0] for job in queue if job.job_number in plan}
        return [job.job_number for job in queue if self.places.get(job.job_number) == now]


def held_of(machine: Occupancy, pool: int) -> tuple[list[Held], list[int]]:
    """Return the running jobs of a pool, and their numbers."""
    found = [(job, number) for number, job in machine.running.items() if job.pool == pool]
    return [job for job, _ in found], [number for _, number in found]
