"""EASY backfilling: one reservation, for the first job that does not fit."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from shadowtime.services.scheduler.expected_end import Column, expected_ends
from shadowtime.services.scheduler.forecast_keys import PlanKeys
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.limits import MAX_STARTS
from shadowtime.services.scheduler.orders import CandidateWeight, Order, ranked
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, backfilled, start
from shadowtime.shared.chance import key_of
from shadowtime.shared.events import ClusterOpened, CutShort, Start
from shadowtime.shared.kernel import kernel
from shadowtime.shared.spec import SpecKeys

BEYOND = 1 << 60
"""A time beyond any other: the shadow time of a head that cannot start."""


@kernel("Tuple((int64, int64))(int64, int64, int64[::1], int64[::1])")
def shadow_of(needed: int, free: int, processors: Column, ends: Column) -> tuple[int, int]:
    """Return the shadow time of a job that needs `needed` processors, and the extra processors at that time.

    The shadow time is the earliest at which running jobs (holding `processors`, expected to end at `ends`) will have
    given back enough; every job that ends at that time counts. If all of them are not enough, the time is beyond any
    other and every processor is extra. O(n log n) in the running jobs.

    >>> shadow_of(6, 2, np.array([4, 4]), np.array([100, 200]))
    (100, 0)
    """
    by_end = np.argsort(ends)
    shadow_time, ended = 0, 0
    while free < needed and ended < len(ends):
        free += processors[by_end[ended]]
        shadow_time = ends[by_end[ended]]
        ended += 1
    if free < needed:
        return BEYOND, free
    while ended < len(ends) and ends[by_end[ended]] == shadow_time:
        free += processors[by_end[ended]]
        ended += 1
    return shadow_time, free - needed


@kernel(
    "Tuple((int64, int64, int64, int64[::1]))"
    "(int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1])"
)
def easy_pass(
    now: int,
    free: int,
    processors: Column,
    run_times: Column,
    order: Column,
    running_processors: Column,
    start_times: Column,
    predicted_times: Column,
    adjusted_times: Column,
    requested_times: Column,
    corrections: Column,
) -> tuple[int, int, int, Column]:
    """Return how many jobs start from the head of the queue, the blocked head's shadow, and the backfilled rows.

    Parameters
    ----------
    processors, run_times, order
        Of each waiting job, in order of the queue: size, expected run time in seconds, and the rank by which
        candidates are tried (least first, ties in order of the queue).
    running_processors, start_times, predicted_times, adjusted_times, requested_times, corrections
        Of each running job: size, and what `expected_ends` takes.

    Returns
    -------
    heads, shadow_time, extra_processors, rows
        Rows of the queue in the order in which they are accepted.
    """
    waiting = len(processors)
    heads = 0
    while heads < waiting and processors[heads] <= free:
        free -= processors[heads]
        heads += 1
    rows = np.empty(waiting - heads, dtype=np.int64)
    fitting = 0
    for row in range(heads + 1, waiting):
        if processors[row] <= free:
            rows[fitting] = row
            fitting += 1
    if fitting == 0:
        return heads, 0, 0, rows[:0]
    sizes = np.concatenate((running_processors, processors[:heads]))
    running_ends = expected_ends(now, start_times, predicted_times, adjusted_times, requested_times, corrections)
    ends = np.concatenate((running_ends, now + run_times[:heads]))
    shadow_time, extra = shadow_of(processors[heads], free, sizes, ends)
    # What fails now fails later in the pass too, for free and extra processors only shrink: sort the rest alone.
    able = 0
    for row in rows[:fitting]:
        if now + run_times[row] <= shadow_time or processors[row] <= extra:
            rows[able] = row
            able += 1
    candidates = rows[:able]
    candidates = candidates[np.argsort(order[candidates], kind="mergesort")]
    left = extra
    accepted = 0
    for row in candidates:
        if processors[row] > free:
            continue
        if now + run_times[row] > shadow_time:
            if processors[row] > left:
                continue
            left -= processors[row]
        free -= processors[row]
        rows[accepted] = row
        accepted += 1
    return heads, shadow_time, extra, rows[:accepted]


class EasyKeys(PlanKeys):
    """Settings of `Easy`."""

    order: Order = Field(
        "BF",
        description="in which candidates are tried: as they came, by priority, by random number, shortest first, or "
        "one of the middle two over the estimated run time",
        exclude_if=lambda order: order == "BF",
    )
    weight: CandidateWeight = 0.0


class Easy(Policy):
    """Start the head of the queue while it fits; then start what does not delay the first job that does not.

    A candidate may start if it fits now and either ends by the head's shadow time or takes no more than the extra
    processors. O(queue log queue + running log running) per pass.

    References
    ----------
    Lifka: The ANL/IBM SP scheduling system, JSSPP 1995. Orders: P1, section 3.
    """

    name = "easy"
    Keys: ClassVar[type[SpecKeys]] = EasyKeys

    def __init__(self, keys: Any) -> None:
        self.keys = keys
        self.on_requests = isinstance(keys, PlanKeys) and keys.plan == "requested"
        self.steady = not isinstance(keys, EasyKeys) or (keys.order[0] != "R" and not keys.weight)
        """Whether candidates never change places as time passes."""
        self.chance = 0

    def open(self, opened: ClusterOpened) -> None:
        """Take note of the run: draws of chance are its own."""
        self.chance = key_of(opened.seed, opened.cluster)

    def order(self, now: int, queue: Queue) -> Column:
        """Return the rank of each waiting job as a candidate."""
        if self.keys.order == "BF":
            return np.arange(len(queue))
        rank = np.empty(len(queue), dtype=np.int64)
        times = self.order_times(queue)
        rank[ranked(now, queue, times, self.keys.order, self.keys.weight, self.chance)] = np.arange(len(queue))
        return rank

    def order_times(self, queue: Queue) -> Column:
        """Return the run times in seconds that order the queue."""
        return queue.order_request if self.on_requests else queue.order_time

    def rows(self, now: int, queue: Queue) -> Column | None:
        """Return the rows of the queue in the order in which all are served, candidates too; None: as submitted."""
        return None

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> Sequence[Start | CutShort]:
        """Return the starts of one pass: heads that fit, then backfilled candidates."""
        if free <= 0 or not len(queue):
            return []
        processors, run_times = queue.processors, queue.requested_time if self.on_requests else queue.predicted_time
        served: Sequence[int] = range(len(queue))
        rows = self.rows(now, queue)
        if rows is None:
            order = self.order(now, queue)
        else:
            processors, run_times, order = processors[rows], run_times[rows], np.arange(len(queue))
            served = rows.tolist()
        heads, shadow_time, extra, accepted = easy_pass(
            now,
            free,
            processors,
            run_times,
            order,
            running.processors,
            running.start_time,
            running.requested_time if self.on_requests else running.predicted_time,
            running.adjusted_time,
            running.requested_time,
            running.corrections,
        )
        starts = [start(queue, row, FITS_NOW) for row in served[: min(heads, MAX_STARTS)]]
        if heads + len(accepted) > MAX_STARTS:
            left = CutShort(by="starts", left=heads + len(accepted) - MAX_STARTS)
            accepted = accepted[: MAX_STARTS - len(starts)]
        else:
            left = None
        if not len(accepted):
            return starts if left is None else [*starts, left]
        head = int(queue.job_number[served[heads]])
        for place in accepted.tolist():
            expected_end = now + int(run_times[place])
            reason = backfilled(head, shadow_time, extra, now, expected_end)
            starts.append(start(queue, served[place], reason))
            if not reason.ends_by_shadow_time:
                extra -= int(processors[place])
        return starts if left is None else [*starts, left]


class EasySjbf(Easy):
    """EASY that tries its candidates shortest first, by predicted run time (shortest job backfilled first).

    References
    ----------
    Tsafrir, Etsion, Feitelson: Backfilling using system-generated predictions rather than user runtime estimates,
    IEEE TPDS 18(6), 2007, section 5.
    """

    name = "easy-sjbf"
    Keys = PlanKeys

    def order(self, now: int, queue: Queue) -> Column:
        """Return the run times that order the queue."""
        return self.order_times(queue)
