"""Jobs with the fields of the Standard Workload Format, read one at a time from a file of another format."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from shadowtime.replayer.logs.swf import FIELDS, MAX_VALUES, table_of
from shadowtime.replayer.logs.trace import Trace, trace_name
from shadowtime.shared.accounting import UNREADABLE, OddRows
from shadowtime.shared.errors import TraceError

_LARGEST = dict(zip(FIELDS, MAX_VALUES.tolist(), strict=True))


class StandardRows:
    """Collector of the jobs of a file, and of the rows that are left out.

    Parameters
    ----------
    path
        The file, for the name of the log and for messages.
    """

    def __init__(self, path: Path) -> None:
        self.odd = OddRows()
        self._path = path
        self._rows: list[Mapping[str, int]] = []
        self._numbers: set[int] = set()
        self._left_out: dict[str, tuple[int, str]] = {}

    def add(self, job: Mapping[str, int]) -> None:
        """Add a job: values by the names of `FIELDS`, -1 if unknown. All jobs must have the same fields.

        Raise `ValueError` if a value is too large, or the job number is negative or repeated.
        """
        number = job["job_number"]
        if number < 0 or number in self._numbers:
            raise ValueError(f"job number {number} is negative" if number < 0 else f"job number {number} is repeated")
        for name, value in job.items():
            if abs(value) > _LARGEST[name]:
                raise ValueError(f"{name} {value} is larger than {_LARGEST[name]}")
        self._numbers.add(number)
        self._rows.append(job)

    def unused_number(self) -> int:
        """Return the lowest unused job number above the number of jobs."""
        number = len(self._rows) + 1
        while number in self._numbers:
            number += 1
        return number

    def leave_out(self, reason: str, line: int) -> None:
        """Record that a row is left out for a reason, which is not damage."""
        count, first = self._left_out.get(reason, (0, f"line {line}"))
        self._left_out[reason] = count + 1, first

    def trace(self, header: Mapping[str, str], *, lenient: bool) -> Trace:
        """Return the log, sorted by submit time and job number.

        Raise `TraceError` if no job is left, or too many rows are odd.
        """
        read = len(self._rows) + sum(count for count, _ in self._left_out.values())
        left_out, notes = dict(self._left_out), list[str]()
        if self.odd.count:
            self.odd.require_few(self._path, read, lenient=lenient)
            notes.append(self.odd.note(read))
            left_out = {UNREADABLE: (self.odd.count, self.odd.quoted), **left_out}
        if not self._rows:
            counts = ", ".join(f"{count:,} {reason}" for reason, (count, _) in left_out.items())
            raise TraceError(
                f"{self._path}: it has no job that can be replayed" + (f"; left out: {counts}" if counts else "")
            )
        columns = {name: np.array([row[name] for row in self._rows], dtype=np.int64) for name in self._rows[0]}
        order = np.lexsort((columns["job_number"], columns["submit_time"]))
        name = trace_name(self._path).rpartition(".")[0] or trace_name(self._path)
        return Trace(name, dict(header), table_of(columns)[order], tuple(notes), left_out=left_out)
