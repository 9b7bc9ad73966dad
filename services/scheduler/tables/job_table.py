"""The queue and the running jobs as columns of whole numbers, for compiled passes."""

from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.expected_end import RunningJobs, RunningTable, WaitingTable
from shadowtime.services.scheduler.tables.histograms import Histograms
from shadowtime.shared.kernels import Floats, Integers, IntegerTable, kernel
from shadowtime.shared.messages import RunTimePrediction, WalltimeAdjustment

# How a row enters a table of jobs.


@kernel
def insert_row(table: IntegerTable, size: int, row: Integers) -> None:
    """Put a job where it belongs among the first `size` rows of a table, shape (columns, more rows than that).

    Job numbers come first, then times of submission; rows are in order of (submit time, job number). O(size).

    >>> import numpy as np
    >>> table = np.array([[3, 1, 0], [10, 20, 0]])
    >>> insert_row(table, 2, np.array([4, 10]))
    >>> table.tolist()
    [[3, 4, 1], [10, 10, 20]]
    """
    at = size
    while at > 0 and (table[1, at - 1], table[0, at - 1]) > (row[1], row[0]):
        at -= 1
    for column in range(len(table)):
        for index in range(size, at, -1):
            table[column, index] = table[column, index - 1]
        table[column, at] = row[column]


# How a row leaves a table of jobs.


@kernel
def remove_row(table: IntegerTable, size: int, job_number: int) -> None:
    """Close the gap that a job leaves in the first `size` rows of a table, shape (columns, rows), job numbers first."""
    at = 0
    while table[0, at] != job_number:
        at += 1
    for column in range(len(table)):
        gap, after = table[column, at : size - 1], table[column, at + 1 : size]
        for row in range(len(gap)):  # over slices from 0 on, which compiles to a memory move
            gap[row] = after[row]


# The times that a job is planned with, each as it is and as its adjusted request has it.


class PlannedTimes(NamedTuple):
    """Whole seconds that a job may be planned with, each once as it is and once at most its adjusted request."""

    requested_time: int
    adjusted_time: int
    predicted_time: int
    adjusted_prediction: int


def planned_times(
    requested_time: int, prediction: RunTimePrediction | None, adjustment: WalltimeAdjustment | None
) -> PlannedTimes:
    """Return the times of a job with this request, what is predicted of it, and its adjusted request.

    A prediction counts as at least a second and at most the request, which stands for one that is not there.

    >>> adjustment = WalltimeAdjustment(adjusted_time=60, observations=12)
    >>> tuple(planned_times(100, RunTimePrediction(point=80.5, observations=2), adjustment))
    (100, 60, 80, 60)
    >>> tuple(planned_times(100, None, None))
    (100, 100, 100, 100)
    """
    adjusted_time = requested_time if adjustment is None else min(adjustment.adjusted_time, requested_time)
    predicted_time = requested_time if prediction is None else min(max(int(prediction.point), 1), requested_time)
    return PlannedTimes(requested_time, adjusted_time, predicted_time, min(predicted_time, adjusted_time))


NEVER = 1 << 40
"""Seconds that no job waits or runs (`bounds.MAX_DURATION` is shorter): stands for a request that was not made."""

NUMBER, SUBMIT, SIZE, REQUESTED, ADJUSTED, PREDICTED, SHORTENED, SLOT, START = range(9)
"""Columns: job number, time of submission, processors, the job's `PlannedTimes`, slot of its histogram, start."""


class JobTable:
    """Jobs in order of (submit time, job number), one row each.

    Adding a job at the end costs O(1) amortised, anywhere else or removing one O(jobs) of a memory move. Columns are
    views: valid until the next change, and not to be written to. A row has the times of a job both as they are and as
    its adjusted request has them, so that it keeps them wherever it goes; `predicted_time` and `limit_time` are those
    that the policy's settings choose for the jobs of this table.

    Parameters
    ----------
    histograms
        Run-time distributions, by slot.
    distribution
        What adjusted requests are to run-time distributions.
    shorten
        Whether the predicted times of these jobs are at most their adjusted requests.
    further
        Resources beside processors that limit jobs; a row ends with what its job takes of each.
    """

    COLUMNS: tuple[str, ...] = ("job_number", "submit_time", "processors", *PlannedTimes._fields, "slot")

    def __init__(self, histograms: Histograms | None, distribution: str, *, shorten: bool, further: int) -> None:
        self.histograms = Histograms() if histograms is None else histograms
        self._predicted = SHORTENED if shorten else PREDICTED
        self._limit = ADJUSTED if shorten and distribution == "limit" else REQUESTED
        self._further = further
        self.table = np.zeros((len(self.COLUMNS) + further, 64), dtype=np.int64)
        """The columns, of which the first `len(self)` places are taken; not to be written to."""
        self._size = 0
        self.rows: dict[int, tuple[int, ...]] = {}
        """By job number."""
        self._least: int | None = None  # until it is asked for

    def __len__(self) -> int:
        return self._size

    @property
    def least(self) -> int:
        """Processors of the smallest job, where there is one; if fewer are idle, nothing fits. Mostly O(1)."""
        self._least = self._least or int(self.processors.min())
        return self._least

    @property
    def by_processors(self) -> bool:
        """Whether nothing but processors limits jobs."""
        return not self._further

    @property
    def job_number(self) -> Integers:
        """Job numbers."""
        return self.table[NUMBER, : self._size]

    @property
    def submit_time(self) -> Integers:
        """Times of submission, in seconds."""
        return self.table[SUBMIT, : self._size]

    @property
    def processors(self) -> Integers:
        """Processors requested, or held."""
        return self.table[SIZE, : self._size]

    @property
    def sizes(self) -> IntegerTable:
        """Requested or held amounts of each resource, shape (jobs, resources): processors, then further ones."""
        if not self._further:
            return self.table[SIZE, : self._size, np.newaxis]
        return self.table[[SIZE, *range(len(self.COLUMNS), len(self.table))], : self._size].T.copy()

    @property
    def requested_time(self) -> Integers:
        """Requested run times in seconds; `NEVER` where none was made."""
        return self.table[REQUESTED, : self._size]

    @property
    def predicted_time(self) -> Integers:
        """Predicted run times in seconds, at least 1 and at most the request; the request where none is known."""
        return self.table[self._predicted, : self._size]

    @property
    def limit_time(self) -> Integers:
        """Upper ends of run-time distributions in seconds, at most the request; `NEVER` where none was made."""
        return self.table[self._limit, : self._size]

    @property
    def slot(self) -> Integers:
        """Where `histograms` has the job's run-time distribution; `UNKNOWN` where there is none."""
        return self.table[SLOT, : self._size]

    def add(self, row: tuple[int, ...]) -> None:
        """Insert a job where it belongs; `row` has a number per column."""
        if self._size == self.table.shape[1]:
            self.table = np.concatenate([self.table, np.zeros_like(self.table)], axis=1)
        insert_row(self.table, self._size, np.array(row))
        self.rows[row[NUMBER]] = row
        self._size += 1
        self._least = self._least and min(self._least, row[SIZE])

    def remove(self, job_number: int) -> tuple[int, ...]:
        """Take a job out and return its row."""
        remove_row(self.table, self._size, job_number)
        self._size -= 1
        row = self.rows.pop(job_number)
        self._least = None if row[SIZE] == self._least else self._least
        return row

    def row(self, job_number: int) -> tuple[int, ...] | None:
        """Return the row of a job, a number per column; None if it is not here."""
        return self.rows.get(job_number)

    def snapshot(self) -> Any:
        """Return the rows as plain numbers."""
        return self.table[:, : self._size].T.tolist()

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._size, self._least = 0, None
        self.rows.clear()
        for row in state:
            self.add(tuple(row))


class Queue(JobTable):
    """The waiting jobs; see `JobTable`.

    Parameters
    ----------
    settings
        What the policy makes of adjusted requests.
    further
        As of `JobTable`.
    """

    def __init__(
        self, histograms: Histograms | None = None, settings: PolicySettings | None = None, further: int = 0
    ) -> None:
        settings = settings or PolicySettings()
        super().__init__(histograms, settings.distribution, shorten=settings.adjust_candidates, further=further)
        self._order_time = SHORTENED if settings.adjust_queue else PREDICTED
        self._order_request = ADJUSTED if settings.adjust_queue else REQUESTED
        self.fractions: dict[int, float] = {}
        """Of jobs in the system, waiting or not: what their predictions have beyond whole seconds."""
        self.priorities: dict[int, int] = {}
        """And the site's priorities, of those that have one."""

    def packed(self, *, on_requests: bool) -> WaitingTable:
        """Return the table as it is, for passes by processors alone; planned with by predictions, or by requests."""
        return WaitingTable(self.table, self._size, REQUESTED if on_requests else self._predicted)

    @property
    def order_point(self) -> Floats:
        """Run times as `order_time` has them, with the fractions of predicted seconds."""
        times = self.order_time.astype(np.float64)
        if self.fractions:
            whole = self.order_time == self.table[PREDICTED, : self._size]
            times += whole * np.array([self.fractions.get(number, 0.0) for number in self.job_number.tolist()])
        return times

    @property
    def order_time(self) -> Integers:
        """Run times in seconds by which jobs are put in order: predictions, or requests where none is known."""
        return self.table[self._order_time, : self._size]

    @property
    def order_request(self) -> Integers:
        """Requests in seconds by which jobs are put in order."""
        return self.table[self._order_request, : self._size]


class Running(JobTable):
    """The running jobs.

    Parameters
    ----------
    corrections
        Seconds by which each correction of an outlived prediction exceeds it, rising; see `expected_ends`.
    settings
        What the policy makes of adjusted requests.
    further
        As of `JobTable`.
    """

    COLUMNS = (*JobTable.COLUMNS, "start_time")

    def __init__(
        self,
        corrections: tuple[int, ...] = (),
        histograms: Histograms | None = None,
        settings: PolicySettings | None = None,
        further: int = 0,
    ) -> None:
        settings = settings or PolicySettings()
        super().__init__(histograms, settings.distribution, shorten=settings.running, further=further)
        self.idle: Integers = np.zeros(1 + further, dtype=np.int64)
        """Free amount of each resource; for further resources as of the last pass; below zero as processors may be."""
        self.corrections: Integers = np.array(corrections, dtype=np.int64)
        self._adjusted = ADJUSTED if settings.running else REQUESTED

    @property
    def adjusted_time(self) -> Integers:
        """Requests in seconds past which `GRACE` is given: adjusted ones, where running jobs are planned with them."""
        return self.table[self._adjusted, : self._size]

    @property
    def start_time(self) -> Integers:
        """Times of start, in seconds."""
        return self.table[START, : self._size]

    def packed(self, *, on_requests: bool) -> RunningTable:
        """Return the table as it is, for passes by processors alone; planned with by predictions, or by requests."""
        planned = REQUESTED if on_requests else self._predicted
        return RunningTable(self.table, self._size, planned, self._adjusted, self.corrections)

    def jobs(self, *, on_requests: bool) -> RunningJobs:
        """Return what passes take of the running jobs; they are planned with by their predictions, or by requests."""
        table = self.table[:, : self._size]
        planned = table[REQUESTED if on_requests else self._predicted]
        sizes = self.sizes if self._further else table[SIZE, :, np.newaxis]
        return RunningJobs(sizes, table[START], planned, table[self._adjusted], table[REQUESTED], self.corrections)

    def free(self, processors: int) -> Integers:
        """Return what is free of each resource where so many processors are idle, shape (resources,); a view."""
        self.idle[0] = processors
        return self.idle

    def once_started(self, queue: Queue) -> tuple[Integers, Integers, Integers]:
        """Return predicted, adjusted and requested times that waiting jobs are planned with once they run."""
        predicted, adjusted = queue.table[self._predicted], queue.table[self._adjusted]
        return predicted[: len(queue)], adjusted[: len(queue)], queue.requested_time
