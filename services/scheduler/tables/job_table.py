"""The queue and the running jobs as columns of whole numbers, for compiled passes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.expected_end import RunningJobs, RunningTable, WaitingTable
from shadowtime.services.scheduler.tables.histograms import Histograms
from shadowtime.shared.kernels import Floats, Integers, IntegerTable, inlined, kernel
from shadowtime.shared.messages import RunTimePrediction, WalltimeAdjustment

# Insertion of a row into a table of jobs.


@kernel
def insert_row(table: IntegerTable, size: int, row: Integers) -> None:
    """Insert a job in order among the first `size` rows of a table, shape (columns, at least `size` + 1).

    The first column holds job numbers, the second times of submission. Rows are in order of (submit time, job number).
    O(size).

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


# Removal of a row from a table of jobs.


@kernel
def remove_row(table: IntegerTable, size: int, job_number: int) -> None:
    """Remove a job from the first `size` rows of a table, shape (columns, rows). O(size).

    The first column holds job numbers. The job must be in the table.
    """
    at = 0
    while table[0, at] != job_number:
        at += 1
    for column in range(len(table)):
        gap, after = table[column, at : size - 1], table[column, at + 1 : size]
        for row in range(len(gap)):  # over slices from 0 on, which compiles to a memory move
            gap[row] = after[row]


# Replacement of rows whose jobs keep their place.


@kernel
def replace_rows(table: IntegerTable, size: int, rows: IntegerTable) -> None:
    """Replace rows among the first `size` of a table by rows of the same jobs. O(rows * log size).

    `rows` has a row for each job, shape (jobs, columns). Each job must be in the table, with the same submit time.

    >>> import numpy as np
    >>> table = np.array([[3, 4, 1], [10, 10, 20], [7, 7, 7]])
    >>> replace_rows(table, 3, np.array([[4, 10, 9]]))
    >>> table[2].tolist()
    [7, 9, 7]
    """
    for job in range(len(rows)):
        low, high = 0, size - 1
        while low < high:
            middle = (low + high) // 2
            if (table[1, middle], table[0, middle]) < (rows[job, 1], rows[job, 0]):
                low = middle + 1
            else:
                high = middle

        table[:, low] = rows[job]


# Planning times of a job, without and with its adjusted request.


class PlannedTimes(NamedTuple):
    """Planning times of a job in whole seconds: request and prediction, each without and with the adjusted request."""

    requested_time: int
    adjusted_time: int
    predicted_time: int
    adjusted_prediction: int


def planned_times(
    requested_time: int, prediction: RunTimePrediction | None, adjustment: WalltimeAdjustment | None
) -> PlannedTimes:
    """Return the planning times of a job from its request, its prediction and its adjusted request.

    A prediction counts as at least a second and at most the request. A missing prediction counts as the request.

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
"""Seconds beyond any wait or run time (`bounds.MAX_DURATION` is shorter); stands for a missing request."""

NUMBER, SUBMIT, SIZE, REQUESTED, ADJUSTED, PREDICTED, SHORTENED, SLOT, START = range(9)
"""Columns: job number, time of submission, processors, the job's `PlannedTimes`, slot of its histogram, start."""


@inlined
def columns_of(running: RunningTable) -> RunningJobs:
    """Return the columns of running jobs in a table, for kernels. Their sizes are processors alone."""
    table, jobs = running.table, running.jobs
    return RunningJobs(
        table[SIZE][:jobs].reshape((jobs, 1)),
        table[START][:jobs],
        table[running.planned][:jobs],
        table[running.adjusted][:jobs],
        table[REQUESTED][:jobs],
        running.corrections,
    )


class JobTable:
    """Jobs in order of (submit time, job number), one row each.

    Adding a job at the end costs O(1) amortised. Adding one elsewhere, or removing one, moves O(jobs) memory. Columns
    are views: they are valid until the next change, and must not be written to. A row keeps all `PlannedTimes` of a
    job, so it can move from table to table. The policy's settings choose which of them are `predicted_time` and
    `limit_time` in this table.

    Parameters
    ----------
    histograms
        Run-time distributions, by slot.
    distribution
        Use of adjusted requests for run-time distributions, see `PolicySettings`.
    shorten
        Whether the predicted times of these jobs are at most their adjusted requests.
    further
        Number of resources beside processors that limit jobs. A row ends with the amount that its job takes of each.
    """

    COLUMNS: tuple[str, ...] = ("job_number", "submit_time", "processors", *PlannedTimes._fields, "slot")

    def __init__(self, histograms: Histograms | None, distribution: str, *, shorten: bool, further: int) -> None:
        self.histograms = Histograms() if histograms is None else histograms
        self._predicted = SHORTENED if shorten else PREDICTED
        self._limit = ADJUSTED if shorten and distribution == "limit" else REQUESTED
        self._further = further
        self.table = np.zeros((len(self.COLUMNS) + further, 64), dtype=np.int64)
        """The columns; the first `len(self)` entries of each are in use. They must not be written to."""
        self._size = 0
        self.rows: dict[int, tuple[int, ...]] = {}
        """Rows by job number."""
        self._least: int | None = None  # computed on demand

    def __len__(self) -> int:
        return self._size

    def __getattr__(self, name: str) -> Any:
        """Name the columns where a policy reads one that does not exist."""
        columns = ", ".join(column for column in self.COLUMNS if hasattr(type(self), column))
        raise AttributeError(f"{type(self).__name__.lower()} has no column {name!r}; it has {columns}")

    @property
    def least(self) -> int:
        """Processors of the smallest job: if fewer are idle, no job fits. The table must not be empty. Mostly O(1)."""
        self._least = self._least or int(self.processors.min())
        return self._least

    @property
    def by_processors(self) -> bool:
        """Whether processors are the only resource that limits jobs."""
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
        """Processors that waiting jobs request, or that running jobs hold."""
        return self.table[SIZE, : self._size]

    @property
    def sizes(self) -> IntegerTable:
        """Requested or held amount of each resource, shape (jobs, resources); processors come first."""
        if not self._further:
            return self.table[SIZE, : self._size, np.newaxis]
        return self.table[[SIZE, *range(len(self.COLUMNS), len(self.table))], : self._size].T.copy()

    @property
    def requested_time(self) -> Integers:
        """Requested run times in seconds; `NEVER` for a job without a request."""
        return self.table[REQUESTED, : self._size]

    @property
    def predicted_time(self) -> Integers:
        """Predicted run times in seconds: at least 1, at most the request, and with `shorten` the adjusted request.

        A job without a prediction has its request instead.
        """
        return self.table[self._predicted, : self._size]

    @property
    def limit_time(self) -> Integers:
        """Upper ends of run-time distributions in seconds, at most the request; `NEVER` without a request."""
        return self.table[self._limit, : self._size]

    @property
    def slot(self) -> Integers:
        """Slots in `histograms` of the run-time distributions; `UNKNOWN` for a job without one."""
        return self.table[SLOT, : self._size]

    def fill(self, table: IntegerTable) -> None:
        """Use `table` as the columns of jobs in order. The jobs cannot be looked up by number."""
        self.table, self._size, self._least = table, table.shape[1], None

    def add(self, row: tuple[int, ...]) -> None:
        """Insert a job in order. `row` has one number for each column."""
        if self._size == self.table.shape[1]:
            self.table = np.concatenate([self.table, np.zeros_like(self.table)], axis=1)
        insert_row(self.table, self._size, np.array(row))
        self.rows[row[NUMBER]] = row
        self._size += 1
        self._least = self._least and min(self._least, row[SIZE])

    def remove(self, job_number: int) -> tuple[int, ...]:
        """Remove a job and return its row."""
        remove_row(self.table, self._size, job_number)
        self._size -= 1
        row = self.rows.pop(job_number)
        self._least = None if row[SIZE] == self._least else self._least
        return row

    def replace(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Replace the rows of jobs. They keep their job numbers, submit times and processors."""
        replace_rows(self.table, self._size, np.array(rows))
        self.rows.update((row[NUMBER], row) for row in rows)

    def row(self, job_number: int) -> tuple[int, ...] | None:
        """Return the row of a job, one number for each column; None if the job is not in this table."""
        return self.rows.get(job_number)

    def snapshot(self) -> Any:
        """Return the rows as plain numbers."""
        return self.table[:, : self._size].T.tolist()

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.rows = {row[NUMBER]: tuple(row) for row in state}
        self._size, self._least = len(self.rows), None
        columns, space = self.table.shape
        self.table = np.zeros((columns, max(space, self._size)), dtype=np.int64)
        if self.rows:
            self.table[:, : self._size] = np.array([*self.rows.values()]).T


class Queue(JobTable):
    """The waiting jobs; see `JobTable`.

    Parameters
    ----------
    settings
        Settings of the policy; they say how adjusted requests are used.
    histograms, further
        See `JobTable`.
    """

    def __init__(
        self, histograms: Histograms | None = None, settings: PolicySettings | None = None, further: int = 0
    ) -> None:
        settings = settings or PolicySettings()
        super().__init__(histograms, settings.distribution, shorten=settings.adjust_candidates, further=further)
        self._order_time = SHORTENED if settings.adjust_queue else PREDICTED
        self._order_request = ADJUSTED if settings.adjust_queue else REQUESTED
        self.fractions: dict[int, float] = {}
        """Fractions of a second that `predicted_time` leaves out, by job number, for waiting and running jobs."""
        self.percentiles: dict[int, int] = {}
        """Percentiles of adjustments by job number, for waiting and running jobs, if they reweigh distributions."""
        self.priorities: dict[int, int] = {}
        """Priorities that the site gave to waiting and running jobs, by job number."""

    def packed(self, *, on_requests: bool) -> WaitingTable:
        """Return the table for a pass by processors only, which plans with requests or with predictions."""
        return WaitingTable(self.table, self._size, REQUESTED if on_requests else self._predicted)

    @property
    def order_point(self) -> Floats:
        """Run times of `order_time` in seconds, with the fractions of a second of predictions added."""
        times = self.order_time.astype(np.float64)
        if self.fractions:
            whole = self.order_time == self.table[PREDICTED, : self._size]
            times += whole * np.array([self.fractions.get(number, 0.0) for number in self.job_number.tolist()])
        return times

    @property
    def order_time(self) -> Integers:
        """Run times in seconds by which jobs are ordered: predictions, or the request of a job without one.

        They are at most the adjusted requests if the settings say so.
        """
        return self.table[self._order_time, : self._size]

    @property
    def order_request(self) -> Integers:
        """Requests in seconds by which jobs are ordered, adjusted if the settings say so."""
        return self.table[self._order_request, : self._size]


class Running(JobTable):
    """The running jobs.

    Parameters
    ----------
    corrections
        Seconds by which each correction exceeds the outlived prediction, rising; see `expected_ends`.
    settings
        Settings of the policy; they say how adjusted requests are used.
    histograms, further
        See `JobTable`.
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
        """Free amount of each resource, for further resources as of the last pass. It may be below zero."""
        self.corrections: Integers = np.array(corrections, dtype=np.int64)
        self._adjusted = ADJUSTED if settings.running else REQUESTED

    @property
    def adjusted_time(self) -> Integers:
        """Requests in seconds past which `GRACE` applies; adjusted if running jobs are planned that way."""
        return self.table[self._adjusted, : self._size]

    @property
    def start_time(self) -> Integers:
        """Times of start, in seconds."""
        return self.table[START, : self._size]

    def packed(self, *, on_requests: bool) -> RunningTable:
        """Return the table for a pass by processors only, which plans with requests or with predictions."""
        planned = REQUESTED if on_requests else self._predicted
        return RunningTable(self.table, self._size, planned, self._adjusted, self.corrections)

    def jobs(self, *, on_requests: bool) -> RunningJobs:
        """Return the columns of the running jobs for a pass, which plans with requests or with predictions."""
        jobs = columns_of(self.packed(on_requests=on_requests))
        return jobs._replace(sizes=self.sizes) if self._further else jobs

    def free(self, processors: int) -> Integers:
        """Set the number of idle processors; return the free amount of each resource, shape (resources,), a view."""
        self.idle[0] = processors
        return self.idle

    def once_started(self, queue: Queue) -> tuple[Integers, Integers, Integers]:
        """Return the predicted, adjusted and requested times by which waiting jobs are planned once they run."""
        predicted, adjusted = queue.table[self._predicted], queue.table[self._adjusted]
        return predicted[: len(queue)], adjusted[: len(queue)], queue.requested_time
