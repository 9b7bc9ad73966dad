"""Groupings of jobs: all in one group, by fixed ranges of processors, or by ranges that follow the waits."""

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from shadowtime.services.wait_bound.binomial_ranks import fewest_observations, minimum_history
from shadowtime.services.wait_bound.groups.clustering import cut
from shadowtime.services.wait_bound.groups.group_bound import DETECTING, WaitGroup
from shadowtime.services.wait_bound.settings import BoundSettings
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import JobSubmitted

NO_REQUEST = 1 << 40
"""Requested time of a job without a request, in seconds; longer than any request."""

MAX_PRODUCT = 1 << 52
"""Maximum product of processors and requested time. Larger products count as this, so floats hold all exactly."""


def no_value(job: JobSubmitted) -> int:
    """Return 0: all jobs are alike."""
    return 0


def nodes(job: JobSubmitted) -> int:
    """Return the requested processors."""
    return job.requested_processors


def rtime(job: JobSubmitted) -> int:
    """Return the requested time in seconds, or `NO_REQUEST`."""
    return NO_REQUEST if job.requested_time is None else job.requested_time


def rnprod(job: JobSubmitted) -> int:
    """Return requested processors times requested time, at most `MAX_PRODUCT`."""
    return min(nodes(job) * rtime(job), MAX_PRODUCT)


class Grouping:
    """Groups of jobs by ranges of a value, which are fixed or follow the waits.

    Parameters
    ----------
    name
        Name of the grouping.
    value
        Function that returns the value of a job.
    ends
        Upper ends of all ranges but the last, which has none.
    most, keep
        As for `WaitGroup`.
    cut
        Function that returns the upper ends of new ranges from values and waits, as in `clustering.py`. None if the
        ranges are fixed.
    """

    def __init__(
        self,
        name: str,
        value: Callable[[JobSubmitted], int],
        ends: list[int],
        most: int,
        keep: int,
        cut: Callable[[Integers, Integers], list[int]] | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.cut = cut
        self._most = most
        self._keep = keep
        self._take(ends)

    def _take(self, ends: list[int]) -> None:
        self.ends = ends
        self.groups = [WaitGroup(self._most, self._keep) for _ in range(len(ends) + 1)]

    def at(self, job: JobSubmitted) -> int:
        """Return the index of a job's group: the first range that does not end below the job's value."""
        return bisect_left(self.ends, self.value(job))

    def span(self, at: int) -> tuple[int | None, int | None]:
        """Return the lowest and the highest value of a group; None for an open end."""
        return (self.ends[at - 1] + 1 if at else None), (self.ends[at] if at < len(self.ends) else None)

    def limit(self, most: int) -> None:
        """Store at most `most` waits in each group from now on."""
        self._most = most
        for group in self.groups:
            group.limit(most)

    def recut(self, values: Integers, waits: Integers) -> None:
        """Recut the ranges from known waits, and replay the waits. O(n log n) in the waits.

        `values` has the value of the job of each wait. Both arrays have shape (waits,), oldest first.

        Raise `TypeError` if the ranges of the grouping are fixed.
        """
        if self.cut is None:
            raise TypeError(f"the ranges of grouping {self.name} are fixed; expected ranges that follow the waits")
        self.ends = self.cut(values, waits)
        of = np.searchsorted(self.ends, values)
        self.groups = [WaitGroup.replayed(self._most, self._keep, waits[of == at]) for at in range(len(self.ends) + 1)]

    def snapshot(self) -> Any:
        """Return ranges and groups."""
        return {"ends": self.ends, "groups": [group.snapshot() for group in self.groups]}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._take(list(state["ends"]))
        for group, saved in zip(self.groups, state["groups"], strict=True):
            group.restore(saved)


def fewest_waits(settings: BoundSettings) -> int:
    """Return the fewest waits that suffice for the configured bound and for the bounds that detect change points."""
    need = fewest_observations(settings.quantile, settings.confidence, settings.published_side)
    return max(need, minimum_history(DETECTING, DETECTING))


def groupings(settings: BoundSettings, most: int) -> list[Grouping]:
    """Return the five groupings of the paper: with one group, with fixed groups, and three that follow the waits."""
    keep = fewest_waits(settings)
    least, most_clusters = settings.cluster_counts
    cut_anew = partial(cut, minimum_end=settings.minimum_end or keep, least=least, most=most_clusters)
    return [
        Grouping("plain", no_value, [], most, keep),
        Grouping("static", nodes, list(settings.range_ends), most, keep),
        Grouping("nodes", nodes, [], most, keep, cut_anew),
        Grouping("rtime", rtime, [], most, keep, cut_anew),
        Grouping("rnprod", rnprod, [], most, keep, cut_anew),
    ]
