"""Options for reading an accounting file, and the rows that were read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shadowtime.shared.accounting.odd_rows import UNREADABLE, OddRows
from shadowtime.shared.kernels import Integers

UNKNOWN = -1
"""Placeholder for a number that the file does not have."""

NUMBERS = (
    *("job_number", "submit", "eligible", "start", "end", "run_time", "suspended", "limit"),
    *("processors", "nodes", "memory", "gpus", "whole_nodes", "status"),
)
"""Fields of a job that are whole numbers: Unix times, seconds, counts, MiB or a status. Missing ones are `UNKNOWN`."""

TEXTS = ("user", "account", "job_name", "partition", "qos", "node_list")
"""Fields of a job that are words. `AccountingRows` may also have `cluster`, and `job_id` if it is no number."""

TYPES = ("gpu_type", "gpu_got")
"""Words about types of GPUs: those that a job names, and the GPUs that it got by type, as Slurm writes them."""


@dataclass(frozen=True)
class Reading:
    """The user's options for reading a file.

    `columns` has the names of a table's columns by our names of fields. `time_zone` is that of dates without one; None
    means UTC. The paths are the files of the pools, of the mapping of names, and of the key that hides names. `lenient`
    accepts any share of odd rows. `fields` are the fields of a file without a header. `delimiter` is None if the file
    shows it. `cluster` is the only cluster whose jobs are read. `date_format` is as in `strptime`.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    time_zone: str | None = None
    pools: Path | None = None
    names: Path | None = None
    names_key: Path | None = None
    lenient: bool = False
    fields: tuple[str, ...] = ()
    delimiter: str | None = None
    cluster: str | None = None
    date_format: str | None = None


class Words:
    """A column of words. `values` maps each distinct word to its code; `codes` has the code of each row."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self._codes: list[Integers] = []

    def extend(self, words: Any) -> None:
        """Add the words of further rows: texts, or a column of them."""
        known = self.values
        if hasattr(words, "coded"):
            texts, codes = words.coded
            self._codes.append(np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int32)[codes])
            return
        self._codes.append(np.array([known.setdefault(word, len(known)) for word in words], dtype=np.int32))

    @property
    def codes(self) -> Integers:
        """Code of each row's word, shape (n,)."""
        return np.concatenate(self._codes or [np.empty(0, dtype=np.int32)]).astype(np.int64)


class AccountingRows:
    """Rows of an accounting file: one for each time that a job waited and ran, in the order of the file.

    Examples
    --------
    >>> rows = AccountingRows()
    >>> rows.extend([3], {"job_number": [17], "submit": [1000]}, {"user": ["eve"]})
    >>> rows.column("submit").tolist(), rows.column("end").tolist(), rows.has("end"), list(rows.words("user").values)
    ([1000], [-1], False, ['eve'])
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.left_out: dict[str, tuple[int, str]] = {}
        """Number of rows left out, by reason, with a description of the first of these rows."""
        self.odd = OddRows()
        self.assumed_utc = False
        """Whether dates without a time zone were read as UTC."""
        self.assumed_limit: tuple[str, str] | None = None
        """The name of the column of limits, and the unit in which they were read, if nobody has stated the unit."""
        self.open_units: frozenset[str] = frozenset()
        """Names of times and durations whose unit nobody has stated."""
        self.passed_over = 0
        """Number of lines that were read but make no row, such as records of the server."""
        self.records = 0
        """Number of records that are not odd, if a line may have several of them; else 0."""
        self._lines: list[Integers] = []
        self._numbers: dict[str, list[Integers]] = {}
        self._words: dict[str, Words] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    def extend(self, lines: Sequence[int] | Integers, numbers: Mapping[str, Any], words: Mapping[str, Any]) -> None:
        """Add rows, with the line of each. Words are texts or a `CellColumn` of them.

        If a call lacks a column of another call, its values are `UNKNOWN` or empty.
        """
        before, more = len(self), len(lines)
        self._lines.append(np.array(lines, dtype=np.int64))
        for name in numbers.keys() | self._numbers.keys():
            values = numbers[name] if name in numbers else np.full(more, UNKNOWN)
            earlier = self._numbers.setdefault(name, [np.full(before, UNKNOWN)] if before else [])
            earlier.append(np.array(values, dtype=np.int64))
        for name in (*words, *(self._words.keys() - words.keys())):
            if name not in self._words:
                self._words[name] = Words()
                self._words[name].extend([""] * before)
            self._words[name].extend(words[name] if name in words else [""] * more)

    def note_assumed_utc(self, advice: str = "see --time-zone", *, mixed: bool = False) -> None:
        """Record that dates without a time zone were read as UTC, and add a note with `advice`.

        `mixed` says whether other times of the file are Unix times or name a zone.
        """
        self.assumed_utc = True
        which = (
            "some of its dates state no time zone, unlike its other times" if mixed else "its dates state no time zone"
        )
        wrong = "; if they are local, waits or run times are hours off" if mixed else ""
        self.notes.append(f"{which}: read as UTC{wrong}; {advice}")

    def leave_out(self, reason: str, count: int, example: str) -> None:
        """Record that `count` rows are left out for a reason. `example` describes the first of them."""
        before, first = self.left_out.get(reason, (0, example))
        self.left_out[reason] = before + count, first

    def require_few_odd(self, path: Path, *, lenient: bool) -> None:
        """Count the odd rows among those left out, and add a note on them. All rows of the file must have been read.

        Raise `TraceError` if the odd rows are more than a tenth of all rows, unless `lenient`.
        """
        if not self.odd.count:
            return
        read = self.records or len(np.unique(self.lines)) + sum(count for count, _ in self.left_out.values())
        read += self.passed_over
        self.odd.require_few(path, read, lenient=lenient)
        self.notes.insert(0, self.odd.note(read))
        self.left_out = {UNREADABLE: (self.odd.count, self.odd.quoted), **self.left_out}

    def has(self, name: str) -> bool:
        """Return whether the file has a column."""
        return name in self._numbers or name in self._words

    def column(self, name: str) -> Integers:
        """Return a column of numbers, shape (n,). All are `UNKNOWN` if the file does not have it."""
        values = self._numbers.get(name)
        return np.concatenate(values) if values else np.full(len(self), UNKNOWN, dtype=np.int64)

    def words(self, name: str) -> Words:
        """Return a column of words. All are empty if the file does not have it."""
        if name not in self._words:
            self._words[name] = Words()
            self._words[name].extend([""] * len(self))
        return self._words[name]

    @property
    def lines(self) -> Integers:
        """Line of each row in the file, shape (n,)."""
        return np.concatenate(self._lines or [np.empty(0, dtype=np.int64)])
