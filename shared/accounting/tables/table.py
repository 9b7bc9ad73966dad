"""Tables of jobs: text with a delimiter, Parquet or JSON. The columns may have any names."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from shadowtime.shared.accounting import (
    INSTANTS,
    NAMES,
    NUMBERS,
    SPANS,
    TEXTS,
    UNKNOWN,
    AccountingRows,
    CellColumn,
    Instants,
    Mapped,
    Reading,
    as_it_is,
    count_of,
    first_lines,
    instant_of,
    is_below_one,
    is_missing,
    is_nan,
    is_table,
    memory_of,
    notes_on_units,
    number_of,
    resolved,
    span_of,
    tasks_of,
    whole_number,
    word_of,
    zone_of,
)
from shadowtime.shared.accounting.slurm import (
    GOING_ON,
    KNOWN,
    STATES,
    SacctColumns,
    amount_of,
    columns_shown,
    is_header,
    named_resources,
    resources_of,
    state_in,
)
from shadowtime.shared.accounting.tables.blocks import TableBlock, TableFile
from shadowtime.shared.accounting.tables.files import FRAME, PARQUET, delimiter_of, frame_table, head_at, table_file
from shadowtime.shared.accounting.tables.presets import preset_of
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import KILLED, LIMIT, RESIZED
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.kernels import Integers
from shadowtime.shared.quoting import quote

REQUIRED = ("submit", "processors")

OTHERWISE = {
    "submit": "submit_time",
    "start": "start_time",
    "end": "end_time",
    "wait": "wait_time",
    "limit": "requested_time",
    "processors": "requested_processors",
    "user": "user_id",
    "account": "group_id",
    "job_name": "executable_number",
    "partition": "queue_number",
    "qos": "qos_number",
    "tres": "tres_alloc",
}
"""Alternative names of columns: those of the Standard Workload Format, as `convert` and others write them."""

OF_OTHERS = {
    **dict.fromkeys(("PASS", "DONE", "SUCCESS", "SUCCEEDED", "FINISHED", "COMPLETED_SUCCESSFULLY"), "COMPLETED"),
    **dict.fromkeys(("FAIL", "FAILURE", "ERROR", "EXIT", "EXITED", "COMPLETED_FAILED"), "FAILED"),
    **dict.fromkeys(("KILLED", "DELETED", "REMOVED", "ABORTED", "STOPPED_BY_USER", "COMPLETED_KILLED"), "CANCELLED"),
    **dict.fromkeys(("TIMEDOUT", "TIMED_OUT", "WALLTIME", "COMPLETED_WALLTIME_REACHED"), "TIMEOUT"),
    **dict.fromkeys(("QUEUED", "WAITING", "SUBMITTED"), "PENDING"),
}
"""States of Slurm by words of other systems."""

BY_NUMBER = (
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"),
    *("BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"),
)
"""States by their numbers in Slurm's database."""

OF_STANDARD = *range(6), LIMIT, KILLED, RESIZED
"""Statuses of the Standard Workload Format, and those that `convert` writes."""

FLAGGED = {1 << 10: "REQUEUED", 1 << 13: "RESIZING", 1 << 19: "REVOKED"}
"""States of Slurm that are flags beside such a number."""

NAME = "table"

EXPECTED = {
    **dict.fromkeys(INSTANTS, "not a time: neither a Unix time nor a date"),
    **dict.fromkeys(SPANS, "not a duration"),
    "memory": "not an amount of memory in MiB, or with a unit",
} | {name: "not a whole number" for name in NUMBERS if name not in (*INSTANTS, *SPANS, "memory")}


_DECIMAL_COMMA = re.compile(r"\s*[0-9]+,[0-9]+\s*\Z")
_COMMAS = re.compile(r"\s*[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?\s*\Z")
_HOW_TIMES = (
    "; --date-format states the format of dates, --time-zone the zone of abbreviations such as CET, and "
    "NAME=COLUMN:ms (or s, us, ns) the unit of numbers"
)
_HOW_MEMORY = "; --columns memory=COLUMN:B (or K, M, G, T) states the unit of numbers"
_ROUNDED = re.compile(r"[0-9](\.[0-9]+)?[eE]\+[0-9]+\Z")
"""A large number as spreadsheets show it."""

_BETWEEN_WORDS = re.compile(r"[ -]+")
_HOURS_OR_MINUTES = re.compile(r"[0-9]{1,6}:[0-5][0-9]\Z")
_POINTS = re.compile(r"\s*[1-9][0-9]{0,2}(\.[0-9]{3})+\s*\Z")


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a table: Parquet, JSON or text with a delimiter."""
    if head.startswith(PARQUET) or head.lstrip()[:1] in (b"[", b"{"):
        return True
    lines = [line.decode(errors="replace") for line in first_lines(head)]
    text = lines[head_at(lines)] if lines else ""
    return text.count(delimiter_of(text)) > 0 and "\0" not in text


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs of a table, one for each row.

    A column has the name in `reading.columns`, or else our own name, or that of `OTHERWISE`. Instants are Unix times,
    dates or timestamps. Spans are seconds, texts with units or [DAYS-]HOURS:MINUTES:SECONDS. An empty limit means no
    limit. A table with a header of sacct is read as output of sacct.

    Raise `TraceError` if the table cannot be read, lacks a column, or has a column of the wrong kind. The message shows
    the columns with their first values.

    References
    ----------
    docs/accounting.md#tables.
    """
    return _read(path, table_file(path, reading), reading)


def read_frame(frame: Any, reading: Reading) -> AccountingRows:
    """Return the jobs of a data frame of pandas, polars or pyarrow, one for each row, as `read` does.

    Raises
    ------
    TraceError
        If it is no data frame, or as `read` does.
    ImportError
        If pyarrow is not installed.
    """
    return _read(FRAME, frame_table(frame), reading)


def _read(path: Path, file: TableFile, reading: Reading) -> AccountingRows:
    if is_header(file.names) and not is_table(reading.columns):
        return _read_as_sacct(path, file, reading)
    table = _Table(path, file, reading)
    table.require()
    for block in file.blocks(table.is_row, table.rows.odd, table.wanted):
        table.take(block)
    if not (table.begun or table.rows.odd.count):
        raise TraceError(f"{path}: the table has no rows; expected one for each job")
    return table.finish()


def _read_as_sacct(path: Path, file: TableFile, reading: Reading) -> AccountingRows:
    """Return the jobs of a table whose columns are fields of sacct."""
    taken = SacctColumns(path, reading)
    spelled = {name: name if (field := KNOWN.get(name.lower(), name)) in file.names else field for name in file.names}
    taken.require([spelled[name] for name in file.names], file.values)

    def is_row(row: Mapping[str, Any]) -> bool:
        return taken.is_row([spelled[name] for name in row], list(map(_text, row.values())))

    wanted = {name for name in file.names if spelled[name] in taken.wanted}
    for block in file.blocks(is_row, taken.rows.odd, wanted):
        taken.take(block.lines, {spelled[name]: column.words(_text) for name, column in block.columns.items()})
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
        self._hint = ""
        if any(map(_is_bare, file.names)):
            self._hint = "; if its first line has values in place of names, name the columns in order: --fields A,B,…"
        self._names = file.names
        self._shown = columns_shown(file.names, file.values)
        self._stated = self._resolved(file.names, reading.columns)
        self._named = self._own_columns(file.names)
        self.wanted = {mapped.column for mapped in self._named.values()}
        """Names of the columns that are read."""
        if twice := [column for column in self.wanted if file.names.count(column) > 1]:
            raise TraceError(f"{path}: several columns are called {quote(min(twice))}; rename them{self._hint}")
        self._decimal_comma = file.delimiter == ";"
        self._thousands: set[str] = set()
        """Names of durations, and memory, with points that separate thousands."""
        self._bare_limits = True
        self._small_limits = False
        self._taken = 0
        self._strange: Counter[str] = Counter()

    def _resolved(self, there: Sequence[str], mapping: Mapping[str, str]) -> dict[str, Mapped]:
        try:
            return resolved(mapping, there)
        except SettingsError as error:
            raise TraceError(f"{self.path}: {error}; it has {self._shown}") from None

    def _own_columns(self, there: Sequence[str]) -> dict[str, Mapped]:
        """Return the columns by our names. Names without a column are absent."""
        spelled = {column.lower(): column for column in reversed(there)} | {column: column for column in there}
        ours = {name: Mapped(spelled.get(name) or spelled.get(OTHERWISE.get(name, name), name)) for name in NAMES}
        if ours["cluster"] in self._stated.values():  # the user has mapped it to another name
            del ours["cluster"]
        ours |= self._stated
        return {name: mapped for name, mapped in ours.items() if mapped.column and mapped.column in there}

    def require(self) -> None:
        """Raise `TraceError` if a column that is needed is missing."""
        named = self._named
        missing = [name for name in REQUIRED if name not in named]
        if not {"start", "wait"} & set(named) or not {"end", "run_time"} & set(named):
            missing.append("start or wait" if "end" in named or "run_time" in named else "end or run_time")
        if missing:
            missing += ["limit"] * ("limit" not in named)
            options = "--columns " + ", ".join(f"{name.split()[0]}=COLUMN" for name in missing)
            if preset := preset_of(self._names):
                options = f"--preset {preset}, whose columns it has, or {options}"
            optional = "; limit is not needed with --requests actual" if "limit" in missing else ""
            raise TraceError(
                f"{self.path}: no column for {', '.join(missing)}; give {options}{optional}; it has {self._shown}"
                f"{self._hint}"
            )

    def _note_missing_limit(self) -> None:
        if "limit" not in self._named:
            self.rows.notes.append(f"no column for limit: its jobs have no requested time; it has {self._shown}")

    def _parser(self, name: str) -> Callable[[Any], Any]:
        unit = self._named[name].unit_of(name)
        if name in INSTANTS:
            parse = instant_of(self._instants, unit)
        elif name in SPANS:
            parse = span_of(unit)
        else:
            parse = memory_of(unit) if name == "memory" else count_of
        counts = name not in (*INSTANTS, *SPANS, "memory")
        return lambda cell: parse(self._as_python(cell, counts=counts or name in self._thousands))

    def _as_python(self, cell: Any, *, counts: bool) -> Any:
        """Return a number with a decimal point and without separators of thousands.

        A spreadsheet that separates fields by semicolons has a decimal comma, and separates thousands by points.
        """
        if not isinstance(cell, str) or cell.isdecimal():
            return cell
        if self._decimal_comma:
            if counts and _POINTS.match(cell):
                return cell.replace(".", "")
            return cell.replace(",", ".") if _DECIMAL_COMMA.match(cell) else cell
        return cell.replace(",", "") if _COMMAS.match(cell) else cell

    def is_row(self, row: Mapping[str, Any]) -> bool:
        """Return whether all values of a row are valid. Until a row has been read, only the needed values count."""
        needed = {*self._stated, *REQUIRED, *INSTANTS} if not self.begun else {*NUMBERS, *SPANS, *INSTANTS}
        return all(
            self._parser(name)(row[mapped.column]) is not None
            for name, mapped in self._named.items()
            if name in needed and name in (*NUMBERS, *SPANS, *INSTANTS) and name != "job_number"
        ) and not is_missing(row[self._named["submit"].column])

    def _begin(self, columns: Mapping[str, CellColumn]) -> None:
        """Find out from the first rows which columns are valid, and refuse the table if a needed column is not."""
        self.begun = True
        named = self._named
        try:
            unstated = [named[name] for name in INSTANTS if name in named and named[name].unit is None]
            dated = [columns[mapped.column] for mapped in unstated if not columns[mapped.column].is_plain]
            times = (cell for column in dated for cell in column.coded[0])
            self._instants.learn_order(str(cell) for cell in times if isinstance(cell, str | float))
        except TraceError as error:
            raise TraceError(f"{self.path}: {error}") from None
        self._check_status(columns)
        if "job_number" in named and not columns[named["job_number"].column].is_plain:
            ids = columns[named["job_number"].column].coded[0]
            if rounded := next((cell for cell in ids if isinstance(cell, str) and _ROUNDED.match(cell)), None):
                self.rows.notes.append(
                    f"column {quote(named['job_number'].column)} has {quote(rounded)}, a rounded number; it is not "
                    "read as job_number, and jobs are numbered by row"
                )
                del named["job_number"]
        wrong, misfits = self._with_points(columns), list[str]()
        for name in [name for name in named if name in (*NUMBERS, *SPANS, *INSTANTS) and name != "job_number"]:
            column = columns[named[name].column]
            if column.is_plain and name != "memory":
                continue
            cells, codes = column.coded
            unreadable = column.numbers(self._parser(name))[1]
            there = np.array([not (is_missing(cell) or is_nan(cell)) for cell in cells], dtype=np.bool_)[codes].sum()
            if 2 * len(unreadable) <= there:
                continue
            cell = column[unreadable[0]]
            what = f"{quote(named[name].column)} has {quote(str(cell))}, which is {EXPECTED[name]}"
            what += _HOW_MEMORY * (name == "memory")
            if name in self._stated or name in REQUIRED:
                wrong.append(f"{name}: {what}" + (_HOW_TIMES * (name in INSTANTS)))
            else:
                self.rows.notes.append(f"column {what}; it is not read as {name}")
                del named[name]
                misfits.append(self.rows.notes[-1])
        if wrong:
            raise TraceError(
                f"{self.path}: {'; '.join(wrong)}; name other columns with --columns, or leave one out with NAME=; "
                f"it has {self._shown}"
            )
        try:
            self.require()
        except TraceError as error:
            raise TraceError(f"{error}{''.join(f'; {misfit}' for misfit in misfits)}") from None
        self._note_missing_limit()
        self.rows.notes += notes_on_units(
            {name: named[name] for name in (*SPANS, *INSTANTS, "memory") if name in named}
        )

    def _check_status(self, columns: Mapping[str, CellColumn]) -> None:
        """Find out whether a column of statuses has states, exit codes or statuses of the Standard Workload Format."""
        named = self._named
        if "status" in named and "state" not in named:
            words = [_state(cell) for cell in columns[named["status"].column].coded[0] if not is_missing(cell)]
            if sum(word in STATES or word in GOING_ON for word in words) > len(words) // 2:
                named["state"] = named.pop("status")
        if "status" in named:
            cells, _ = columns[named["status"].column].coded
            exit_code = next((cell for cell in cells if count_of(cell) not in (None, UNKNOWN, *OF_STANDARD)), None)
            if exit_code is not None:
                self.rows.notes.append(
                    f"column {quote(named['status'].column)} has {quote(str(exit_code))}, which is no status of the "
                    "Standard Workload Format; it is not read as status"
                )
                del named["status"]
            elif "status" not in self._stated and {*map(count_of, cells)} - {UNKNOWN} == {0, 1}:
                self.rows.notes.append(
                    f"column {quote(named['status'].column)} has only 0 and 1, read as in the Standard Workload "
                    "Format: 0 is failed, 1 completed; if they are exit codes, leave the column out with status="
                )

    def _with_points(self, columns: Mapping[str, CellColumn]) -> list[str]:
        """Note the durations and amounts of memory whose points separate thousands.

        Return a fault for each column whose points may be decimal points.
        """
        wrong: list[str] = []
        for name in [name for name in (*SPANS, "memory") if name in self._named and self._decimal_comma]:
            column = columns[self._named[name].column]
            texts = [] if column.is_plain else [cell for cell in column.coded[0] if not is_missing(cell)]
            pointed = [cell for cell in texts if "." in cell]
            if not pointed or not all(map(_POINTS.match, pointed)):
                continue
            self._thousands.add(name)
            if len(pointed) == len(texts):
                what = f"{quote(self._named[name].column)} has {quote(pointed[0])}, which may be a decimal "
                what += "or have thousands"
                if name == "memory" and name not in self._stated:
                    self.rows.notes.append(f"column {what}; it is not read as {name}")
                    del self._named[name]
                else:
                    wrong.append(f"{name}: {what}; write it without points")
        return wrong

    def take(self, block: TableBlock) -> None:
        """Add the jobs of a block of rows."""
        if not self.begun:
            self._begin(block.columns)
        columns = {name: block.columns[mapped.column] for name, mapped in self._named.items()}
        lines, bad = block.lines, dict[int, str]()
        numbers = {
            name: self._parsed(name, columns[name], bad)
            for name in (*NUMBERS, "wait", "handed_in")
            if name in columns and name != "job_number"
        }
        if "limit" in numbers:
            self._bare_limits &= any(map(_is_bare, columns["limit"].coded[0][:100]))
            self._note_small_limits(columns["limit"])
            numbers["limit"] = np.where(numbers["limit"] == UNKNOWN, MAX_DURATION, numbers["limit"])
        if "tres" in columns:
            _add_resources(numbers, columns["tres"])
        words = {name: columns[name].words(word_of) for name in (*TEXTS, "cluster") if name in columns}
        counted = np.arange(self._taken + 1, self._taken + 1 + len(lines)), CellColumn([""] * len(lines))
        numbers["job_number"], words["job_id"] = (
            numbers_and_ids(columns["job_number"]) if "job_number" in columns else counted
        )
        self._taken += len(lines)
        add_instants(numbers)
        if "state" in columns:
            states, codes = columns["state"].words(_slurm_state if "state" in self._stated else _state).coded
            strange = {code: state for code, state in enumerate(states) if state and state not in STATES}
            counts = np.bincount(codes, minlength=len(states))
            self._strange.update({state: int(counts[code]) for code, state in strange.items() if state not in GOING_ON})
            numbers["status"] = np.array([STATES.get(state, UNKNOWN) for state in states], dtype=np.int64)[codes]
            going_on = np.array([state in GOING_ON for state in states], dtype=np.bool_)[codes]
            numbers["end"] = np.where(going_on, UNKNOWN, numbers["end"])
        if bad:
            for at in sorted(bad):
                self.rows.odd.add(int(lines[at]), bad[at])
            good = np.array([at for at in range(len(lines)) if at not in bad], dtype=np.int64)
            lines, numbers = lines[good], {name: values[good] for name, values in numbers.items()}
            words = {name: column.select(good) for name, column in words.items()}
        self.rows.extend(lines, numbers, words)

    def _note_small_limits(self, column: CellColumn) -> None:
        """Note limits below a second, such as the fractions of a day that spreadsheets store, once for each table."""
        name, unit = self._named["limit"].column, self._named["limit"].unit
        if self._small_limits or unit is not None or column.is_plain:
            return
        small = next((cell for cell in column.coded[0] if is_below_one(cell)), None)
        self._small_limits = small is not None
        if self._small_limits:
            self.rows.notes.append(
                f"column {quote(name)} has {quote(str(small))}, a limit below a second; state its unit, as --columns "
                f"limit={name}:d for fractions of a day"
            )

    def _parsed(self, name: str, column: CellColumn, bad: dict[int, str]) -> Integers:
        at_once = self._named[name].at_once(name, self._instants)
        values, unreadable = column.numbers(self._parser(name), *at_once)
        for at in unreadable:
            cell = str(column[at])
            expected = EXPECTED[name]
            if name in INSTANTS and cell.isdecimal():
                column_name = self._named[name].column
                expected = (
                    f"no Unix time in any unit; state its unit, as --columns {name}={column_name}:us (or ms, s, ns)"
                )
            if name not in (*REQUIRED, *INSTANTS, *SPANS):
                expected += f" (--columns {name}= ignores the column)"
            bad.setdefault(at, f"{name} is {quote(cell)}, which is {expected}")
        return values

    def finish(self) -> AccountingRows:
        """Return all rows, with remarks on the file."""
        rows, limit = self.rows, self._named.get("limit")
        times = {name: self._named[name] for name in (*INSTANTS, *SPANS) if name in self._named}
        rows.open_units = frozenset(name for name, mapped in times.items() if mapped.unit is None)
        if self._instants.assumed:
            rows.note_assumed_utc(mixed=self._instants.absolute)
        if self._strange:
            ((state, _),) = self._strange.most_common(1)
            rows.notes.append(
                f"{self._strange.total():,} jobs have states that are not known, such as {quote(state)}: "
                "they count as ended by themselves"
            )
        if limit is not None and limit.unit is None and self._bare_limits:
            rows.assumed_limit = limit.column, limit.unit_in_name("limit") or "s"
        return rows


def _add_resources(numbers: dict[str, Integers], column: CellColumn) -> None:
    """Replace sizes by those among the trackable resources of Slurm, in place, where these list them."""
    cells, codes = column.coded
    texts = [named_resources(word_of(cell)) for cell in cells]
    memory, gpus = zip(*map(resources_of, texts), strict=True)
    processors, nodes = (list(map(amount_of(resource), texts)) for resource in ("cpu", "node"))
    amounts = {"processors": processors, "nodes": nodes, "memory": memory, "gpus": gpus}
    for name, values in amounts.items():
        listed = np.array(values, dtype=np.int64)[codes]
        numbers[name] = np.where(listed > 0, listed, numbers.get(name, np.int64(UNKNOWN)))


def _state(cell: Any) -> str:
    """Return the state of Slurm that a word means. `F` stays, because it means failed in Slurm and finished in PBS.

    >>> _state("Node Fail"), _state("timed-out"), _state("CANCELLED by 7"), _state("F")
    ('NODE_FAIL', 'TIMEOUT', 'CANCELLED', 'F')
    """
    word = str(cell or "").strip().upper()
    joined = _BETWEEN_WORDS.sub("_", word)
    if joined in OF_OTHERS or joined in STATES or joined in GOING_ON:
        word = joined
    return word if word == "F" else OF_OTHERS.get(word, state_in(word))


def _slurm_state(cell: Any) -> str:
    """Return the state of Slurm that a word, or a number of Slurm's database, means.

    >>> _slurm_state("3"), _slurm_state(6.0), _slurm_state("1024"), _slurm_state("Killed")
    ('COMPLETED', 'TIMEOUT', 'REQUEUED', 'CANCELLED')
    """
    number = count_of(cell)
    if number is None or number == UNKNOWN:
        return _state(cell)
    flagged = next((state for flag, state in FLAGGED.items() if number & flag), None)
    return flagged or (BY_NUMBER[number & 255] if number & 255 < len(BY_NUMBER) else str(number))


def _is_bare(limit: Any) -> bool:
    """Return whether a limit is a number without a unit, or has either hours and minutes or minutes and seconds."""
    if isinstance(limit, str):
        return limit.replace(".", "", 1).isdecimal() or _HOURS_OR_MINUTES.match(limit) is not None
    return isinstance(limit, int | float)


def numbers_and_ids(column: CellColumn) -> tuple[Integers, CellColumn]:
    """Return the number of each job, `UNKNOWN` if its id is no number, and the ids that are not numbers.

    >>> numbers, ids = numbers_and_ids(CellColumn(["17", "17_3", "dlctk69", 18.0]))
    >>> numbers.tolist(), [ids[row] for row in range(4)]
    ([17, 400000017, -1, 18], ['', '17_3', 'dlctk69', ''])
    """
    if column.is_plain:
        return column.numbers(int, as_it_is)[0], CellColumn([""] * len(column))
    return column.numbers(lambda cell: _job(cell)[0])[0], column.words(lambda cell: _job(cell)[1])


def _job(cell: Any) -> tuple[int, str]:
    """Return the number of a job, and its id if it is no number."""
    if is_missing(cell) or is_nan(cell):
        return UNKNOWN, ""
    if not isinstance(cell, str):
        number = count_of(cell)
        return (UNKNOWN, str(cell)) if number is None else (number, "")
    text = cell.strip()
    if (number := whole_number(text)) is not None:
        return number, ""
    array, _, task = text.partition("_")
    job, tasks = whole_number(array), tasks_of(task)
    return (UNKNOWN if job is None or tasks is None or len(tasks) != 1 else number_of(job, tasks[0])), text


def add_instants(numbers: dict[str, Integers]) -> None:
    """Derive `start` and `end` from other columns, in place. `wait` and `handed_in` are removed.

    `handed_in` becomes the submission, and the submission becomes the time from which a job is eligible.
    """

    def known(first: Integers, other: Integers) -> Integers:
        return np.where(first == UNKNOWN, other, first)

    def after(since: Integers, span: Integers) -> Integers:
        return np.where((since == UNKNOWN) | (span == UNKNOWN), UNKNOWN, since + span)

    if (handed_in := numbers.pop("handed_in", None)) is not None:
        numbers["eligible"] = numbers["submit"]
        numbers["submit"] = known(handed_in, numbers["submit"])
    if "eligible" in numbers:
        numbers["eligible"] = known(numbers["eligible"], numbers["submit"])
    waits = numbers.pop("wait", None)
    if waits is not None and "start" not in numbers:
        numbers["start"] = after(numbers.get("eligible", numbers["submit"]), waits)
    if "end" not in numbers:
        stopped = np.maximum(numbers["suspended"], 0) if "suspended" in numbers else np.int64(0)
        ended = after(numbers["start"], numbers["run_time"])
        numbers["end"] = np.where(ended == UNKNOWN, UNKNOWN, ended + stopped)
