"""Run-time histograms of all users' jobs, by class of similar jobs. Recent jobs have more weight."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from shadowtime.shared.distributions import BINS, Masses, bin_of
from shadowtime.shared.kernels import Floats, FloatTable, kernel
from shadowtime.shared.messages import JobSubmitted

BACKING = 20.0
"""Weight of the wider class in the narrower one, in jobs. A class with this many jobs weighs as much as the wider
class."""

NO_JOBS: Final = -1
"""Row of a class without jobs."""

Class = tuple[int, ...]

ClassRows = tuple[int, int, int]
"""Rows of a job's classes in a table of counts, widest first."""


@kernel
def backed(counts: FloatTable, rows: ClassRows) -> Floats:
    """Return the run-time distribution of the narrowest of nested classes; shape (bins,).

    Each class is mixed with the next wider one, which has the weight `BACKING`.

    `counts` has the number of jobs in each bin, shape (rows, bins). A class without jobs (`NO_JOBS`) is left out; the
    widest must have jobs. The widest class is smoothed by one more count, spread evenly over all bins up to its last
    non-empty one.

    >>> backed(np.array([[0.0, 2.0, 0.0], [20.0, 0.0, 0.0]]), (0, NO_JOBS, 1)).round(3).tolist()
    [0.583, 0.417, 0.0]
    """
    masses: Masses = counts[rows[0]].copy()
    last = len(masses) - 1
    while last > 0 and masses[last] == 0.0:
        last -= 1
    masses[: last + 1] += 1.0 / (last + 1)
    masses /= masses.sum()
    for row in rows[1:]:
        if row != NO_JOBS:
            masses = counts[row] + BACKING * masses
            masses /= masses.sum()
    return masses


@kernel
def count(counts: FloatTable, rows: ClassRows, keep: float, run_time: float, limit: float, beyond: float) -> None:
    """Count a job in its classes, in place, after multiplying all earlier counts of these classes by `keep`.

    `counts` and `rows` are as for `backed`. Times are in seconds. If the job reached its limit, the share `beyond` of
    it goes to the next bin.

    >>> counts = np.array([[0.0, 2.0, 0.0], [8.0, 8.0, 8.0]])
    >>> count(counts, (0, NO_JOBS, NO_JOBS), 0.5, 1.8, 1.8, 0.25)
    >>> counts.tolist()
    [[0.0, 1.75, 0.25], [8.0, 8.0, 8.0]]
    """
    bin_, above = bin_of(min(run_time, limit)), beyond if run_time >= limit else 0.0
    for row in rows:
        if row != NO_JOBS:
            counts[row] *= keep
            counts[row, bin_] += 1.0 - above
            counts[row, min(bin_ + 1, counts.shape[1] - 1)] += above


class JobClasses:
    """Histograms of all jobs, of jobs with a similar request, and of jobs with a similar request and size.

    Requests are similar if they lie in the same bin of run times. Sizes are similar from one power of two to the next.
    Memory is bounded: bins of requests times powers of two times bins of run times.

    Parameters
    ----------
    forgetting
        Share by which a new job reduces the weight of all earlier jobs of its class.
    depth
        Number of kinds of classes to use, 1 to 3, the widest first.

    >>> classes = JobClasses(forgetting=0.0)
    >>> short = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=60)
    >>> long = JobSubmitted(time=0, job_number=2, requested_processors=8, requested_time=86400)
    >>> for _ in range(100):
    ...     classes.learn(short, 5)
    ...     classes.learn(long, 4000)
    >>> [backed(classes.counts, classes.rows(job)).round(2)[[3, 15]].tolist() for job in (short, long)]
    [[0.99, 0.01], [0.01, 0.99]]
    """

    def __init__(self, forgetting: float, depth: int = 3) -> None:
        self._keep = 1.0 - forgetting
        self._depth = depth
        self._rows: dict[Class | None, int] = {}
        self.counts = np.zeros((1, BINS))
        """Number of jobs of each class in each bin, shape (rows, BINS); there may be more rows than classes."""

    def rows(self, job: JobSubmitted) -> ClassRows:
        """Return the rows of a job's classes in `counts`, widest first; `NO_JOBS` for a class without jobs."""
        return self._rows_of(self._classes(job))

    def learn(self, job: JobSubmitted, run_time: int, beyond: float = 0.0) -> None:
        """Count the run time of a job, in seconds, in all of its classes; `beyond` is as for `weighted_masses`."""
        classes = self._classes(job)
        for key in classes[: self._depth]:
            if key not in self._rows:
                if len(self._rows) == len(self.counts):
                    self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
                self._rows[key] = len(self._rows)

        limit = math.inf if job.requested_time is None else float(job.requested_time)
        count(self.counts, self._rows_of(classes), self._keep, float(run_time), limit, beyond)

    def snapshot(self) -> Any:
        """Return the histograms by class."""
        return [[key, self.counts[row].tolist()] for key, row in self._rows.items()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._rows = {tuple(key): row for row, (key, _) in enumerate(state)}
        self.counts = np.array([counts for _, counts in state] or [[0.0] * BINS])

    def _classes(self, job: JobSubmitted) -> tuple[Class | None, Class | None, Class | None]:
        """Return the keys of a job's classes, widest first; None for a class beyond the depth."""
        if self._depth == 1:
            return (), None, None
        request = -1 if job.requested_time is None else bin_of(job.requested_time)
        return (), (request,), None if self._depth == 2 else (request, job.requested_processors.bit_length())

    def _rows_of(self, classes: Sequence[Class | None]) -> ClassRows:
        widest, similar, narrowest = classes
        known = self._rows.get
        return known(widest, NO_JOBS), known(similar, NO_JOBS), known(narrowest, NO_JOBS)
