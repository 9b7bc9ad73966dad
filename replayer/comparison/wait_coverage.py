"""Waits next to the bounds predicted at submission, and confidence intervals of the coverage of these bounds."""

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Envelope, JobEnded, JobStarted, JobSubmitted, JobWithdrawn, WaitRanges, moment
from shadowtime.shared.statistics import Interval, mean_over_time

NO_BOUND = -1


class BoundedWaits:
    """An observer that records the submit time, wait and bounds of each job with a known wait.

    `queue` is the queue of the bounds; None for those of the whole cluster.
    """

    def __init__(self, queue: int | None = None) -> None:
        self._queue = queue
        self.ranges: dict[tuple[str, int | None], WaitRanges] = {}
        """The latest ranges of processors of each grouping, for the cluster and for each queue."""
        self._groupings: dict[str, int] = {}
        self._started: dict[int, int] = {}
        self._open: dict[int, tuple[int, list[int]]] = {}
        self._rows = array("q")

    def __call__(self, envelope: Envelope) -> None:
        """Record the event of an envelope."""
        event = envelope.event
        for ranges in envelope.wait_ranges or ():
            self.ranges[ranges.grouping, ranges.queue] = ranges
        if isinstance(event, JobSubmitted) and envelope.wait_bounds:
            bounds = {
                wait_bound.grouping: wait_bound.bound
                for wait_bound in envelope.wait_bounds
                if wait_bound.queue == self._queue
            }
            if not bounds:
                return
            if not self._groupings:
                self._groupings = {grouping: place for place, grouping in enumerate(bounds)}
            self._open[event.job_number] = (
                event.since,
                [NO_BOUND if (bound := bounds.get(grouping)) is None else bound for grouping in self._groupings],
            )
        elif isinstance(event, JobWithdrawn):
            self._open.pop(event.job_number, None)
        elif isinstance(event, JobStarted):
            self._started[event.job_number] = moment(event)
            if not event.trial:
                self._reveal(event.job_number)
        elif isinstance(event, JobEnded) and not event.requeued:
            self._reveal(event.job_number)  # the start of a trial run counts only if the job is not requeued

    def _reveal(self, job_number: int) -> None:
        start_time = self._started.pop(job_number, None)
        if start_time is not None and (kept := self._open.pop(job_number, None)) is not None:
            submit_time, bounds = kept
            self._rows.extend([submit_time, start_time - submit_time, *bounds])

    def by_grouping(self) -> Mapping[str, Integers]:
        """Return for each grouping the jobs with a bound, in order of submission, shape (n, 3).

        The columns are submit time, wait and bound, in seconds.
        """
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 2 + len(self._groupings))
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return {
            grouping: rows[rows[:, 2 + place] != NO_BOUND][:, [0, 1, 2 + place]]
            for grouping, place in self._groupings.items()
        }

    def coverage(self, key: int) -> Mapping[str, Interval]:
        """Return for each grouping the share of waits within their bounds, with a 95 % interval of the block bootstrap.

        There is no interval if all bounds hold, or none, because the jobs do not show how often the other case happens.
        A grouping without jobs is left out. `key` is the key of the seeded random numbers.
        """
        shares = {}
        for grouping, rows in self.by_grouping().items():
            if len(rows):
                share = mean_over_time((rows[:, 1] <= rows[:, 2]).astype(np.float64), rows[:, 0], key).within(0, 1)
                shares[grouping] = share if 0 < share.mean < 1 else Interval(share.mean, None, None)
        return shares


def coverage_shortfall(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return sentences on bounds that cover fewer waits than stated, and whether the deficit may be chance.

    Rows without a confidence interval, such as those of queues, count too. The result is empty if no row has a
    coverage.

    Parameters
    ----------
    rows
        Rows of `wait_bounds` in the JSON document of a comparison.

    Examples
    --------
    >>> row = {"grouping": "plain", "quantile": 0.95, "coverage": 0.93, "coverage_low": 0.9, "coverage_high": 0.96}
    >>> coverage_shortfall([row])
    'Below the 95 % that is stated, which may be chance: plain.'
    """
    known = [row for row in rows if row["coverage"] is not None]
    if not known:
        return ""
    quantiles = dict.fromkeys(row["quantile"] for row in known)
    stated = f"the {' or '.join(f'{100 * quantile:g}' for quantile in quantiles)} % that is stated"
    below: dict[str, list[str]] = {"": [], ", which may be chance": [], ", without an interval": []}
    for row in known:
        if row["coverage"] < row["quantile"]:
            high = row["coverage_high"]
            kind = (
                ", without an interval" if high is None else "" if high < row["quantile"] else ", which may be chance"
            )
            queue = row.get("queue", "all")
            of_queue = "" if queue == "all" else f" of queue {queue} ({100 * row['coverage']:.1f} %)"
            below[kind].append(f"{row['grouping']}{of_queue}")

    if len(below[", which may be chance"]) == len(known) > 1:
        return f"All are below {stated}, which may be chance."
    notes = [f"Below {stated}{kind}: {', '.join(names)}." for kind, names in below.items() if names]
    return " ".join(notes) or f"All cover {stated}."
