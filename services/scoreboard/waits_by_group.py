"""Waits for the dashboards: of ended jobs by user, account, partition and size; of waiting jobs by reason."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import accumulate
from typing import Any, NamedTuple

from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import JobSubmitted, MachineCapacity, by_type, needed
from shadowtime.shared.stages import RunningJob

WAITS = (60, 600, 3_600, 14_400, 43_200, DAY, 3 * DAY, 7 * DAY)
"""Upper limits of the buckets of waits, in seconds. The last bucket has no limit."""

SIZES = ((1, "1 processor"), (8, "2 to 8 processors"), (64, "9 to 64 processors"))
"""Upper limit of each size in processors, and its name. Jobs above all limits have the name `LARGEST`."""

LARGEST = "over 64 processors"
ALL_JOBS = "all jobs"
MAX_PARTITIONS = 20
"""Maximum number of partitions with a histogram. Further partitions have none."""

MAX_OWNERS = 5_000
"""Maximum number of users, and of accounts, whose waits are summed. Further users and accounts are left out."""

SHOWN_OWNERS = 10
"""Number of users, and of accounts, that a sample shows: those with the most ended jobs."""

BLOCKED, CAPACITY, OTHERS_FIRST = "blocked by the site", "larger than the machine is now", "fits, others go first"
NOT_FREE = ("too few processors free", "too little memory free", "too few GPUs free")
"""Reasons of jobs that need more of a resource than is free, one for each resource of `PoolCapacity.amounts`.

The last reason is also that of each type of GPUs.
"""


class Owned(NamedTuple):
    """Number of ended jobs of a user or an account, and the sum of their waits in seconds."""

    jobs: int = 0
    wait: int = 0


class WaitsByGroup:
    """Sums of the waits of ended jobs by user and account, and histograms by size and partition.

    Memory is bounded by `MAX_OWNERS` and `MAX_PARTITIONS`.

    >>> waits = WaitsByGroup()
    >>> waits.add(JobSubmitted(time=0, job_number=1, requested_processors=4, user_id=7), 90)
    >>> list(waits.largest()), dict(waits.histograms())["2 to 8 processors"][:3]
    ([('user 7', Owned(jobs=1, wait=90))], [('60', 0), ('600', 1), ('3600', 1)])
    """

    def __init__(self) -> None:
        self.owners: dict[str, dict[int, Owned]] = {"user": {}, "account": {}}
        self.buckets: dict[str, list[int]] = {}

    def add(self, job: JobSubmitted, wait: int) -> None:
        """Add the wait of an ended job, in seconds."""
        for kind, number in (("user", job.user_id), ("account", job.group_id)):
            owners = self.owners[kind]
            if number is not None and (number in owners or len(owners) < MAX_OWNERS):
                jobs, total = owners.get(number, Owned())
                owners[number] = Owned(jobs + 1, total + wait)

        bucket = bisect_left(WAITS, wait)
        for group in self._groups(job):
            self.buckets.setdefault(group, [0] * (len(WAITS) + 1))[bucket] += 1

    def _groups(self, job: JobSubmitted) -> Iterator[str]:
        yield ALL_JOBS
        yield next((name for most, name in SIZES if job.requested_processors <= most), LARGEST)
        if job.partition_number is not None:
            group = f"partition {job.partition_number}"
            if group in self.buckets or sum(name.startswith("partition") for name in self.buckets) < MAX_PARTITIONS:
                yield group

    def largest(self) -> Iterator[tuple[str, Owned]]:
        """Yield the `SHOWN_OWNERS` users with the most ended jobs, then as many accounts, each with its sums.

        The name of an owner is its kind and number, such as `user 7`.
        """
        for kind, owners in self.owners.items():
            for number, owned in nsmallest(SHOWN_OWNERS, owners.items(), key=lambda item: (-item[1].jobs, item[0])):
                yield f"{kind} {number}", owned

    def histograms(self) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """Yield each group with its cumulative histogram: upper limit in seconds, and number of waits up to it."""
        limits = [*map(str, WAITS), "+Inf"]
        for group, counts in self.buckets.items():
            yield group, list(zip(limits, accumulate(counts), strict=True))

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        owners = {kind: [[number, *owned] for number, owned in of.items()] for kind, of in self.owners.items()}
        return {"owners": owners, "buckets": [[group, list(counts)] for group, counts in self.buckets.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.owners = {
            kind: {number: Owned(jobs, wait) for number, jobs, wait in of} for kind, of in state["owners"].items()
        }
        self.buckets = {group: list(counts) for group, counts in state["buckets"]}


def reasons_for_waiting(
    capacities: MachineCapacity, waiting: Iterable[JobSubmitted], running: Iterable[RunningJob]
) -> Counter[str]:
    """Return how many jobs wait for each reason, zero included; memory and GPUs only if a pool limits them.

    A job has the first reason that applies: blocked, too large, too little free, or other jobs go first.

    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=4)
    >>> reasons_for_waiting(MachineCapacity(8, ()), [job], [])["fits, others go first"]
    1
    """
    sizes, types = list(capacities), capacities.types
    free = [[0 if amount is None else amount for amount in size.amounts] for size in sizes]
    for held in running:
        if held.suspended is None:
            job, of_types = held.submitted, types[held.submitted.pool or 0]
            holds = held.started.processors, job.memory, job.gpus, *by_type(of_types, held.started.gpu_types or ())
            for at, amount in enumerate(holds):
                free[job.pool or 0][at] -= amount or 0

    limiting = [any(size[at] is not None for size in sizes) for at in range(len(NOT_FREE))]
    reasons = [BLOCKED, CAPACITY, *(name for name, limits in zip(NOT_FREE, limiting, strict=True) if limits)]
    counts = Counter(dict.fromkeys([*reasons, OTHERS_FIRST], 0))
    for job in waiting:
        at = job.pool or 0
        counts[_reason(job, sizes[at].amounts, free[at], needed(types[at], job.gpu_type, job.gpus))] += 1
    return counts


def _reason(job: JobSubmitted, size: Sequence[int | None], free: Sequence[int], of_types: Sequence[int]) -> str:
    if job.blocked:
        return BLOCKED
    asked = job.requested_processors, job.memory or 0, job.gpus or 0, *of_types
    reasons = *NOT_FREE, *(NOT_FREE[-1] for _ in of_types)
    limited = [(ask, most, idle, why) for ask, most, idle, why in zip(asked, size, free, reasons, strict=True)]
    if any(most is not None and ask > most for ask, most, _, _ in limited):
        return CAPACITY
    return next((why for ask, most, idle, why in limited if most is not None and ask > max(idle, 0)), OTHERS_FIRST)
