"""Rules that every log of a cluster keeps: no life runs beside another of its job, nothing is told of the future."""

from collections.abc import Iterable, Mapping

from shadowtime.shared.accounting.job_numbers import LIFE, MAX_TASKS, TASKS
from shadowtime.shared.messages import (
    Event,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    OfJob,
    moment,
)


def job_of(number: int, arrays: Iterable[int]) -> tuple[int, int]:
    """Return the job, and the task or -1, of a life by its number; `arrays` are the jobs that are arrays."""
    part, job = divmod(number, LIFE)
    assert part % TASKS < MAX_TASKS, "a federated job"
    return (job, part % TASKS - 1) if job in set(arrays) else (job, -1)


def broken(events: Iterable[Event], arrays: Iterable[int], configured: Mapping[int, int]) -> list[str]:
    """Return what does not hold, in words. `configured` are the processors of each pool."""
    wrong: list[str] = []
    arrays = set(arrays)
    running: dict[tuple[int, int], int] = {}
    begun: dict[int, int] = {}
    of_pool: dict[int, int] = {}
    sizes: dict[int, tuple[int, int]] = {}
    held: dict[int, int] = {}
    last = 0
    events = list(events)
    ends = {event.job_number: moment(event) for event in events if isinstance(event, JobEnded)}
    for event in events:
        if event.time < last:
            wrong.append(f"{event.time}: time goes back from {last}")
        last = max(last, event.time)
        if not isinstance(event, JobSubmitted | OfJob):
            continue
        number = event.job_number
        if isinstance(event, JobSubmitted):
            begun[number], of_pool[number] = event.since, event.pool or 0
        elif moment(event) > event.time:
            wrong.append(f"{event.time}: {number} {type(event).__name__} at {moment(event)}, in the future")
        job = job_of(number, arrays)
        if isinstance(event, JobStarted):
            if moment(event) < begun[number]:
                wrong.append(f"{event.time}: {number} started at {moment(event)}, submitted at {begun[number]}")
            if job in running and ends.get(running[job], event.time + 1) > moment(event):
                wrong.append(f"{event.time}: {number} started, while {running[job]} runs")
            running[job] = number
            sizes[number] = of_pool[number], event.processors
            held[of_pool[number]] = held.get(of_pool[number], 0) + event.processors
        elif isinstance(event, JobChanged):
            of_pool[number] = of_pool[number] if event.pool is None else event.pool
            if number in sizes and event.requested_processors is not None:
                pool, size = sizes[number]
                held[pool] += event.requested_processors - size
                sizes[number] = pool, event.requested_processors
        elif isinstance(event, JobEnded | JobWithdrawn):
            if running.get(job) == number:
                del running[job]
            if number in sizes:
                pool, size = sizes.pop(number)
                held[pool] -= size
        over = [number for number in sizes if ends.get(number, event.time + 1) <= event.time]
        for pool, processors in held.items():
            if processors - sum(sizes[number][1] for number in over) > configured[pool]:
                wrong.append(f"{event.time}: jobs hold {processors} of {configured[pool]} processors of pool {pool}")
    return wrong
