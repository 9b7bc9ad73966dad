"""The orders over lists, as docs/ordering.md has them, and a plain simulator of EASY under any two of them."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from shadowtime.testing.workloads import TraceRow
from tests.support.textbook_easy import shadow


class Waits(NamedTuple):
    """A waiting job; times in seconds."""

    job_number: int
    submit_time: int
    processors: int
    run_time: int
    now: int

    @property
    def wait(self) -> int:
        return self.now - self.submit_time


def log_submit(job: Waits) -> float:
    return math.log10(max(job.submit_time, 1))


def unicep(job: Waits) -> tuple[bool, float]:
    if job.processors == 1:
        return job.wait == 0, -job.wait / job.run_time
    return True, -job.wait / (math.log2(job.processors) * job.run_time)


KEYS: dict[str, Callable[[Waits], float | tuple[bool, float]]] = {
    "fcfs": lambda job: job.submit_time,
    "lcfs": lambda job: -job.submit_time,
    "spf": lambda job: job.run_time,
    "sqf": lambda job: job.processors,
    "saf": lambda job: job.run_time * job.processors,
    "srf": lambda job: job.run_time / job.processors,
    "exp": lambda job: -(job.wait + job.run_time) / job.run_time,
    "wfp3": lambda job: -((job.wait / job.run_time) ** 3) * job.processors,
    "unicep": unicep,
    "f1": lambda job: math.log10(job.run_time) * job.processors + 870 * log_submit(job),
    "f2": lambda job: math.sqrt(job.run_time) * job.processors + 25_600 * log_submit(job),
    "f3": lambda job: job.run_time * job.processors + 6_860_000 * log_submit(job),
    "f4": lambda job: job.run_time * math.sqrt(job.processors) + 530_000 * log_submit(job),
}


def in_order(jobs: Iterable[Waits], order: str, threshold: float = math.inf) -> list[Waits]:
    """Return the jobs as they are served: those that have waited past the threshold first, as they came."""
    key = KEYS[order]
    came = sorted(jobs, key=lambda job: (job.submit_time, job.job_number))
    aged = [job for job in came if job.wait > threshold]
    return aged + sorted((job for job in came if job.wait <= threshold), key=key)


def simulate(
    rows: Iterable[TraceRow], machine: int, queue: str, candidates: str | None, threshold: float
) -> dict[int, int]:
    """Return when each job starts under EASY; a job is killed at its request."""
    coming = sorted(rows, key=lambda row: (row.submit_time, row.job_number))
    waiting: list[TraceRow] = []
    running: list[tuple[int, int, int]] = []
    """Real end, end by request, processors."""
    starts: dict[int, int] = {}
    while coming or waiting:
        now = min([row.submit_time for row in coming[:1]] + [end for end, _, _ in running])
        running = [job for job in running if job[0] > now]
        while coming and coming[0].submit_time <= now:
            waiting.append(coming.pop(0))
        free = machine - sum(processors for _, _, processors in running)
        by_number = {row.job_number: row for row in waiting}
        jobs = [Waits(row.job_number, row.submit_time, row.processors, row.requested_time, now) for row in waiting]
        served = in_order(jobs, queue, threshold)
        chosen = []
        while served and served[0].processors <= free:
            chosen.append(served.pop(0))
            free -= chosen[-1].processors
        if served:
            head, *others = served
            ends = [(end, size) for _, end, size in running]
            ends += [(now + job.run_time, job.processors) for job in chosen]
            shadow_time, extra = shadow(head.processors, free, ends)
            assert shadow_time is not None
            for job in in_order(others, candidates) if candidates else others:
                if job.processors > free:
                    continue
                if now + job.run_time > shadow_time:
                    if job.processors > extra:
                        continue
                    extra -= job.processors
                free -= job.processors
                chosen.append(job)
        for job in chosen:
            row = by_number[job.job_number]
            starts[job.job_number] = now
            running.append((now + min(row.run_time, row.requested_time), now + row.requested_time, row.processors))
            waiting.remove(row)
    return starts
