"""When Slurm looks at its queue: the main scheduler after events and each minute, backfill each half minute."""

from typing import Any

from shadowtime.services.scheduler.slurm_settings import SlurmSettings


class Times:
    """The times of passes, in seconds; -1 before the first.

    A pass that came due while no scheduling point was, since nothing could have started, counts as done at its time, so
    that the rhythm is Slurm's. `owed` says that the next was asked for: in a recorded log it comes with what happens.

    Parameters
    ----------
    settings
        The site's.
    """

    def __init__(self, settings: SlurmSettings) -> None:
        self._settings = settings
        self.main = self.full = self.backfill = -1
        self.changed = False
        """Whether anything has happened since the last pass of the main scheduler."""
        self.moved = True
        """Whether anything has happened since passes over the whole queue found nobody to start."""
        self.owed = False

    def begin(self, now: int) -> None:
        """Let the rhythm begin, at the first scheduling point."""
        if self.full < 0:
            self.full = self.backfill = now

    def due(self, now: int) -> tuple[bool, bool, bool]:
        """Return whether a main pass is due, whether it sees all the queue, and whether backfill is due."""
        told = self._settings
        self.begin(now)
        backfill = now - self.backfill >= told.bf_interval
        full = now - self.full >= told.sched_interval
        if not self.owed:
            self.backfill += (now - self.backfill) // told.bf_interval * told.bf_interval
            self.full += (now - self.full) // told.sched_interval * told.sched_interval
            backfill, full = backfill and self.backfill == now, full and self.full == now
        main = full or (self.changed and (self.main < 0 or now - self.main >= told.sched_delay))
        return main, full, backfill and told.backfill

    def done(self, now: int, *, main: bool, full: bool, backfill: bool, started: bool = False) -> None:
        """Note which passes were done, and whether they started anybody."""
        if backfill or (full and not self._settings.backfill):
            self.moved = started
        if main:
            self.main, self.changed = now, False
        if full:
            self.full = now
        if backfill:
            self.backfill = now

    def next(self, now: int) -> int:
        """Return when the next pass is, after a time."""
        told = self._settings
        times = [self.full + told.sched_interval]
        if told.backfill:
            times.append(self.backfill + told.bf_interval)
        if self.changed:
            times.append(self.main + told.sched_delay)
        return max(min(times), now + 1)

    def note(self) -> None:
        """Take notice that something has happened for which the main scheduler looks at the queue."""
        self.changed = self.moved = True

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return [self.main, self.full, self.backfill, self.changed, self.moved, self.owed]

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.main, self.full, self.backfill, self.changed, self.moved, self.owed = state
