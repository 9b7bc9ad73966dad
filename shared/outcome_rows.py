"""What was known of the last jobs as each was submitted, and what came of it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from shadowtime.shared.arrays import IntegerTable
from shadowtime.shared.packed_table import packed, packed_numbers, unpacked, unpacked_numbers

Rows = npt.NDArray[np.float32]


class OutcomeRows:
    """A ring of the rows of jobs, the last `history` ones, each `width` numbers, with their outcomes. O(1) a job.

    >>> rows = OutcomeRows(history=2, width=1, outcomes=2)
    >>> for run_time in (10, 20, 30):
    ...     rows.add(np.array([run_time / 10], np.float32), run_time, 60)
    >>> known, outcomes = rows.in_order()
    >>> known.tolist(), outcomes.tolist(), rows.count
    ([[2.0], [3.0]], [[20, 60], [30, 60]], 3)
    """

    def __init__(self, history: int, width: int, outcomes: int) -> None:
        self._history = history
        self._width = width
        self._rows = np.zeros((0, width), np.float32)  # from `count` mod history on once it is full
        self._outcomes = np.zeros((0, outcomes), np.int64)
        self.count = 0
        """Jobs so far, also those that are forgotten."""

    def add(self, row: Rows, *outcome: int) -> None:
        """Remember a job, and the whole numbers that came of it."""
        at = self.count % self._history
        if at == len(self._rows):
            more = min(max(at, 1_000), self._history - at)
            self._rows = np.concatenate((self._rows, np.zeros((more, self._width), np.float32)))
            self._outcomes = np.concatenate((self._outcomes, np.zeros((more, self._outcomes.shape[1]), np.int64)))
        self._rows[at] = row
        self._outcomes[at] = outcome
        self.count += 1

    def in_order(self) -> tuple[Rows, IntegerTable]:
        """Return rows, shape (jobs, width), and the outcome of each, shape (jobs, outcomes), oldest first."""
        order = np.arange(max(0, self.count - self._history), self.count) % self._history
        return self._rows[order], self._outcomes[order]

    def snapshot(self) -> Any:
        """Return rows and outcomes, oldest first, and the count."""
        rows, outcomes = self.in_order()
        return {"rows": packed_rows(rows), "outcomes": packed_numbers(outcomes), "count": self.count}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.count = state["count"]
        rows, outcomes = unpacked_rows(state["rows"], self._width), unpacked_numbers(state["outcomes"])
        first = self.count % len(rows) if self.count > len(rows) else 0  # where the oldest of a full ring lies
        self._rows, self._outcomes = np.roll(rows, first, axis=0), np.roll(outcomes, first, axis=0)


def packed_rows(rows: Rows) -> str:
    """Return rows as text in a snapshot."""
    return packed(rows.astype("<f4").tobytes())


def unpacked_rows(text: str, width: int) -> Rows:
    """Return the rows in a text that `packed_rows` gave, shape (rows, width), that may be written to."""
    return np.frombuffer(unpacked(text), "<f4").reshape(-1, width).astype(np.float32)
