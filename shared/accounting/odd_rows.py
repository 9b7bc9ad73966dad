"""Rows that cannot be read. A reader leaves them out and counts them. It refuses a file that has too many of them."""

from pathlib import Path

from shadowtime.shared.errors import TraceError
from shadowtime.shared.quoting import truncate

EXAMPLES = 3
"""Number of odd rows that are quoted."""

MAX_SHARE = 0.1
"""Maximum share of odd rows among a file's rows. A file with a larger share is refused, except with `--lenient`."""

UNREADABLE = "unreadable"
"""Reason under which odd rows are counted among the rows that are left out."""


class OddRows:
    """The odd rows of a file: their number, and the line and reason of the first three.

    A row is odd if it is damaged, or has a value of the wrong kind. A row that the format allows but that is no job
    is not odd: `AccountingRows.leave_out` counts it.

    Examples
    --------
    >>> odd = OddRows()
    >>> odd.add(7, "Submit 'soon' is not a time")
    >>> odd.require_few(Path("sacct.txt"), read=99)
    >>> odd.note(read=99)
    "1 of 100 rows cannot be read and is left out: line 7: Submit 'soon' is not a time"
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: list[tuple[int, str]] = []
        """Line and reason of the first odd rows in the file, at most `EXAMPLES`."""

    def add(self, line: int, reason: str) -> None:
        """Count an odd row. `line` is its line number, or the number of its row in a table, from 1 on."""
        self.count += 1
        if len(self.first) < EXAMPLES or line < self.first[-1][0]:
            self.first = sorted([*self.first, (line, truncate(reason))])[:EXAMPLES]

    def require_few(self, path: Path, read: int, *, lenient: bool = False) -> None:
        """Refuse the file at `path` if its odd rows are more than a tenth of its rows.

        Parameters
        ----------
        read
            Number of the other rows. It includes rows that are left out because they are no jobs.
        lenient
            Whether any share of odd rows is accepted (`--lenient`).

        Raise `TraceError` if the odd rows are too many. The message quotes the first three.
        """
        if not lenient and self.count > MAX_SHARE * (self.count + read):
            raise TraceError(
                f"{path}: {self._of(read)} cannot be read, more than a tenth: {self.quoted}; "
                "repair the file, or leave them out with --lenient"
            )

    def note(self, read: int) -> str:
        """Return the remark for the user on the odd rows of a file with `read` other rows. There must be an odd row."""
        is_or_are = "is" if self.count == 1 else "are"
        return f"{self._of(read)} cannot be read and {is_or_are} left out: {self.quoted}"

    @property
    def quoted(self) -> str:
        """Line and reason of the first odd rows."""
        return "; ".join(f"line {line}: {reason}" for line, reason in self.first)

    def _of(self, read: int) -> str:
        return f"{self.count:,} of {self.count + read:,} rows"
