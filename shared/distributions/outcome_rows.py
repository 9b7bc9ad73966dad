"""The most recent jobs: for each, a row of features at its submission, and its outcomes."""

import zlib
from base64 import b64decode, b64encode
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shadowtime.shared.kernels import IntegerTable

# Tables of numbers as text in a snapshot.

PACKED: Final = "zlib:"
"""First characters of a packed table in a snapshot."""


def packed(table: bytes | memoryview) -> str:
    """Return the bytes of a table as compressed text.

    >>> unpacked(packed(bytes(1000))) == bytes(1000), len(packed(bytes(1000)))
    (True, 33)
    """
    return PACKED + b64encode(zlib.compress(table, 1)).decode()


def unpacked(text: str) -> bytes:
    """Return the table from a text of `packed`. Raise `ValueError` for any other text."""
    if not text.startswith(PACKED):
        raise ValueError(f"a table of jobs cannot be unpacked: it does not begin with {PACKED!r}")
    try:
        return zlib.decompress(b64decode(text.removeprefix(PACKED)))
    except zlib.error as error:
        raise ValueError(f"a table of jobs cannot be unpacked: its buffer is damaged ({error})") from None


def packed_numbers(table: Any) -> list[Any]:
    """Return an array of integers or floats as plain values: shape, type and packed bytes.

    >>> unpacked_numbers(packed_numbers(np.array([[1, 2], [3, 4]]))).tolist()
    [[1, 2], [3, 4]]
    """
    kind = "<f8"
    if table.dtype.kind == "i":
        small = table.size == 0 or (table.min() >= -(2**31) and table.max() < 2**31)
        kind = "<i4" if small else "<i8"
    return [list(table.shape), kind, packed(np.ascontiguousarray(table, dtype=kind).reshape(-1).view(np.uint8).data)]


def unpacked_numbers(state: Any, *, writable: bool = True) -> Any:
    """Return the array from the result of `packed_numbers`. A writable array takes twice the memory at first."""
    shape, kind, text = state
    numbers = np.frombuffer(unpacked(text), kind).reshape(shape)
    return numbers.astype(np.float64 if kind == "<f8" else np.int64, copy=writable)


Rows = npt.NDArray[np.float32]


SPARE: Final = 1_000
"""Rows that `OutcomeRows` keeps beyond its history. A growth of trees that is under way still reads them."""


class OutcomeRows:
    """A ring buffer of the last `history` jobs, each a row of `width` numbers with its outcomes. O(1) a job.

    The `SPARE` jobs before these are kept too; see `in_order`.

    >>> rows = OutcomeRows(history=2, width=1, outcomes=2)
    >>> for run_time in (10, 20, 30):
    ...     rows.add(np.array([run_time / 10], np.float32), run_time, 60)
    >>> known, outcomes = rows.in_order()
    >>> known.tolist(), outcomes.tolist(), rows.count
    ([[2.0], [3.0]], [[20, 60], [30, 60]], 3)
    """

    def __init__(self, history: int, width: int, outcomes: int) -> None:
        self._history = history
        self._places = history + SPARE
        self._width = width
        self._rows = np.zeros((0, width), np.float32)  # once full, the oldest row is at `count` mod places
        self._outcomes = np.zeros((0, outcomes), np.int64)
        self.count = 0
        """Number of jobs so far, including those that have been overwritten."""

    def add(self, row: Rows, *outcome: int) -> None:
        """Add a job's row and its outcomes, which are whole numbers."""
        at = self.count % self._places
        if at == len(self._rows):
            more = min(max(at, 1_000), self._places - at)
            self._rows = np.concatenate((self._rows, np.zeros((more, self._width), np.float32)))
            self._outcomes = np.concatenate((self._outcomes, np.zeros((more, self._outcomes.shape[1]), np.int64)))

        self._rows[at] = row
        self._outcomes[at] = outcome
        self.count += 1

    def in_order(self, count: int | None = None) -> tuple[Rows, IntegerTable]:
        """Return the rows, shape (jobs, width), and their outcomes, shape (jobs, outcomes), oldest first.

        With `count`, return the history as it was after the first `count` jobs. At most `SPARE` jobs may have followed.
        """
        end = self.count if count is None else count
        return self._between(end - self._history, end)

    def _between(self, first: int, end: int) -> tuple[Rows, IntegerTable]:
        order = np.arange(max(0, first), end) % self._places
        return self._rows[order], self._outcomes[order]

    def snapshot(self) -> Any:
        """Return rows and outcomes, oldest first, and the count."""
        rows, outcomes = self._between(self.count - self._places, self.count)
        return {"rows": packed_rows(rows), "outcomes": packed_numbers(outcomes), "count": self.count}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.count = state["count"]
        rows, outcomes = unpacked_rows(state["rows"], self._width), unpacked_numbers(state["outcomes"])
        first = self.count % len(rows) if self.count > len(rows) else 0  # place of the oldest row in a full ring
        self._rows, self._outcomes = np.roll(rows, first, axis=0), np.roll(outcomes, first, axis=0)


def packed_rows(rows: Rows) -> str:
    """Return rows as text in a snapshot."""
    return packed(np.ascontiguousarray(rows, "<f4").reshape(-1).view(np.uint8).data)


def unpacked_rows(text: str, width: int) -> Rows:
    """Return the rows from a text of `packed_rows`, shape (rows, width), as a writable copy."""
    return np.frombuffer(unpacked(text), "<f4").reshape(-1, width).astype(np.float32)
