"""Shares of their requests that ended jobs ran, by several keys, over sliding windows of time."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sortedcontainers import SortedList

from services.walltime_adjustment.keys import Key, Traits

Entry = tuple[int, float, Traits]
"""Time of the end in seconds, ratio, traits of the job."""


class SlidingRatios:
    """Order statistics of the ratios of like jobs that ended lately, by each of several keys and windows.

    Times never fall. Adding, reading and ageing out cost O(log n) comparisons for each key and window; memory is that
    of the longest window.

    Parameters
    ----------
    names
        Keys by which jobs are alike.
    windows
        Seconds for which a ratio is kept, the shortest first; infinity: for ever.

    Examples
    --------
    >>> ratios, job = SlidingRatios(["user"], [100.0]), Traits(user=7, project=None, request=60)
    >>> for time, ratio in [(10, 0.5), (20, 0.1), (90, 0.9)]:
    ...     ratios.add(job, time, ratio)
    >>> ratios.sample("user", 0, job, now=100).at([0, 2]), ratios.sample("user", 0, job, now=120).at([0])
    ([0.1, 0.9], [0.9])
    """

    def __init__(self, names: Sequence[str], windows: Sequence[float]) -> None:
        self._names = names
        self._windows = windows
        self._entries: list[Entry] = []
        self._first = [0] * len(windows)
        """Of each window: the position of its oldest entry."""
        self._ratios: list[dict[str, dict[Key, SortedList[float]]]] = [{name: {} for name in names} for _ in windows]
        self._next_expiry = float("inf")

    def add(self, job: Traits, time: int, ratio: float) -> None:
        """Take in the ratio of a job that ended at `time`, in seconds."""
        self._entries.append((time, ratio, job))
        self._next_expiry = min(self._next_expiry, time + self._windows[0])
        for ratios in self._ratios:
            _add(ratios, job, ratio)

    def is_current(self, now: int) -> bool:
        """Return whether nothing has aged out of any window since the last event."""
        return now < self._next_expiry

    def expire(self, now: int) -> bool:
        """Let go of what is older than each window; return whether there was anything to look at."""
        if self.is_current(now):
            return False
        for window, ratios in enumerate(self._ratios):
            aged = list(self._aged(window, now))
            self._first[window] += len(aged)
            for _, ratio, job in aged:
                _remove(ratios, job, ratio)
        forgotten = self._first[-1]
        if 2 * forgotten > len(self._entries):
            del self._entries[:forgotten]
            self._first = [first - forgotten for first in self._first]
        oldest = zip(self._first, self._windows, strict=True)
        expiries = [self._entries[first][0] + window for first, window in oldest if first < len(self._entries)]
        self._next_expiry = min(expiries, default=float("inf"))
        return True

    def sample(self, name: str, window: int, job: Traits, now: int) -> "Sample":
        """Return the ratios of the jobs like this one, within a window that ends now; valid until the next change."""
        key = job.key(name)
        if key is None:
            return Sample((), [])
        gone: list[float] = []
        if now >= self._next_expiry:  # no event came since
            gone = sorted(ratio for _, ratio, other in self._aged(window, now) if other.key(name) == key)
        return Sample(self._ratios[window][name].get(key, ()), gone)

    def _aged(self, window: int, now: int) -> Iterator[Entry]:
        """Yield what is older than a window, but still in it."""
        oldest = now - self._windows[window]
        first = self._first[window]
        while first < len(self._entries) and self._entries[first][0] <= oldest:
            yield self._entries[first]
            first += 1

    def snapshot(self) -> Any:
        """Return time, ratio and traits of every entry of the longest window, oldest first, and where each begins."""
        forgotten = self._first[-1]
        entries = [[time, ratio, *job] for time, ratio, job in self._entries[forgotten:]]
        return {"entries": entries, "first": [first - forgotten for first in self._first]}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._entries = [(time, ratio, Traits(*job)) for time, ratio, *job in state["entries"]]
        self._first = list(state["first"])
        self._next_expiry = -float("inf")  # found when the next event comes
        for ratios, first in zip(self._ratios, self._first, strict=True):
            for by_key in ratios.values():
                by_key.clear()
            for _, ratio, job in self._entries[first:]:
                _add(ratios, job, ratio)


def _add(ratios: dict[str, dict[Key, SortedList[float]]], job: Traits, ratio: float) -> None:
    for name, by_key in ratios.items():
        key = job.key(name)
        if key is not None:
            found = by_key.get(key)
            if found is None:
                found = by_key[key] = SortedList()
            found.add(ratio)


def _remove(ratios: dict[str, dict[Key, SortedList[float]]], job: Traits, ratio: float) -> None:
    for name, by_key in ratios.items():
        key = job.key(name)
        if key is not None:
            by_key[key].remove(ratio)
            if not by_key[key]:
                del by_key[key]


class Sample:
    """A sorted list, without some of its members."""

    def __init__(self, values: Sequence[float], gone: list[float]) -> None:
        self._values = values
        self._gone = gone

    def __len__(self) -> int:
        return len(self._values) - len(self._gone)

    def at(self, positions: Iterable[int]) -> list[float]:
        """Return the members at these positions, which rise, counted from 0 at the least."""
        values = self._values
        if not self._gone:
            return [values[position] for position in positions]
        found, left_out = [], 0
        for position in positions:
            while left_out < len(self._gone) and self._gone[left_out] <= values[position + left_out]:
                left_out += 1
            found.append(values[position + left_out])
        return found
