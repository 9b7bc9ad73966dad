"""The times at which the heads of backfill attempts are ready.

An attempt is a pass that evaluates candidates. The tracker stores the jobs that run at the time of the attempt. The
head is ready when enough of these jobs have ended for the head to fit (docs/algorithms.md#calibration).
"""

from typing import Any, NamedTuple

import numpy as np

from shadowtime.shared.kernels.arrays import Flags, Integers, IntegerTable
from shadowtime.shared.kernels.decorator import kernel

ID, TIME, NEEDED, RUNNING, RELEASED, READY_AFTER = range(6)
"""Columns of attempts, in seconds and processors. `RUNNING` is the number of counted jobs that have not ended."""

NOT_READY = -1
"""Value of `READY_AFTER` while the head is not ready."""


@kernel
def find_ready(attempts: IntegerTable, last_end: int) -> None:
    """Mark, in place, the heads that became ready at the last instant at which jobs ended. O(attempts)."""
    for attempt in attempts:
        if attempt[READY_AFTER] == NOT_READY and attempt[RELEASED] >= attempt[NEEDED]:
            attempt[READY_AFTER] = last_end - attempt[TIME]


@kernel
def release(attempts: IntegerTable, first: int, processors: int) -> None:
    """Release a job's processors, in place, for the attempts from id `first` on whose head is not ready."""
    for at in range(len(attempts) - 1, -1, -1):  # in order of their ids
        if attempts[at, ID] < first:
            break
        if attempts[at, READY_AFTER] == NOT_READY:
            attempts[at, RELEASED] += processors
            attempts[at, RUNNING] -= 1


class TrackedHeads(NamedTuple):
    """Columns of attempts, in the order of their ids; each of shape (attempts,).

    Parameters
    ----------
    ready, hopeless
        Whether the head is ready, or never will be: all counted jobs have ended, and it is still not ready.
    ready_after
        Seconds from the attempt until the head was ready; `NOT_READY` before.
    extra
        Processors released by then, beyond those that the head needs; negative before.
    """

    id: Integers
    ready: Flags
    hopeless: Flags
    ready_after: Integers
    extra: Integers


class HeadTracker:
    """Attempts of one machine, and the processors that the counted jobs have released for their heads.

    A change of the machine's size is ignored. The end of a job costs O(kept attempts).

    >>> heads = HeadTracker()
    >>> heads.start(7)
    >>> first = heads.add(time=100, needed=4)
    >>> heads.end(160, 7, processors=4)
    >>> heads.mark_ready()
    >>> int(heads.columns().ready_after[first])
    60
    """

    def __init__(self) -> None:
        self._attempts: IntegerTable = np.empty((0, READY_AFTER + 1), np.int64)
        self.next_attempt = 0
        self.last_end = 0
        self.counted_from: dict[int, int] = {}
        """Id of the first attempt that counts the job, for each job that is running or about to start."""
        self._new: list[tuple[int, int, int, int, int, int]] = []
        self.marked = True
        """Whether nothing has been released, and no attempt has been added, since the last `mark_ready`."""

    def add(self, time: int, needed: int, *, keep: bool = True) -> int:
        """Add an attempt whose head needs so many processors of the running jobs, and return its id.

        With `keep` False the attempt only gets an id and is not tracked.
        """
        number = self.next_attempt
        self.next_attempt += 1
        if keep:
            self._new.append((number, time, needed, len(self.counted_from), 0, NOT_READY))
            self.marked = False
        return number

    def start(self, job_number: int) -> None:
        """Count a job from the next attempt on, if it is not counted yet. The job has started, or is about to start."""
        self.counted_from.setdefault(job_number, self.next_attempt)

    def withdraw(self, job_number: int) -> None:
        """Stop counting a job that was about to start."""
        self.counted_from.pop(job_number, None)

    def end(self, time: int, job_number: int, processors: int) -> None:
        """Release the processors of a counted job that ends at `time`, in seconds."""
        if time > self.last_end:
            self.mark_ready()
        self.last_end, self.marked = time, False
        first = self.counted_from.pop(job_number)
        self._merge()
        if len(self._attempts):
            release(self._attempts, first, processors)

    def mark_ready(self) -> None:
        """Mark the heads that are ready, after all ends of the last instant have been applied."""
        if not self.marked:
            self._merge()
            if len(self._attempts):
                find_ready(self._attempts, self.last_end)
            self.marked = True

    def columns(self) -> TrackedHeads:
        """Return the state of the kept attempts, as of the last `mark_ready`."""
        attempts = self._attempts
        ready = attempts[:, READY_AFTER] != NOT_READY
        return TrackedHeads(
            attempts[:, ID],
            ready,
            ~ready & (attempts[:, RUNNING] == 0),
            attempts[:, READY_AFTER],
            attempts[:, RELEASED] - attempts[:, NEEDED],
        )

    def keep(self, which: Flags) -> None:
        """Drop all attempts except the flagged ones; `which` has shape (attempts,)."""
        self._attempts = self._attempts[which]

    def _merge(self) -> None:
        if self._new:
            self._attempts = np.concatenate([self._attempts, np.array(self._new, np.int64)])
            self._new.clear()

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return {
            "attempts": [*self._attempts.tolist(), *map(list, self._new)],
            "counted_from": list(self.counted_from.items()),
            "last_end": self.last_end,
            "next_attempt": self.next_attempt,
            "settled": self.marked,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self._attempts = np.array(state["attempts"], np.int64).reshape(-1, READY_AFTER + 1)
        self.counted_from = dict(state["counted_from"])
        self.last_end, self.next_attempt, self.marked = state["last_end"], state["next_attempt"], state["settled"]
        self._new = []
