"""Run-time histograms of all users' jobs, by class of similar jobs. Recent jobs have more weight."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from shadowtime.shared.distributions import BINS, Masses, bin_of
from shadowtime.shared.kernels import Floats, FloatTable, kernel
from shadowtime.shared.messages import JobSubmitted

BACKING = 20.0
"""Weight of the wider class in the narrower one, in jobs. A class with this many jobs weighs as much as the wider
class."""

Class = tuple[int, ...]


@kernel
def backed(counts: FloatTable) -> Floats:
    """Return the run-time distribution of the narrowest of nested classes; shape (bins,).

    Each class is mixed with the next wider one, which has the weight `BACKING`.

    `counts` has the number of jobs in each bin, shape (classes, bins), widest class first. The widest class is smoothed
    by one more count, spread evenly over all bins up to its last non-empty one.

    >>> backed(np.array([[0.0, 2.0, 0.0], [20.0, 0.0, 0.0]])).round(3).tolist()
    [0.583, 0.417, 0.0]
    """
    masses: Masses = counts[0].copy()
    last = len(masses) - 1
    while last > 0 and masses[last] == 0.0:
        last -= 1
    masses[: last + 1] += 1.0 / (last + 1)
    masses /= masses.sum()
    for k in range(1, len(counts)):
        masses = counts[k] + BACKING * masses
        masses /= masses.sum()
    return masses


@kernel
def count(counts: Floats, keep: float, bin_: int, above: float) -> None:
    """Count a job in a bin, in place, after multiplying all earlier counts by `keep`.

    The share `above` of the job goes to the next bin.

    >>> counts = np.array([0.0, 2.0, 0.0])
    >>> count(counts, 0.5, 1, 0.25)
    >>> counts.tolist()
    [0.0, 1.75, 0.25]
    """
    counts *= keep
    counts[bin_] += 1.0 - above
    counts[min(bin_ + 1, len(counts) - 1)] += above


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
    >>> classes.masses(short).round(2)[[3, 15]].tolist(), classes.masses(long).round(2)[[3, 15]].tolist()
    ([0.99, 0.01], [0.01, 0.99])
    """

    def __init__(self, forgetting: float, depth: int = 3) -> None:
        self._keep = 1.0 - forgetting
        self._depth = depth
        self._counts: dict[Class, Masses] = {}

    def masses(self, job: JobSubmitted) -> Masses:
        """Return the run-time distribution of the job's narrowest class, mixed with the wider ones; shape (BINS,)."""
        histograms = [self._counts.get(key) for key in islice(_classes(job), self._depth)]
        return backed(np.array([counts for counts in histograms if counts is not None] or [np.zeros(BINS)]))

    def learn(self, job: JobSubmitted, run_time: int, beyond: float = 0.0) -> None:
        """Count the run time of a job, in seconds, in all of its classes; `beyond` is as for `weighted_masses`."""
        limit = math.inf if job.requested_time is None else job.requested_time
        bin_ = bin_of(min(run_time, limit))
        above = beyond if run_time >= limit else 0.0
        for key in islice(_classes(job), self._depth):
            counts = self._counts.get(key)
            if counts is None:
                counts = self._counts[key] = np.zeros(BINS)
            count(counts, self._keep, bin_, above)

    def snapshot(self) -> Any:
        """Return the histograms by class."""
        return [[key, counts.tolist()] for key, counts in self._counts.items()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._counts = {tuple(key): np.array(counts) for key, counts in state}


def _classes(job: JobSubmitted) -> Iterator[Class]:
    """Yield the keys of a job's classes, widest first."""
    yield ()
    request = -1 if job.requested_time is None else bin_of(job.requested_time)
    yield (request,)
    yield (request, job.requested_processors.bit_length())
