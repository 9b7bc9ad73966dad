"""Cost of one scheduling pass, and of the changes of queue and running jobs, against their length."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables.histograms import UNKNOWN
from shadowtime.services.scheduler.tables.job_table import Queue, Running, planned_times
from shadowtime.shared.spec import parse

QUEUES = (100, 1_000, 10_000, 100_000, 200_000)
PLANNED_QUEUES = (100, 1_000, 10_000)
"""For policies that plan every job, whose passes are quadratic."""

PLANS = {
    "conservative": "conservative",
    "conservative-anew": "conservative:guarantees=no,queue=1/L",
    "conservative-greedy": "conservative:shape=greedy",
}
RUNNING = (100, 1_000, 10_000)
FREE = 8
NOW = 1_000_000


def queue_of(jobs: int) -> Queue:
    """Return a queue whose head needs more than there is, before candidates of all sizes and lengths."""
    rng = np.random.default_rng(jobs)
    processors = rng.integers(1, 64, size=jobs).tolist()
    requested = (60 * rng.integers(1, 2880, size=jobs)).tolist()
    processors[0] = 10_000
    queue = Queue()
    for number, (size, request) in enumerate(zip(processors, requested, strict=True), 1):
        queue.add((number, number, size, *planned_times(request, None, None), UNKNOWN))
    return queue


def running_of(jobs: int) -> Running:
    """Return running jobs of eight processors that end in the next two days."""
    rng = np.random.default_rng(jobs)
    requested = (60 * rng.integers(1, 2880, size=jobs)).tolist()
    elapsed = (rng.random(jobs) * requested).astype(int).tolist()
    running = Running()
    for number, (request, age) in enumerate(zip(requested, elapsed, strict=True)):
        times = planned_times(request, None, None)
        running.add((10_000_000 + number, number, max(8, 10_000 // jobs), *times, UNKNOWN, NOW - age))
    return running


def median_microseconds(
    action: Callable[[], object], budget: float = 0.3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the median time of an action, of at least five calls."""
    action()
    taken: list[float] = []
    while len(taken) < 5 or sum(taken) < budget:
        began = clock()
        action()
        taken.append(clock() - began)
    return round(1e6 * float(np.median(taken)), 1)


def scheduling_pass(spec: str, queues: Sequence[int] = QUEUES) -> dict[str, Any]:
    """Time passes of one policy."""
    rows = []
    for waiting in queues:
        queue = queue_of(waiting)
        for jobs in RUNNING:
            policy = POLICIES.build(parse(spec))
            running = running_of(jobs)
            starts = len(policy.schedule(NOW, queue, running, FREE))
            microseconds = median_microseconds(partial(policy.schedule, NOW, queue, running, FREE))
            rows.append({"waiting": waiting, "running": jobs, "starts": starts, "microseconds": microseconds})
    return {"policy": spec, "passes": rows}


def queue_changes() -> dict[str, Any]:
    """Time what happens to the queue between passes: at its front, the worst place, and at its end."""
    rows = []
    for waiting in QUEUES:
        queue = queue_of(waiting)
        at_front = median_microseconds(partial(remove_and_add, queue, 1))
        at_end = median_microseconds(partial(remove_and_add, queue, waiting))
        rows.append({"waiting": waiting, "start_and_requeue_first": at_front, "start_and_requeue_last": at_end})
    return {"unit": "microseconds", "changes": rows}


def remove_and_add(queue: Queue, job_number: int) -> None:
    """Start a job and requeue it."""
    queue.add(queue.remove(job_number))
