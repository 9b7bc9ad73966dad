"""Explanation of a wait: jobs ahead, the lacking resource, jobs that must end, refusals, requests that start sooner.

The explanation follows from the log alone: the queue in the policy's order of service, the running jobs with their
predictions, and the decisions of passes. `Ahead.told` says whether the policy serves its queue in a known order.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.explain.release_time import endings
from shadowtime.services.scheduler.explain.what_if import MAX_QUEUE, WhatIf
from shadowtime.services.scheduler.history import DecisionHistory
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler
from shadowtime.services.scheduler.probabilistic import PassState, ProbabilisticSettings
from shadowtime.services.scheduler.tables import NEVER, fitting_together
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import Integers, shadow_of
from shadowtime.shared.messages import MAX_NAMED_JOBS, Ahead, Refused, Shadow, construct_unchecked


@dataclass
class ServiceOrder:
    """The waiting jobs of a pool in the order of service. Jobs whose start is decided count as running."""

    rows: Integers
    """Rows of the waiting jobs in the queue."""
    known: bool
    """Whether the policy serves in this order. If not, the jobs are in order of arrival."""
    idle: Integers
    """Free amount of each resource."""
    busy: PassState
    """The running jobs."""
    heads: int
    """Number of jobs, from the first on, that fit together into the free resources. A pass would start them."""
    job_numbers: Integers
    first: int | None
    """Number of the job that starts once it fits: the first that does not fit now. None if all fit, or if unknown."""

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each waiting job in the order of service, from 0, by its number."""
        return {number: at for at, number in enumerate(self.job_numbers.tolist())}

    @cached_property
    def before(self) -> Integers:
        """The processors that the jobs before each place request together."""
        sums: Integers = np.concatenate(([0], np.cumsum(self.busy.queue.processors[self.rows])))
        return sums

    def fits_at(self, size: Integers) -> int | None:
        """Return the time in seconds at which this size fits by the expected ends of running jobs; None if never."""
        key = tuple(size.tolist())
        if key not in self._fits:
            self._fits[key] = self.busy.fits_at(size, self.idle)
        return self._fits[key]

    @cached_property
    def _fits(self) -> dict[tuple[int, ...], int | None]:
        return {}

    @cached_property
    def shadows(self) -> dict[int, tuple[int, int]]:
        """The shadow time and the extra processors of each head so far, by its row in the queue."""
        return {}


class RoomAhead(NamedTuple):
    """The first possible start of a waiting job."""

    fits_at: int | None
    """Time in seconds at which the job fits by the expected ends of running jobs; None if never."""
    goes_first: bool
    """Whether the job starts once it fits (`ServiceOrder.first`)."""


def line_of(pool: PoolScheduler, now: int, passes: DecisionHistory) -> ServiceOrder:
    """Return the queue of a pool in the order of service. O(queue log queue + running)."""
    queue = pool.queue
    idle, busy = pool.idle, PassState(now, queue, pool.running)
    served = pool.policy.served(now, queue, idle)
    rows = np.arange(len(queue)) if served is None else served
    if passes.starting:
        starts = np.isin(queue.job_number, list(passes.starting))
        idle = idle - queue.sizes[starts].sum(axis=0)
        busy.add(np.flatnonzero(starts))
        rows = rows[~starts[rows]]

    heads, job_numbers = fitting_together(idle, queue.sizes[rows]), queue.job_number[rows]
    if served is None:
        first = passes.named_head(set(job_numbers.tolist()))
    else:
        first = int(job_numbers[heads]) if heads < len(rows) else None
    return ServiceOrder(rows, served is not None, idle, busy, heads, job_numbers, first)


def waiting(
    pool: PoolScheduler,
    line: ServiceOrder,
    number: int,
    now: int,
    passes: DecisionHistory,
    what_if: WhatIf | None,
    order: str,
    *,
    brief: bool,
) -> dict[str, Any]:
    """Return the fields of an `Explanation` of a waiting job that is not blocked, and its `RoomAhead` as `room`.

    Parameters
    ----------
    line
        The queue of the pool, by `line_of`.
    what_if
        Passes over a copy of the pool; None if other requests need not be tried, or the state of the policy is unknown.
    order
        The policy's name for the order of its queue.
    brief
        Whether to leave out the running jobs that must end, and other requests. They cost more than all other fields.
    """
    queue, at = pool.queue, line.places.get(number, 0)
    row, size = int(line.rows[at]), queue.sizes[line.rows[at]]
    fields: dict[str, Any] = {
        "ahead": construct_unchecked(
            Ahead,
            order=order if line.known else "arrival",
            told=line.known,
            jobs=at,
            processors=int(line.before[at]),
            job_numbers=tuple(line.job_numbers[: min(at, MAX_NAMED_JOBS)].tolist()),
        ),
        "refused": refused_of(pool, number, passes),
        "room": RoomAhead(line.fits_at(size), goes_first=number == line.first),
    }
    if what_if is not None and number in what_if.started:
        return fields | {"waits_for": "pass"}
    kinds = [*((what, None) for what in ("processors", *pool.further)), *(("gpus", name) for name in pool.types)]
    lacking = [
        (asks > total, {"asked": int(asks), "free": int(free), "resource": what, "of_type": of_type})
        for (what, of_type), asks, total, free in zip(kinds, size, pool.amounts, line.idle, strict=True)
        if asks > max(free, 0)
    ]
    if lacking:
        short, first = min(lacking, key=lambda lack: lack[1]["resource"] == "gpus" and not lack[1]["of_type"])
        fields |= {"waits_for": "capacity" if short else first["resource"], **first}
    else:
        fields["waits_for"] = "pass" if line.known and at < line.heads else "head"

    fits = fields["waits_for"] in ("head", "pass")
    blocked = line.rows[line.heads] if line.known and line.heads < len(line.rows) else None
    needs = row if not fits else blocked
    if not brief and fields["waits_for"] not in ("capacity", "pass") and needs is not None:
        fields["ends"] = endings(int(queue.job_number[needs]), queue.sizes[needs], line.idle, line.busy)
    shadow = None
    if fits and blocked is not None and blocked != row and at > line.heads:
        shadow = fields["shadow"] = shadow_behind(pool, int(blocked), row, line)
    if not brief and what_if is not None and fields["waits_for"] not in ("capacity", "pass"):
        seconds = None if shadow is None or shadow.shadow_time is None else shadow.shadow_time - now
        fields |= {"sooner": tuple(what_if.sooner(number, seconds)), "tried": len(queue) <= MAX_QUEUE}
    return fields


def shadow_behind(pool: PoolScheduler, head: int, row: int, line: ServiceOrder) -> Shadow | None:
    """Return the head's reservation; None if the policy does not backfill as EASY does. O(running log running).

    `head` and `row` are rows of the queue: the first job that does not fit, and the job to explain.
    """
    policy, queue, busy = pool.policy, pool.queue, line.busy
    if not policy.as_easy:
        return None
    on_requests = isinstance(policy.settings, ProbabilisticSettings) or getattr(policy, "on_requests", False)
    ends = busy.requested_ends if on_requests else busy.expected_ends
    times = queue.requested_time if on_requests else queue.predicted_time
    if head not in line.shadows:
        idle = line.idle - queue.sizes[line.rows[: line.heads]].sum(axis=0)
        reserved, left = shadow_of(queue.sizes[head], idle, busy.sizes, ends)
        line.shadows[head] = int(reserved), int(left[0])
    time, extra = line.shadows[head]
    return Shadow(
        head=int(queue.job_number[head]),
        shadow_time=time if time - busy.now <= MAX_DURATION else None,
        extra_processors=extra,
        planned_end=None if times[row] >= NEVER else busy.now + int(times[row]),
        plan="requested" if on_requests else "predicted",
    )


def refused_of(pool: PoolScheduler, number: int, passes: DecisionHistory) -> tuple[Refused, ...]:
    """Return the last passes that evaluated a job and did not start it; empty unless the policy is probabilistic."""
    settings = pool.policy.settings
    if not isinstance(settings, ProbabilisticSettings):
        return ()
    return tuple(
        Refused(**candidate._asdict(), criterion=settings.criterion, tau=settings.tau)
        for candidate in passes.refused.get(number, ())
    )
