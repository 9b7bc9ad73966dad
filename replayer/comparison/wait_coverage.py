"""Waits next to the bounds predicted at submission, and confidence intervals of the coverage of these bounds."""

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Envelope, JobEnded, JobStarted, JobSubmitted, JobWithdrawn, moment
from shadowtime.shared.statistics import Interval, mean_over_time

NO_BOUND = -1


class BoundedWaits:
    """An observer that records the submit time, wait and whole-cluster bounds of each job with a known wait."""

    def __init__(self) -> None:
        self._groupings: dict[str, int] = {}
        self._started: dict[int, int] = {}
        self._open: dict[int, tuple[int, list[int]]] = {}
        self._rows = array("q")

    def __call__(self, envelope: Envelope) -> None:
        """Record the event of an envelope."""
        event = envelope.event
        if isinstance(event, JobSubmitted) and envelope.wait_bounds:
            bounds = {
                wait_bound.grouping: wait_bound.bound for wait_bound in envelope.wait_bounds if wait_bound.queue is None
            }
            if not self._groupings:
                self._groupings = {grouping: place for place, grouping in enumerate(bounds)}
            of_groupings = [bounds.get(grouping) for grouping in self._groupings]
            self._open[event.job_number] = event.since, [NO_BOUND if bound is None else bound for bound in of_groupings]
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
        if job_number in self._open and start_time is not None:
            submit_time, found_bounds = self._open.pop(job_number)
            self._rows.extend((submit_time, start_time - submit_time, *found_bounds))

    def by_grouping(self) -> Mapping[str, Integers]:
        """Return for each grouping the jobs with a bound, shape (n, 3): submit time, wait and bound, in seconds."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 2 + len(self._groupings))
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return {
            grouping: rows[rows[:, 2 + place] != NO_BOUND][:, [0, 1, 2 + place]]
            for grouping, place in self._groupings.items()
        }

    def coverage(self, key: int) -> Mapping[str, Interval]:
        """Return for each grouping the share of waits within their bounds, with a 95 % interval of the block bootstrap.

        `key` is the key of the seeded random numbers.
        """
        return {
            grouping: mean_over_time((rows[:, 1] <= rows[:, 2]).astype(np.float64), rows[:, 0], key).within(0, 1)
            for grouping, rows in self.by_grouping().items()
            if len(rows)
        }


def coverage_told(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence on bounds that cover fewer waits than stated, and whether the deficit may be chance.

    The sentence is empty if no row has a confidence interval.

    Parameters
    ----------
    rows
        Rows of `wait_bounds` in the JSON document of a comparison.

    Examples
    --------
    >>> row = {"grouping": "plain", "quantile": 0.95, "coverage": 0.93, "coverage_low": 0.9, "coverage_high": 0.96}
    >>> coverage_told([row])
    'Below the 95 % that is stated, which may be chance: plain.'
    """
    known = [row for row in rows if row["coverage_high"] is not None]
    if not known:
        return ""
    stated = f"the {100 * known[0]['quantile']:g} % that is stated"
    below = [row for row in known if row["coverage"] < row["quantile"]]
    surely = [row["grouping"] for row in below if row["coverage_high"] < row["quantile"]]
    perhaps = [row["grouping"] for row in below if row["grouping"] not in surely]
    notes = [f"Below {stated}: {', '.join(surely)}."] if surely else []
    if len(perhaps) == len(known) > 1:
        return f"All are below {stated}, which may be chance."
    if perhaps:
        notes.append(f"Below {stated}, which may be chance: {', '.join(perhaps)}.")
    return " ".join(notes) or f"All cover {stated}."
