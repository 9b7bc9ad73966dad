"""What running jobs have released for the heads of attempts to backfill, and which heads were ready when."""

from shadowtime.shared.arrays import IntegerTable
from shadowtime.shared.kernel import kernel

ID, TIME, NEEDED, RELEASED, READY_AFTER = range(5)
"""Columns of attempts."""


@kernel
def settle(attempts: IntegerTable, last_end: int) -> None:
    """Note, in place, which heads could have started at the last instant at which jobs ended. O(attempts)."""
    for each in attempts:
        if each[READY_AFTER] < 0 and each[RELEASED] >= each[NEEDED]:
            each[READY_AFTER] = last_end - each[TIME]


@kernel
def release(attempts: IntegerTable, seen_by: int, processors: int) -> None:
    """Add, in place, what a job released to the attempts that saw it running and whose heads are not ready."""
    for at in range(len(attempts) - 1, -1, -1):  # in order of their ids
        if attempts[at, ID] < seen_by:
            break
        if attempts[at, READY_AFTER] < 0:
            attempts[at, RELEASED] += processors
