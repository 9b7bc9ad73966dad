"""Tables of jobs: text with a delimiter, Parquet or JSON. The columns may have any names."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from shadowtime.shared.accounting import (
    INSTANTS,
    NAMES,
    NUMBERS,
    SPANS,
    TEXTS,
    UNKNOWN,
    AccountingRows,
    Instants,
    Mapped,
    Reading,
    count_of,
    every,
    first_lines,
    in_seconds,
    instant_of,
    is_missing,
    is_nan,
    memory_of,
    resolved,
    span_of,
    word_of,
    zone_of,
)
from shadowtime.shared.accounting.slurm import GOING_ON, STATES, SacctColumns, columns_shown, is_header, state_in
from shadowtime.shared.accounting.tables.derived import add_instants, numbers_and_ids
from shadowtime.shared.accounting.tables.files import PARQUET, TableBlock, TableFile, delimiter_of, table_file
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.quoting import quote

REQUIRED = ("submit", "processors")

OTHERWISE = {
    "submit": "submit_time",
    "start": "start_time",
    "end": "end_time",
    "wait": "wait_time",
    "limit": "requested_time",
    "user": "user_id",
    "account": "group_id",
    "job_name": "executable_number",
    "partition": "queue_number",
    "qos": "qos_number",
}
"""Alternative names of columns, as in the tables that `convert` writes."""

NAME = "table"

EXPECTED = {
    **dict.fromkeys(INSTANTS, "not a time: neither a Unix time nor a date"),
    **dict.fromkeys(SPANS, "not a duration"),
    "memory": "not an amount of memory",
} | {name: "not a whole number" for name in NUMBERS if name not in (*INSTANTS, *SPANS, "memory")}


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a table: Parquet, JSON or text with a delimiter."""
    text = next(filter(bytes.strip, first_lines(head)), b"").decode(errors="replace")
    return head.startswith(PARQUET) or head.lstrip()[:1] in (b"[", b"{") or text.count(delimiter_of(text)) > 0


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs of a table, one for each row.

    A column has the name in `reading.columns`, or else our own name. Instants are Unix times, dates or timestamps.
    Spans are seconds, texts with units or [DAYS-]HOURS:MINUTES:SECONDS. An empty limit means no limit.

    Raises
    ------
    TraceError
        If the table cannot be read, lacks a column, or has a column of the wrong kind. The message shows the columns
        with their first values.

    References
    ----------
    docs/accounting.md#tables.
    """
    file = table_file(path, reading)
    if is_header(file.names):
        return _read_as_sacct(path, file, reading)
    table = _Table(path, file, reading)
    for block in file.blocks(table.is_row, table.rows.odd):
        table.take(block)
    if not (table.begun or table.rows.odd.count):
        raise TraceError(f"{path}: the table has no rows")
    return table.finish()


def _read_as_sacct(path: Path, file: TableFile, reading: Reading) -> AccountingRows:
    """Return the jobs of a table whose columns are fields of sacct."""
    taken = SacctColumns(path, reading)
    taken.require(file.names, file.values)
    for block in file.blocks(lambda row: taken.is_row(list(row), list(map(_text, row.values()))), taken.rows.odd):
        taken.take(block.lines, {name: list(map(_text, cells)) for name, cells in block.columns.items()})
    return taken.finish()


def _text(cell: Any) -> str:
    """Return a cell as sacct would print it."""
    if cell is None or is_nan(cell):
        return ""
    if isinstance(cell, timedelta):
        hours, rest = divmod(int(cell.total_seconds()), 3600)
        return f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return cell.isoformat() if isinstance(cell, date) else word_of(cell)


class _Table:
    """Conversion of a table's columns into rows of jobs."""

    def __init__(self, path: Path, file: TableFile, reading: Reading) -> None:
        self.path = path
        self.rows = AccountingRows()
        self.begun = False
        self._instants = Instants(zone_of(reading.time_zone), reading.date_format)
        self._shown = columns_shown(file.names, file.values)
        self._stated = self._resolved(file.names, reading.columns)
        self._named = self._own_columns(file.names)
        self._bare_limits = True
        self._taken = 0
        self._strange: Counter[str] = Counter()

    def _resolved(self, there: Sequence[str], mapping: Mapping[str, str]) -> dict[str, Mapped]:
        if twice := {column for column in there if there.count(column) > 1}:
            raise TraceError(f"{self.path}: column {quote(min(twice))} occurs twice")
        try:
            return resolved(mapping, there)
        except SettingsError as error:
            raise TraceError(f"{self.path}: {error}; it has {self._shown}") from None

    def _own_columns(self, there: Sequence[str]) -> dict[str, Mapped]:
        """Return the columns by our names. Names without a column are absent."""
        ours = {name: Mapped(name if name in there else OTHERWISE.get(name, name)) for name in NAMES} | self._stated
        return {name: mapped for name, mapped in ours.items() if mapped.column and mapped.column in there}

    def _require(self) -> None:
        named = self._named
        missing = [name for name in REQUIRED if name not in named]
        if not {"start", "wait"} & set(named) or not {"end", "run_time"} & set(named):
            missing.append("start or wait" if "end" in named or "run_time" in named else "end or run_time")
        if missing:
            missing += ["limit"] * ("limit" not in named)
            options = ", ".join(f"{name}=COLUMN" for name in missing)
            optional = "; limit is not needed with --requests actual" if "limit" in missing else ""
            raise TraceError(
                f"{self.path}: no column for {', '.join(missing)}; give --columns {options}{optional}; "
                f"it has {self._shown}"
            )
        if "limit" not in named:
            self.rows.notes.append(f"no column for limit: its jobs have no requested time; it has {self._shown}")

    def _parser(self, name: str) -> Callable[[Any], Any]:
        mapped = self._named[name]
        unit = mapped.unit or mapped.unit_in_name
        if name in INSTANTS:
            return instant_of(self._instants, unit)
        if name in SPANS:
            return span_of(unit)
        return memory_of if name == "memory" else count_of

    def is_row(self, row: Mapping[str, Any]) -> bool:
        """Return whether all values of a row are of their kinds."""
        return all(
            self._parser(name)(row[mapped.column]) is not None
            for name, mapped in self._named.items()
            if name in (*NUMBERS, *SPANS, *INSTANTS) and name != "job_number"
        ) and not is_missing(row[self._named["submit"].column])

    def _begin(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Find out from the first rows which columns fit, and refuse the table if one that is needed does not."""
        self.begun = True
        named = self._named
        try:
            dated = (columns[named[name].column] for name in INSTANTS if name in named)
            self._instants.learn_order(cell for cells in dated for cell in cells if isinstance(cell, str))
        except TraceError as error:
            raise TraceError(f"{self.path}: {error}") from None
        if "status" in named and "state" not in named:
            words = [_state(cell) for cell in columns[named["status"].column] if not is_missing(cell)]
            if sum(word in STATES or word in GOING_ON for word in words) > len(words) // 2:
                named["state"] = named.pop("status")

        wrong: list[str] = []
        for name in [name for name in named if name in (*NUMBERS, *SPANS, *INSTANTS) and name != "job_number"]:
            cells = columns[named[name].column]
            values = every(cells, self._parser(name))
            there = sum(not (is_missing(cell) or is_nan(cell)) for cell in cells)
            if 2 * values.count(None) <= there:
                continue
            at = values.index(None)
            what = f"{quote(named[name].column)} has {quote(str(cells[at]))}, which is {EXPECTED[name]}"
            if name in self._stated or name in REQUIRED:
                wrong.append(f"{name}: {what}")
            else:
                self.rows.notes.append(f"column {what}; it is left out as no {name}")
                del named[name]
        if wrong:
            raise TraceError(
                f"{self.path}: {'; '.join(wrong)}; name other columns with --columns, or leave one out with NAME=; "
                f"it has {self._shown}"
            )
        self._require()
        for name in (name for name in (*SPANS, *INSTANTS) if name in named):
            if named[name].unit is None and (unit := named[name].unit_in_name):
                column = named[name].column
                self.rows.notes.append(
                    f"{name} is read in {unit}, as the name of column {quote(column)} says; "
                    f"--columns {name}={column}:s would read it in seconds"
                )

    def take(self, block: TableBlock) -> None:
        """Add the jobs of some rows."""
        if not self.begun:
            self._begin(block.columns)
        columns = {name: block.columns[mapped.column] for name, mapped in self._named.items()}
        bad: dict[int, str] = {}
        numbers: dict[str, list[int]] = {}
        for name in (name for name in (*NUMBERS, "wait", "handed_in") if name in columns and name != "job_number"):
            numbers[name] = self._parsed(name, columns[name], bad)
        if "limit" in numbers:
            bare = [isinstance(cell, str) and ":" not in cell and not cell.isalpha() for cell in columns["limit"][:100]]
            self._bare_limits &= any(bare) or not isinstance(columns["limit"][0], str | timedelta)
            numbers["limit"] = [MAX_DURATION if number == UNKNOWN else number for number in numbers["limit"]]
        jobs, ids = (
            numbers_and_ids(columns["job_number"])
            if "job_number" in columns
            else (list(range(self._taken + 1, self._taken + 1 + len(block.lines))), None)
        )
        self._taken += len(block.lines)
        numbers["job_number"] = jobs
        words = {name: list(map(word_of, columns[name])) for name in TEXTS if name in columns}
        words["job_id"] = ids or [""] * len(jobs)
        add_instants(numbers)
        if "state" in columns:
            states = [_state(cell) for cell in columns["state"]]
            self._strange.update(state for state in states if state and state not in STATES and state not in GOING_ON)
            numbers["status"] = [STATES.get(state, UNKNOWN) for state in states]
            numbers["end"] = [
                UNKNOWN if state in GOING_ON else end for state, end in zip(states, numbers["end"], strict=True)
            ]
        lines = block.lines
        if bad:
            for at in sorted(bad):
                self.rows.odd.add(lines[at], bad[at])
            good = [at for at in range(len(lines)) if at not in bad]
            lines = [lines[at] for at in good]
            numbers = {name: [values[at] for at in good] for name, values in numbers.items()}
            words = {name: [texts[at] for at in good] for name, texts in words.items()}
        self.rows.extend(lines, numbers, words)

    def _parsed(self, name: str, cells: Sequence[Any], bad: dict[int, str]) -> list[int]:
        unit = self._named[name].unit or self._named[name].unit_in_name
        fast = (_seconds if name in INSTANTS else list) if unit is None else None
        values = every(cells, self._parser(name), fast)
        if None not in values:
            return values
        for at, value in enumerate(values):
            if value is None:
                bad.setdefault(at, f"{name} is {quote(str(cells[at]))}, which is {EXPECTED[name]}")
        return [UNKNOWN if value is None else value for value in values]

    def finish(self) -> AccountingRows:
        """Return all rows, with remarks on the file."""
        rows, limit = self.rows, self._named.get("limit")
        rows.assumed_utc = self._instants.assumed
        if rows.assumed_utc:
            rows.notes.append("its dates tell no time zone: taken for UTC; see --time-zone")
        if self._strange:
            ((state, _),) = self._strange.most_common(1)
            rows.notes.append(
                f"{self._strange.total():,} jobs have states that are not known, such as {quote(state)}: "
                "they count as ended by themselves"
            )
        if limit is not None and limit.unit is None and self._bare_limits:
            rows.assumed_limit = limit.column, limit.unit_in_name or "s"
        return rows


def _state(cell: Any) -> str:
    return state_in(str(cell or "").upper())


def _seconds(numbers: Sequence[int]) -> list[int]:
    """Return Unix times in seconds, from numbers of up to 15 digits."""
    return list(numbers) if max(numbers) < 10**11 else [in_seconds(number) or 0 for number in numbers]
