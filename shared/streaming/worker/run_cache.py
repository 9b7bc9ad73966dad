"""The runs that a worker holds in memory, within bounds, and what it remembers of those that it holds no longer."""

from collections import OrderedDict
from typing import NamedTuple

from shadowtime.shared.streaming.worker.run import Run

MAX_HELD = 1_000
"""Runs whose state is held in memory; that of others is loaded when their next event comes."""

MAX_HELD_BYTES = 64_000_000
"""Bytes of the last snapshots, and of the inputs since, of all runs that are held in memory: several times as many."""

MAX_EVICTED = 10_000
"""Runs that are no longer held of which it is known how far their log has been searched, and what was delivered."""


class EvictedRun(NamedTuple):
    """The remainder of a run that was evicted, valid as long as the run is stored at `sequence`."""

    sequence: int
    searched: int
    delivered: int

    @classmethod
    def of(cls, run: Run) -> "EvictedRun":
        """Return what is kept of a run."""
        return cls(run.state.sequence, run.position.searched, run.delivered)


class RunCache:
    """Runs by name; of too many, those are put away that nothing has come for longest. O(1) a run.

    A run is taken out while it is worked on: what is held does not grow.
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
        """Keep a run, as the one that something came for last."""
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
        """Remember how many outputs were delivered of a run that the cache does not hold."""
        self._evicted[run.name] = EvictedRun.of(run)
        while len(self._evicted) > MAX_EVICTED:
            self._evicted.popitem(last=False)

    def pop_evicted(self, name: str) -> EvictedRun | None:
        """Return what is remembered of a run that is to be loaded again, and forget it."""
        return self._evicted.pop(name, None)

    def delivered(self, name: str, sequence: int) -> int:
        """Return how many outputs of a run's outbox this process has delivered, if the run is still at `sequence`."""
        held = self._runs.get(name)
        known = self._evicted.get(name) if held is None else EvictedRun.of(held)
        return 0 if known is None or known.sequence != sequence else known.delivered

    def clear(self) -> None:
        """Forget all runs."""
        self._runs.clear()
        self._bytes = 0
        self._evicted.clear()


def _bytes(run: Run) -> int:
    return run.journal.snapshot + run.journal.size
