"""Shares of their requests that ended jobs ran, by several keys, over sliding windows of time."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from sortedcontainers import SortedList

from shadowtime.services.walltime_adjustment.keys import Key, Traits

Entry = tuple[int, float, Traits]
"""Time of the end in seconds, ratio, traits of the job."""

MAX_ENDED = 250_000
"""Ended jobs that are remembered at most, whatever the window: all of the longest log of the archive."""

LET_GO = 64
"""Aged entries that one event lets go of; each brings at most one."""

DEARER = 16
"""Ratio of costs: to put one value into a sorted list, or to take it out, and to sort it with others."""


class SortedRatios:
    """The sorted ratios of like jobs; valid until the next change."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def at(self, positions: Iterable[int]) -> list[float]:
        """Return the members at these positions, counted from 0 at the least."""
        return [self._values[position] for position in positions]


NOTHING = SortedRatios(())


class LikeJobs:
    """The ratios of like jobs, by the rising numbers of their entries; and sorted for each window, as last asked for.

    >>> like = LikeJobs(windows=1)
    >>> for number, ratio in enumerate((0.5, 0.9, 0.1)):
    ...     like.add(number, ratio)
    >>> list(like.since(0, 1)), list(like.since(0, 0))
    ([0.1, 0.9], [0.1, 0.5, 0.9])
    """

    def __init__(self, windows: int) -> None:
        self.numbers: list[int] = []
        self._ratios: list[float] = []
        self._first = [0] * windows
        self._sorted: list[SortedList[float]] = [SortedList() for _ in range(windows)]

    def add(self, number: int, ratio: float) -> None:
        """Take in the newest job."""
        self.numbers.append(number)
        self._ratios.append(ratio)
        for values in self._sorted:
            values.add(ratio)

    def since(self, window: int, number: int) -> "SortedList[float]":
        """Return the ratios from this entry on. O(log n) for each that has gone since; sorting all, where that is less.

        What is kept for a window only saves work: any order of questions gives the same answers.
        """
        first, ratios, sorted_ratios = self._first[window], self._ratios, self._sorted[window]
        begin = bisect_left(self.numbers, number)
        if abs(begin - first) * DEARER > len(ratios) - begin:
            sorted_ratios = self._sorted[window] = SortedList(ratios[begin:])
        else:
            for gone in ratios[first:begin]:
                sorted_ratios.remove(gone)
            sorted_ratios.update(ratios[begin:first])

        self._first[window] = begin
        return sorted_ratios

    def let_go(self, number: int) -> None:
        """Forget what lies before this entry, once that is most. O(1) amortised."""
        if self.numbers[len(self.numbers) // 2] < number:
            aged = bisect_left(self.numbers, number)
            for window, first in enumerate(self._first):
                if first < aged:
                    self.since(window, number)
            del self.numbers[:aged], self._ratios[:aged]
            self._first = [first - aged for first in self._first]


class SlidingRatios:
    """Order statistics of the ratios of like jobs that ended lately, by each of several keys and windows.

    Times never fall. Adding and reading cost O(log n) comparisons for each key and window. What has aged out is taken
    out of a sorted list when that is read next, or all that is left is sorted anew: O(n) after a long silence, a third
    of a microsecond a job. Memory is that of the longest window, and of `most` jobs.

    Parameters
    ----------
    names
        Settings by which jobs are alike.
    windows
        Seconds for which a ratio is kept, the shortest first; infinity: for ever.
    most
        Jobs that are remembered, the last ones, however long the windows are.

    Examples
    --------
    >>> ratios, job = SlidingRatios(["user"], [100.0]), Traits(user=7, project=None, request=60)
    >>> for time, ratio in [(10, 0.5), (20, 0.1), (90, 0.9)]:
    ...     ratios.add(job, time, ratio)
    >>> ratios.sample("user", 0, job, now=100).at([0, 2]), ratios.sample("user", 0, job, now=120).at([0])
    ([0.1, 0.9], [0.9])
    """

    def __init__(self, names: Sequence[str], windows: Sequence[float], most: int = MAX_ENDED) -> None:
        self._names = names
        self._windows = windows
        self._most = most
        self._entries: list[Entry] = []
        self._before = 0
        """Entries that were let go of: the number of the first that is left."""
        self._first = [0] * len(windows)
        """Of each window: the position of its oldest entry."""
        self._aged = 0
        """Entries that are in no window, and that keys know nothing of any more."""
        self._likes: dict[str, dict[Key, LikeJobs]] = {name: {} for name in names}
        self._next_expiry = float("inf")

    def add(self, job: Traits, time: int, ratio: float) -> None:
        """Take in the ratio of a job that ended at `time`, in seconds."""
        number = self._before + len(self._entries)
        self._entries.append((time, ratio, job))
        self._next_expiry = min(self._next_expiry, time + self._windows[0])
        for name, likes in self._likes.items():
            key = job.key(name)
            if key is not None:
                like = likes.get(key)
                if like is None:
                    like = likes[key] = LikeJobs(len(self._windows))
                like.add(number, ratio)

    def is_current(self, now: int) -> bool:
        """Return whether nothing has aged out of any window since the last event."""
        return now < self._next_expiry

    def expire(self, now: int) -> bool:
        """Notice what is older than each window, and let go of some of it; return whether there was any to look at."""
        current = self.is_current(now) and len(self._entries) - self._first[0] <= self._most
        if not current:
            self._first = [self._begin(window, now) for window in range(len(self._windows))]
            oldest = zip(self._first, self._windows, strict=True)
            expiries = [self._entries[first][0] + window for first, window in oldest if first < len(self._entries)]
            self._next_expiry = min(expiries, default=float("inf"))

        self._let_go()
        return not current

    def sample(self, name: str, window: int, job: Traits, now: int) -> SortedRatios:
        """Return the ratios of the jobs like this one, within a window that ends now; valid until the next change."""
        key = job.key(name)
        like = None if key is None else self._likes[name].get(key)
        return NOTHING if like is None else SortedRatios(like.since(window, self._before + self._begin(window, now)))

    def _begin(self, window: int, now: int) -> int:
        """Return the position of the oldest entry within a window. O(log n)."""
        aged = bisect_right(self._entries, now - self._windows[window], self._first[window], key=itemgetter(0))
        return max(aged, len(self._entries) - self._most)

    def _let_go(self) -> None:
        """Let go of the next entries that are in no window any more."""
        oldest = self._first[-1]
        for _, _, job in self._entries[self._aged : min(self._aged + LET_GO, oldest)]:
            self._aged += 1
            for name, likes in self._likes.items():
                key = job.key(name)
                like = None if key is None else likes.get(key)
                if key is None or like is None:
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
        """Return time, ratio and traits of every entry of the longest window, oldest first, and where each begins."""
        forgotten = self._first[-1]
        entries = [[time, ratio, *job] for time, ratio, job in self._entries[forgotten:]]
        return {"entries": entries, "first": [first - forgotten for first in self._first]}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._entries, self._before, self._aged = [], 0, 0
        self._likes = {name: {} for name in self._names}
        for time, ratio, *job in state["entries"]:
            self.add(Traits(*job), time, ratio)
        self._first = list(state["first"])
        self._next_expiry = -float("inf")  # found when the next event comes
