"""The runs that a worker holds in memory, within bounds, and the remembered parts of evicted runs."""

import ctypes
import gc
import os
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from shadowtime.shared.streaming.worker.run import Run

MAX_HELD = 1_000
"""The maximum number of runs whose state is held in memory. Other runs are loaded at their next event."""

MAX_HELD_BYTES = 64_000_000
"""Maximum bytes of the last snapshots of all held runs, and of the inputs since. The runs need several times that. The
most recently used run is held in any case."""

MAX_EVICTED = 10_000
"""The maximum number of evicted runs that are remembered: the searched part of their log, and the delivered outputs."""


class EvictedRun(NamedTuple):
    """The remembered part of an evicted run, valid as long as the run is stored at `sequence`."""

    sequence: int
    searched: int
    delivered: int
    attempt_counted: bool

    @classmethod
    def of(cls, run: Run) -> "EvictedRun":
        """Return the part of a run that is remembered."""
        return cls(run.state.sequence, run.position.searched, run.delivered, run.attempt_counted)


class RunCache:
    """Runs by name. If there are too many, the least recently used ones are evicted. O(1) a run.

    A run is taken out while it is worked on, so a held run does not grow.
    """

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._bytes = 0
        self._evicted: OrderedDict[str, EvictedRun] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def hold(self, run: Run) -> None:
        """Hold a run, as the most recently used one."""
        self._runs[run.name] = run
        self._bytes += _bytes(run)
        while len(self._runs) > MAX_HELD or (len(self._runs) > 1 and self._bytes > MAX_HELD_BYTES):
            _, oldest = self._runs.popitem(last=False)
            self._bytes -= _bytes(oldest)
            self.remember(oldest)

    def take_out(self, name: str) -> Run | None:
        """Return a run and hold it no longer; None if it is not held."""
        run = self._runs.pop(name, None)
        if run is not None:
            self._bytes -= _bytes(run)
        return run

    def remember(self, run: Run) -> None:
        """Remember a run that the cache does not hold as an `EvictedRun`."""
        self._evicted[run.name] = EvictedRun.of(run)
        while len(self._evicted) > MAX_EVICTED:
            self._evicted.popitem(last=False)

    def pop_evicted(self, name: str) -> EvictedRun | None:
        """Return and forget what is remembered of an evicted run; None if nothing is."""
        return self._evicted.pop(name, None)

    def delivered(self, name: str, sequence: int) -> int:
        """Return how many outputs in a run's outbox this process has delivered; 0 if the run is not at `sequence`."""
        held = self._runs.get(name)
        known = self._evicted.get(name) if held is None else EvictedRun.of(held)
        return 0 if known is None or known.sequence != sequence else known.delivered

    def evict_all(self) -> None:
        """Evict all runs, and remember each as an `EvictedRun`."""
        for run in self._runs.values():
            self.remember(run)
        self._runs.clear()
        self._bytes = 0

    def clear(self) -> None:
        """Forget all runs."""
        self._runs.clear()
        self._bytes = 0
        self._evicted.clear()


def _bytes(run: Run) -> int:
    return run.journal.snapshot + run.journal.size


# The memory that this process uses, and the memory that it may use.

CGROUPS = Path("/sys/fs/cgroup")
PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_used() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * PAGE


def memory_limit(groups: str | None = None, mounted: Path = CGROUPS) -> int:
    """Return the bytes that this process may use: of the machine, or of the smallest control group around it.

    Parameters
    ----------
    groups
        The content of `/proc/self/cgroup`; None to read that file.
    mounted
        The folder of the control groups, of version 1 or 2.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * PAGE]
    for line in (Path("/proc/self/cgroup").read_text() if groups is None else groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (mounted / "memory", "memory.limit_in_bytes") if controllers else (mounted, "memory.max")
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder == root.parent:
                break
            with suppress(OSError, ValueError):  # no such file: the root of a container; "max": no limit
                limits.append(int((folder / name).read_text()))

    return min(limits)


def give_back() -> None:
    """Give free memory back to the machine, as far as the C library can."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
