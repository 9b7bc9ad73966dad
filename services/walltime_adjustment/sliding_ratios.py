"""Ratios of run time to request of ended jobs, by several keys, over sliding windows of time."""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from shadowtime.services.walltime_adjustment.keys import Key, Traits

Entry = tuple[int, float, Traits]
"""Time of the end in seconds, ratio, traits of the job."""

MAX_ENDED = 250_000
"""Maximum number of ended jobs that are kept for any window: all jobs of the longest log of the archive."""

LET_GO = 64
"""Maximum number of aged entries that are removed at one event. An event adds at most one entry."""

DEARER = 16
"""Cost of adding one value to a sorted list, or removing it, relative to sorting it with others."""


class LikeJobs:
    """The ratios of similar jobs in order of their entry numbers, and sorted ratios as a cache for each window.

    Ratios and numbers are in arrays: most keys have few jobs, and other containers would take more memory than these
    jobs.

    >>> like = LikeJobs(windows=1)
    >>> for number, ratio in enumerate((0.5, 0.9, 0.1)):
    ...     like.add(number, ratio)
    >>> list(like.since(0, 1)), list(like.since(0, 0))
    ([0.1, 0.9], [0.1, 0.5, 0.9])
    """

    __slots__ = ("_first", "_ratios", "_sorted", "numbers")

    def __init__(self, windows: int) -> None:
        self.numbers = array("q")
        self._ratios = array("d")
        self._first = [0] * windows
        self._sorted = [array("d") for _ in range(windows)]

    def add(self, number: int, ratio: float) -> None:
        """Add the newest job."""
        self.numbers.append(number)
        self._ratios.append(ratio)
        for values in self._sorted:
            insort(values, ratio)

    def since(self, window: int, number: int) -> "array[float]":
        """Return the sorted ratios of the entries from this number on.

        Each entry that has left since the last call costs O(log n) comparisons and a move of O(n) bytes. If sorting all
        entries costs less, they are sorted. The cached ratios of a window only save work: the result does not depend on
        earlier calls.
        """
        first, ratios, sorted_ratios = self._first[window], self._ratios, self._sorted[window]
        begin = bisect_left(self.numbers, number)
        if abs(begin - first) * DEARER > len(ratios) - begin:
            sorted_ratios = self._sorted[window] = array("d", sorted(ratios[begin:]))
        else:
            for gone in ratios[first:begin]:
                del sorted_ratios[bisect_left(sorted_ratios, gone)]
            for back in ratios[begin:first]:
                insort(sorted_ratios, back)

        self._first[window] = begin
        return sorted_ratios

    def let_go(self, number: int) -> None:
        """Drop the entries before `number`, once they are the majority. O(1) amortised."""
        if self.numbers[len(self.numbers) // 2] < number:
            aged = bisect_left(self.numbers, number)
            for window, first in enumerate(self._first):
                if first < aged:
                    self.since(window, number)
            del self.numbers[:aged], self._ratios[:aged]
            self._first = [first - aged for first in self._first]


class SlidingRatios:
    """Order statistics of the ratios of similar jobs that ended lately, by each of several keys and windows.

    Times must not decrease. Adding and reading cost O(log n) comparisons for each key and window. The next read of a
    sorted list removes its aged ratios, or sorts the rest anew: O(n) after a long time without events, a third of a
    microsecond for each job. Memory is bounded by the longest window and by `most` jobs.

    Parameters
    ----------
    names
        Names of the keys by which jobs are similar.
    windows
        Seconds for which a ratio is kept, the shortest first. Infinity keeps ratios for ever.
    most
        Maximum number of jobs that are kept, the latest ones, however long the windows are.

    >>> ratios, job = SlidingRatios(["user"], [100.0]), Traits(user=7, project=None, request=60)
    >>> for time, ratio in [(10, 0.5), (20, 0.1), (90, 0.9)]:
    ...     ratios.add(job, time, ratio)
    >>> list(ratios.sample("user", 0, job, now=100)), list(ratios.sample("user", 0, job, now=120))
    ([0.1, 0.5, 0.9], [0.9])
    """

    def __init__(self, names: Sequence[str], windows: Sequence[float], most: int = MAX_ENDED) -> None:
        self._names = names
        self._windows = windows
        self._most = most
        self._entries: list[Entry] = []
        self._before = 0
        """Number of entries removed so far, which is the number of the first entry left."""
        self._first = [0] * len(windows)
        """Position of the oldest entry of each window."""
        self._aged = 0
        """Number of stored entries that are in no window and have been removed from all keys."""
        self._likes: dict[str, dict[Key, LikeJobs]] = {name: {} for name in names}
        self._next_expiry = float("inf")

    def add(self, job: Traits, time: int, ratio: float) -> None:
        """Add the ratio of a job that ended at `time`, in seconds."""
        number = self._before + len(self._entries)
        self._entries.append((time, ratio, job))
        self._next_expiry = min(self._next_expiry, time + self._windows[0])
        for name, likes in self._likes.items():
            key = job.key(name)
            like = likes.get(key)
            if like is None:
                like = likes[key] = LikeJobs(len(self._windows))
            like.add(number, ratio)

    def is_current(self, now: int) -> bool:
        """Return whether no ratio has left a window by `now` since the last event."""
        return now < self._next_expiry

    def expire(self, now: int) -> bool:
        """Let the windows end at `now`. Return whether a window may have changed. Remove some aged entries."""
        current = self.is_current(now) and len(self._entries) - self._first[0] <= self._most
        if not current:
            self._first = [self._begin(window, now) for window in range(len(self._windows))]
            oldest = zip(self._first, self._windows, strict=True)
            expiries = [self._entries[first][0] + window for first, window in oldest if first < len(self._entries)]
            self._next_expiry = min(expiries, default=float("inf"))

        self._let_go()
        return not current

    def sample(self, name: str, window: int, job: Traits, now: int) -> Sequence[float]:
        """Return the sorted ratios of jobs with the same key, in a window that ends at `now`; empty if there are none.

        `window` is the index of the window. The result is valid until the next call of a method.
        """
        like = self._likes[name].get(job.key(name))
        return () if like is None else like.since(window, self._before + self._begin(window, now))

    def _begin(self, window: int, now: int) -> int:
        """Return the position of the oldest entry within a window. O(log n)."""
        aged = bisect_right(self._entries, now - self._windows[window], self._first[window], key=itemgetter(0))
        return max(aged, len(self._entries) - self._most)

    def _let_go(self) -> None:
        """Remove the next aged entries, which are in no window, from all keys; at most `LET_GO`."""
        oldest = self._first[-1]
        for _, _, job in self._entries[self._aged : min(self._aged + LET_GO, oldest)]:
            self._aged += 1
            for name, likes in self._likes.items():
                key = job.key(name)
                like = likes.get(key)
                if like is None:
                    continue
                if like.numbers[-1] < self._before + oldest:
                    del likes[key]
                else:
                    like.let_go(self._before + oldest)

        if 2 * self._aged > len(self._entries):
            del self._entries[: self._aged]
            self._first = [first - self._aged for first in self._first]
            self._before += self._aged
            self._aged = 0

    def snapshot(self) -> Any:
        """Return time, ratio and traits of all entries in the longest window, oldest first, and the windows' starts."""
        forgotten = self._first[-1]
        entries = [[time, ratio, *job] for time, ratio, job in self._entries[forgotten:]]
        return {"entries": entries, "first": [first - forgotten for first in self._first]}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._entries, self._before, self._aged = [], 0, 0
        self._likes = {name: {} for name in self._names}
        for time, ratio, *job in state["entries"]:
            self.add(Traits(*job), time, ratio)
        self._first = list(state["first"])
        self._next_expiry = -float("inf")  # computed at the next event
