"""Slurm's accounting as text: the output of `sacct`, with any fields, delimiter and header."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shadowtime.shared.accounting import (
    CUT_AT_WINDOWS,
    FEDERATED_SPANS,
    LIFE,
    MAX_PARTS,
    NO_LIMIT,
    NOT_SET,
    TASKS,
    UNKNOWN,
    AccountingRows,
    CellColumn,
    Instants,
    Mapped,
    Parser,
    Reading,
    RowReader,
    Shape,
    as_it_is,
    beginning_of,
    columns_of_text,
    count_of,
    ends_with_a_line,
    first_lines,
    instant_of,
    is_federated,
    is_missing,
    lines_of,
    memory_of,
    notes_on_units,
    number_of,
    resolved,
    span_of,
    whole_number,
    word_of,
    zone_of,
)
from shadowtime.shared.accounting.slurm.answers import MESSAGES, jobs_in, sacct_rows
from shadowtime.shared.accounting.slurm.head import (
    COMMAND,
    FIELDS,
    FREE_TEXT,
    ORDERS,
    SacctHead,
    columns_shown,
    find_head,
    header_of,
    refuse_repeated,
)
from shadowtime.shared.accounting.slurm.sacct_values import (
    EXPECTED,
    GOING_ON,
    STATES,
    UNFINISHED,
    amount_of,
    counted,
    elapsed_of,
    gpu_type_of,
    gpus_held,
    gpus_of_nodes,
    job_of,
    limit_of,
    listed_tasks,
    memory_held,
    memory_unit,
    requested_memory,
    span,
    state_in,
    types_in,
    unknown_state,
    whole,
)
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.kernels import Flags, Integers
from shadowtime.shared.quoting import quote

NAME = "sacct"

DELIMITED = ("|", ";", "\t")
"""Delimiters by which output without a header is recognised. A line with commas may also be of a table."""

KEYS = b'"job_id"', b'"submission"', b'"time"'
"""Keys at the beginning of accounting in JSON."""

INSTANTS = {"submit": "Submit", "eligible": "Eligible", "start": "Start", "end": "End"}

_JOB_ID = re.compile(rb"JobID\w*", re.IGNORECASE)
_WITH_FRACTION = re.compile(r"[0-9]{1,15}\.0\Z")

WORDS = {
    "user": "User",
    "account": "Account",
    "job_name": "JobName",
    "partition": "Partition",
    "qos": "QOS",
    "node_list": "NodeList",
    "cluster": "Cluster",
}
"""Fields of names by our names."""

TRES = ("AllocTRES", "ReqTRES")
"""Fields of trackable resources. Those that a job held count, or else those that it requested."""

PLAIN_WORDS = ("User", "Account", "Partition", "QOS", "NodeList")
"""Fields without an equals sign. If one has it, a delimiter within a list of resources has shifted the fields."""

CUT_OFF_FIELDS = {*WORDS.values(), *TRES} - {"NodeList"}
"""Fields whose values lose their meaning if a column cuts them off. Of `NodeList`, only the first node counts."""

OTHER_FIELDS = ("JobID", "JobIDRaw", "State", "ReqMem", "ReqGRES")

TYPE_WORDS: dict[str, tuple[str, Callable[[str], str]]] = {
    "gpu_type": ("ReqTRES", gpu_type_of),
    "gpu_got": ("AllocTRES", types_in),
}
"""Field and parser of each text about types of GPUs (`TYPES`)."""

REPLACED = {
    "job_number": ("JobIDRaw", "JobID"),
    **{name: (field,) for name, field in (INSTANTS | WORDS).items()},
    "run_time": ("ElapsedRaw", "Elapsed"),
    "suspended": ("Suspended",),
    "limit": ("TimelimitRaw", "Timelimit"),
    "processors": ("AllocCPUS", "ReqCPUS", "NCPUS"),
    "nodes": ("NNodes",),
    "state": ("State",),
}
"""Fields of sacct by our names. They are not read if the user maps another column, or none, to the name."""

OWN = {
    **{name: REPLACED[name] for name in (*INSTANTS, "run_time", "suspended", "limit", "processors", "nodes")},
    "memory": (*TRES, "ReqMem"),
    "gpus": (*TRES, "ReqGRES"),
    "whole_nodes": (),
}
"""Our names that a column may have in a file without these fields of sacct, as in a table that somebody has made."""


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is output of sacct: with a header, in a known order, or as JSON."""
    if _is_json(head):
        return all(key in head for key in KEYS)
    return any(_shows_sacct(line.decode(errors="replace")) for line in first_lines(head))


def _is_json(head: bytes) -> bool:
    """Return whether a file begins as JSON, maybe behind messages of sacct. A prompt may also begin with a bracket."""
    text = MESSAGES.sub(b"", head, count=1).lstrip()
    return text.startswith(b"{") or (text.startswith(b"[") and all(key in text for key in KEYS))


def _shows_sacct(text: str) -> bool:
    """Return whether a line is the header of sacct's output, or a row of it in a known order."""
    if header_of(text) is not None:
        return True
    is_row = SacctColumns(Path(), Reading()).is_row
    counts = {delimiter: text.count(delimiter) for delimiter in DELIMITED if delimiter in text}
    return any(
        is_row(order, text.split(delimiter, len(order) - 1))  # surplus delimiters belong to the job name, the last one
        for delimiter, count in counts.items()
        for order in ORDERS
        if count >= len(order) - 1
    )


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs in the file. Steps of jobs are left out.

    Raise `TraceError` if the file has neither a header nor a known order of fields, or if a field is missing. The
    message names the field, and shows the fields that the file has.

    References
    ----------
    docs/accounting.md (sacct of Slurm 22.05 and 25.11).
    """
    beginning = beginning_of(path)
    taken = SacctColumns(path, reading)
    if _is_json(beginning):
        _read_answer(path, taken)
    else:
        _read_text(path, beginning, taken, reading)
    return taken.finish()


def _read_text(path: Path, beginning: bytes, taken: "SacctColumns", reading: Reading) -> None:
    first = [line.decode(errors="surrogateescape") for line in beginning.splitlines()]
    head = find_head(first, reading.fields, reading.delimiter, taken.is_row)
    if head is None:
        raise TraceError(
            f"{path}: no header of sacct, and no known order of fields; name its fields with --fields A,B,…, and "
            f"the delimiter with --delimiter; or print all needed fields with their header: {COMMAND}"
        )
    text = _SacctText(path, head, first, taken)
    last, to_skip = 0, head.lines
    for block in lines_of(path):
        skipped, to_skip = min(to_skip, len(block)), max(to_skip - len(block), 0)
        text.take(last + skipped, block[skipped:])
        last += len(block)
    if text.finish() or not ends_with_a_line(path):
        taken.rows.notes.append("the last line is cut off: the file may not be whole")


class _SacctText:
    """Conversion of lines into rows. A file may have further headers. Each of them applies to the lines behind it."""

    def __init__(self, path: Path, head: SacctHead, first: Sequence[str], taken: "SacctColumns") -> None:
        self._path, self._taken = path, taken
        begun = head.lines - 1 - bool(head.shape.spans)
        self._heads = [line.encode(errors="surrogateescape") for line in first[max(begun, 0) : head.lines]]
        """The header, and behind it the ruler if fields have a fixed width; empty if there is no header."""
        match = _JOB_ID.search(self._heads[0]) if self._heads else None
        self._mark = match[0] if match else None
        self._shapes = dict.fromkeys(self._heads[:1], head.shape)
        values = next((head.shape.split(line) for line in first[head.lines :] if line.strip()), [])
        self._begin(head.shape, values)

    def _begin(self, shape: Shape, values: Sequence[str]) -> None:
        refuse_repeated(self._path, [name for name in shape.names if name in self._taken.wanted])
        self._taken.require(shape.names, values)
        self._shape = shape
        self._reader = RowReader(shape, lambda fields: self._taken.is_row(shape.names, fields), self._taken.rows.odd)

    def take(self, last: int, block: Sequence[bytes]) -> None:
        """Read a block of lines. `last` is the number of the line before them."""
        begin, mark, text = 0, self._mark, b"\n".join(block)
        if mark is None or mark not in text:
            self._take(last, block, text)
            return
        for at in [at for at, line in enumerate(block) if mark in line]:
            shape = self._shapes.get(block[at]) or self._other_shape(block[at])
            if shape is None:
                continue
            self._take(last + begin, block[begin:at], b"\n".join(block[begin:at]))
            begin = at + 1
            if shape.names != self._shape.names:
                self.finish()
                self._begin(shape, [])
        self._take(last + begin, block[begin:], b"\n".join(block[begin:]))

    def _other_shape(self, line: bytes) -> Shape | None:
        """Return the shape of the lines behind a header of other fields; None if the line is no header."""
        if self._shape.spans:
            return None
        return header_of(line.decode(errors="surrogateescape"), self._shape.delimiter)

    def _take(self, last: int, block: Sequence[bytes], text: bytes) -> None:
        wanted = self._taken.wanted
        regular = None if self._reader.waits else columns_of_text(text, len(block), self._shape, wanted)
        if regular is not None:
            self._taken.take(np.arange(last + 1, last + 1 + len(block)), regular)
            return
        rulers = self._heads if self._shape.spans else ()
        lines = [
            (number, line.decode(errors="surrogateescape"))
            for number, line in enumerate(block, last + 1)
            if line and line not in rulers
        ]
        if self._shape.names[-1] == FREE_TEXT[0] and not self._shape.spans:
            rest = [at for at, (_, text) in enumerate(lines) if self._shape.delimiter not in text and _is_rest(text)]
            numbers = [lines.pop(at)[0] for at in reversed(_in_short_runs(rest))]
            if numbers:
                reason = "rest of a job name of several lines"
                self._taken.rows.leave_out(reason, len(numbers), f"line {numbers[-1]}")
        numbers, rows = self._reader.take(lines)
        self._taken.look_for_cut_off(self._shape, rows)
        self._taken.take_rows(self._shape.names, numbers, rows)

    def finish(self) -> bool:
        """Read the last rows. Return whether the last line is cut off."""
        numbers, fields, cut = self._reader.finish()
        self._taken.take_rows(self._shape.names, numbers, fields)
        if cut is not None:
            self._taken.rows.leave_out("line cut off", 1, f"line {cut[0]}, the last one")
        return cut is not None


def _is_rest(text: str) -> bool:
    """Return whether a line without a delimiter may belong to a job name. A job number alone is a row that is cut."""
    return bool(text.strip()) and not text.isdecimal()


def _in_short_runs(rows: Sequence[int]) -> list[int]:
    """Return the rows, in ascending order, without runs of more than `MAX_PARTS`: other text, such as another file.

    >>> _in_short_runs([3, 4, *range(10, 99)])
    [3, 4]
    """
    begins = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    sizes = np.diff(np.r_[begins, len(rows)])
    kept: list[int] = np.array(rows, dtype=np.int64)[np.repeat(sizes <= MAX_PARTS, sizes)].tolist()
    return kept


def _read_answer(path: Path, taken: "SacctColumns") -> None:
    """Add the jobs of the output of `sacct --json` to `taken`."""
    jobs = jobs_in(path)
    taken.require(FIELDS, [])
    clusters = [job.get("cluster") or "" for job in jobs]
    rows = list(sacct_rows(jobs))
    for at in range(0, len(rows), 65_536):
        block = [[*row, str(cluster)] for row, cluster in zip(rows[at:], clusters[at : at + 65_536], strict=False)]
        taken.take_rows((*FIELDS, "Cluster"), range(at + 1, at + 1 + len(block)), block)


class SacctColumns:
    """Conversion of columns of sacct into rows of jobs.

    Parameters
    ----------
    path
        The file, for messages.
    reading
        The user's options. Its `columns` replace fields of sacct.
    """

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path = path
        self.rows = AccountingRows()
        self.instants = Instants(zone_of(reading.time_zone), reading.date_format)
        self._reading = reading
        self._mapped: dict[str, Mapped] = {}
        self._own = dict.fromkeys(OWN, True)
        """Whether columns with our names are read without a mapping of the user."""
        self._checks = Instants(self.instants.zone, reading.date_format)  # checks must not change `instants.assumed`
        self.wanted = {*PARSERS, *INSTANTS.values(), *WORDS.values(), *TRES, *OTHER_FIELDS}
        """Names of the columns that are read."""
        self._cut_off: dict[str, str] = {}
        """The first value of each field that a column of fixed width has cut off."""
        self._cut_at_window = 0
        self._lists_cut = 0
        self._first_list = ""
        self._bare_limit = ""
        """The first limit that is a number, in a field of which sacct never prints numbers."""
        self._begun = False

    def require(self, names: Sequence[str], values: Sequence[str]) -> None:
        """Resolve the user's columns, and check that fields with these names suffice for jobs.

        `values` are those of the first row, for the message. Notes are added for the first header only.

        Raises
        ------
        SettingsError
            If the user maps a column that is not there.
        TraceError
            If a field is missing.
        """
        spelled = {name.lower(): name for name in names}
        mapping = dict(self._reading.columns)
        for name, text in mapping.items():
            column, colon, unit = text.partition(":")
            if text not in names and column.lower() in spelled:  # a user may spell fields in any case
                mapping[name] = spelled[column.lower()] + colon + unit
        try:
            self._mapped = resolved(mapping, names)
        except SettingsError as error:
            raise SettingsError(f"{self.path}: {error}; it has {columns_shown(names, values)}") from None
        there = {*names} - {field for name in self._mapped for field in REPLACED.get(name, ())}
        for name, fields in OWN.items():
            if self._own[name] and name in names and name not in mapping and there.isdisjoint(fields):
                self._mapped[name] = Mapped(name)
        self.wanted |= {mapped.column for mapped in self._mapped.values()}
        self._require_fields(names, values)

    def _require_fields(self, names: Sequence[str], values: Sequence[str]) -> None:
        """Raise `TraceError` if the fields with these names, and the mapped columns, do not suffice for jobs."""
        left_out = {field for name in self._mapped for field in REPLACED.get(name, ())}
        there = {*names} - left_out | {name for name, mapped in self._mapped.items() if mapped.column}

        def lacks(*alternatives: str) -> bool:
            return there.isdisjoint(alternatives)

        missing = []
        if lacks("job_number", *REPLACED["job_number"]):
            missing.append("JobID")
        if lacks("submit", "eligible", "Submit", "Eligible"):
            missing.append("Submit")
        ran = lacks("run_time", "Elapsed", "ElapsedRaw")
        missing += ["Start"] * (lacks("start", "Start") and (ran or lacks("end", "End")))
        missing += ["End"] * (lacks("end", "End") and (ran or lacks("start", "Start")))
        if lacks("processors", "AllocCPUS", "ReqCPUS", "NCPUS", "AllocTRES", "ReqTRES"):
            missing.append("AllocCPUS")
        if missing:
            raise TraceError(
                f"{self.path}: no field {', '.join(missing)}; it has {columns_shown(names, values)}; name other "
                f"columns with --columns, or print all needed fields: {COMMAND}"
            )
        if self._begun:
            return
        self.rows.notes += notes_on_units(self._mapped)
        if lacks("limit", "TimelimitRaw", "Timelimit"):
            self.rows.notes.append(
                f"no field Timelimit: its jobs have no requested time; it has {columns_shown(names, values)}"
            )

    def is_row(self, names: Sequence[str], fields: Sequence[str]) -> bool:
        """Return whether all values of a row are valid."""
        row = dict(zip(names, fields, strict=True))
        submitted = row.get("Submit", row.get("Eligible", ""))
        return (
            all(parse(row[name]) is not None for name, parse in PARSERS.items() if name in row)
            and all(self._checks(row[name]) is not None for name in INSTANTS.values() if name in row)
            and self._checks(submitted) not in (UNKNOWN, None)
            and all("=" in part for name in TRES if row.get(name) for part in row[name].split(","))
            and not any("=" in row[name] for name in PLAIN_WORDS if name in row)
            and row.get("NodeList", "").count("[") == row.get("NodeList", "").count("]")
            and ("State" not in row or state_in(row["State"]) in STATES.keys() | GOING_ON)
            and all(
                job_of(row[name].partition(".")[0].partition("_")[0]) not in (UNKNOWN, None)
                for name in REPLACED["job_number"]
                if name in row
            )
        )

    def look_for_cut_off(self, shape: Shape, rows: Sequence[Sequence[str]]) -> None:
        """Find the first value of each field that a column of fixed width has cut off: it ends in a plus sign."""
        for at, (name, (begin, end)) in enumerate(zip(shape.names, shape.spans, strict=False)):
            if name in CUT_OFF_FIELDS - self._cut_off.keys():
                cut_off = [
                    row[at]
                    for row in rows
                    if row[at].endswith("+") and len(row[at].encode(errors="surrogateescape")) == end - begin
                ]
                self._cut_off.update((name, value) for value in cut_off[:1])

    def take_rows(self, names: Sequence[str], lines: Sequence[int], rows: Sequence[Sequence[str]]) -> None:
        """Add the jobs of rows of fields with these names. `lines` has the line number of each row."""
        if rows:
            columns = map(CellColumn, zip(*rows, strict=True))
            self.take(np.array(lines, dtype=np.int64), dict(zip(names, columns, strict=True)))

    def take(self, lines: Integers, columns: Mapping[str, CellColumn]) -> None:
        """Add the jobs of rows. `lines` has the line number of each row, `columns` the values of each field."""
        if not self._begun:
            self._learn_dates(columns)
            self._forget_misfits(columns)
        left_out = {field for name in self._mapped for field in REPLACED.get(name, ())}
        mapped = {name: columns[column.column] for name, column in self._mapped.items() if column.column}
        columns = {name: texts for name, texts in columns.items() if name not in left_out}
        if "state" in mapped:
            columns["State"] = mapped.pop("state").words(lambda cell: str(cell or ""))
        kept = _Kept(self.rows, lines, columns, mapped)
        self._leave_out(kept)
        tasks = self._spread(kept)
        numbers = self._numbers(kept)
        self._override(kept, numbers)
        words = {name: kept.columns[field] for name, field in WORDS.items() if field in kept.columns}
        words |= {name: kept.mapped[name].words(word_of) for name in WORDS if name in kept.mapped}
        words |= {
            name: kept.columns[field].words(parse)
            for name, (field, parse) in TYPE_WORDS.items()
            if field in kept.columns
        }
        words["job_id"] = CellColumn([""] * len(kept.lines)) if tasks is None else tasks.names
        federated = is_federated(numbers["job_number"])
        if federated.any():
            numbers["job_number"] = np.array([number_of(job) for job in numbers["job_number"].tolist()], dtype=np.int64)
        numbers["life_step"] = np.where(federated, LIFE * FEDERATED_SPANS, LIFE)
        if tasks is not None:
            no_task = tasks.numbers == UNKNOWN
            numbers["job_number"] = np.where(no_task, numbers["job_number"], tasks.numbers)
            numbers["life_step"] = np.where(no_task, numbers["life_step"], LIFE * TASKS)
        if kept.bad:
            good = kept.without_bad()
            numbers = {name: values[good] for name, values in numbers.items()}
            words = {name: column.select(good) for name, column in words.items()}
        self.rows.extend(kept.lines, numbers, words)

    def finish(self) -> AccountingRows:
        """Return all accepted rows, with remarks on the file."""
        rows, limit = self.rows, self._mapped.get("limit")
        if limit is not None and limit.column and limit.unit is None:
            rows.assumed_limit = limit.column, limit.unit_in_name("limit") or "s"
        if self._bare_limit:
            rows.assumed_limit = "Timelimit", "min"
            rows.notes.append(
                f"Timelimit has numbers without a unit, such as {quote(self._bare_limit)}, which are read in minutes; "
                "--columns limit=Timelimit:s would read them in seconds"
            )
        run_time = self._mapped.get("run_time")
        rows.open_units = frozenset({"run_time"} if run_time is None or run_time.unit is None else ())
        if self.instants.assumed:
            rows.note_assumed_utc("summer time is an hour off; ask sacct with SLURM_TIME_FORMAT=%s, or use --time-zone")
        if self._cut_off:
            shown = ", ".join(f"{name} {quote(value)}" for name, value in self._cut_off.items())
            rows.notes.append(
                f"its columns cut off values, such as {shown}: cut-off names that begin alike count as one, and "
                "cut-off resources are missing; run sacct with -P"
            )
        if self._cut_at_window:
            rows.notes.append(
                f"{self._cut_at_window:,} jobs that wait or run have an end, which is ignored; perhaps it is from -T: "
                f"{CUT_AT_WINDOWS}"
            )
        if self._lists_cut:
            rows.notes.append(
                f"sacct has cut off {self._lists_cut:,} lists of array tasks, so jobs are missing; first "
                f"{self._first_list}; run sacct with SLURM_BITSTR_LEN=0: {COMMAND}"
            )
        return rows

    def _learn_dates(self, columns: Mapping[str, CellColumn]) -> None:
        """Learn the order of day and month from the first rows."""
        self._begun = True
        names = {*INSTANTS.values()} | {self._mapped[name].column for name in INSTANTS if name in self._mapped}
        dated = [columns[name] for name in names & columns.keys() if not columns[name].is_plain]
        try:
            for instants in (self.instants, self._checks):
                instants.learn_order(str(cell) for column in dated for cell in column.coded[0])
        except TraceError as error:
            raise TraceError(f"{self.path}: {error}") from None

    def _forget_misfits(self, columns: Mapping[str, CellColumn]) -> None:
        """Do not read a column that only happens to have one of our names: most of its cells are unreadable.

        Raise `TraceError` if a field is missing then.
        """
        for name in [name for name in OWN if name in self._mapped and name not in self._reading.columns]:
            column = columns[name]
            unreadable = column.numbers(self._parser(name))[1]
            if 2 * len(unreadable) > sum(not is_missing(column[at]) for at in range(len(column))):
                what = f"column {quote(name)} has {quote(str(column[unreadable[0]]))}"
                self.rows.notes.append(f"{what}, which cannot be read; it is not read as {name}")
                del self._mapped[name]
                self._own[name] = False
                try:
                    self._require_fields([column for column in columns if column != name], [])
                except TraceError as error:
                    raise TraceError(f"{error}; {what}, which cannot be read as {name}") from None

    def _leave_out(self, kept: "_Kept") -> None:
        """Leave out steps of jobs. Count rows with an unknown state, or a rounded or cut-off id, as odd."""
        unknown: dict[int, str] = {}
        steps: set[int] = set()
        if "State" in kept.columns:
            texts, codes = kept.columns["State"].coded
            for code, state in enumerate(map(state_in, texts)):
                if state not in STATES and state not in GOING_ON:
                    unknown |= dict.fromkeys(np.flatnonzero(codes == code).tolist(), unknown_state("State", state))
        for name in REPLACED["job_number"]:
            if name in kept.columns and not kept.columns[name].is_plain:
                for at, text in kept.columns[name].containing("E+"):
                    unknown[at] = f"{name} {quote(text)} is a rounded number; format its column as text"
        if "JobID" in kept.columns and "JobIDRaw" not in kept.columns and not kept.columns["JobID"].is_plain:
            for at, text in kept.columns["JobID"].containing("_"):
                if text.endswith("+") and "[" not in text:
                    unknown[at] = f"JobID {quote(text)} is cut off; run sacct with -P, or a wider column (JobID%30)"
        for name in REPLACED["job_number"]:
            if name in kept.columns and not kept.columns[name].is_plain:
                column = kept.columns[name]
                dotted = column.containing(".")
                if dotted and not _are_numbers_of_pandas(column, [text for _, text in dotted]):
                    steps |= {at for at, text in dotted if _is_step(text)}
        steps -= {at for at in steps & unknown.keys() if "rounded" in unknown[at]}
        for at in sorted(unknown.keys() - steps):
            self.rows.odd.add(int(kept.lines[at]), unknown[at])
        if steps:
            self.rows.leave_out("step of a job", len(steps), f"line {kept.lines[min(steps)]}")
        if unknown or steps:
            left_out = unknown.keys() | steps
            kept.select(np.array([at for at in range(len(kept.lines)) if at not in left_out], dtype=np.int64))

    def _spread(self, kept: "_Kept") -> "_Tasks | None":
        """Give each array task its own row. Return the number and the id of each row; None if there are no tasks."""
        column = kept.columns.get("JobID")
        if column is None or column.is_plain or not (of_arrays := column.containing("_")):
            return None
        counts, numbers, names = np.ones(len(column), dtype=np.int64), list[int](), [""]
        for at, text in of_arrays:
            job, _, listing = text.partition("_")
            listed, cut = listed_tasks(listing) if listing else (None, False)
            if cut:
                self._lists_cut += 1
                self._first_list = self._first_list or f"line {kept.lines[at]}"
            array = whole_number(job)
            if array is None or not listed:
                numbers.append(UNKNOWN)
                names.append(text if listing else "")
                continue
            counts[at] = len(listed)
            numbers += (number_of(array, task) for task in listed)
            names += (f"{array}_{task}" for task in listed)

        own = np.zeros(len(column), dtype=np.bool_)
        own[[at for at, _ in of_arrays]] = True
        rows = np.repeat(np.arange(len(column)), counts)
        own = own[rows]
        if len(rows) > len(column):
            kept.select(rows)
        all_numbers, codes = np.full(len(rows), UNKNOWN), np.zeros(len(rows), dtype=np.int64)
        all_numbers[own], codes[own] = numbers, np.arange(1, len(names))
        return _Tasks(all_numbers, CellColumn.of_codes(names, codes))

    def _numbers(self, kept: "_Kept") -> dict[str, Integers]:
        """Return the numbers of jobs, `UNKNOWN` if missing."""

        def column(name: str) -> Integers:
            return kept.numbers(name, PARSERS[name], as_it_is if PARSERS[name] in (whole, counted) else None)

        def instant(name: str) -> Integers:
            if name.lower() in kept.mapped:
                return self._stated(kept, name.lower())
            return kept.numbers(name, self.instants, self.instants.of_numbers, self.instants.of_local)

        def known(first: Integers, other: Integers) -> Integers:
            return np.where(first >= 0, first, other)

        raw = "JobIDRaw" if "JobIDRaw" in kept.columns else "JobID"
        if not self._bare_limit and kept.has("Timelimit") and not kept.has("TimelimitRaw"):
            texts = kept.columns["Timelimit"].coded[0]
            self._bare_limit = next((text for text in texts if (whole(text) or UNKNOWN) > 0 and text != NO_LIMIT), "")
        requested, allocated = column("ReqCPUS"), known(column("AllocCPUS"), column("NCPUS"))
        if "ReqCPUS" not in kept.columns:
            requested = kept.numbers("ReqTRES", amount_of("cpu"))
        if not kept.columns.keys() & {"AllocCPUS", "NCPUS"}:
            allocated = kept.numbers("AllocTRES", amount_of("cpu"))
        run_time, suspended = known(column("ElapsedRaw"), column("Elapsed")), column("Suspended")
        run_time, suspended = (
            self._stated(kept, name) if name in kept.mapped else numbers
            for name, numbers in (("run_time", run_time), ("suspended", suspended))
        )
        start, end = instant("Start"), instant("End")
        submit, eligible = instant("Submit"), instant("Eligible")
        nodes = known(kept.numbers("ReqTRES", amount_of("node")), column("NNodes"))
        processors = np.where(allocated > 0, allocated, requested)
        memory, gpus = _memory_and_gpus(kept, processors, nodes)
        status = kept.numbers("State", lambda text: STATES.get(state_in(text), UNKNOWN))
        over = kept.numbers("State", lambda text: int(state_in(text) not in GOING_ON)) != 0
        no_end = not kept.has("End") and "end" not in kept.mapped
        at_once = ((start == end) | (no_end & (run_time == 0))) & (start != UNKNOWN)
        ran = (run_time > 0) | ((run_time == UNKNOWN) & ~at_once)
        never = ~ran & over & _held_nothing(kept, allocated, at_once)
        waiting = kept.numbers("State", lambda text: int(state_in(text) == "PENDING")) == 1
        stated = start
        # Recognise jobs that never started even without NodeList.
        start = np.where(never | waiting, UNKNOWN, start)
        unfinished = kept.numbers("State", lambda text: int(state_in(text) in UNFINISHED)) == 1
        self._cut_at_window += int((unfinished & (end != UNKNOWN)).sum())
        end = np.where(unfinished, UNKNOWN, end)
        stopped = np.maximum(suspended, 0)
        if no_end:
            end = np.where((start >= 0) & (run_time >= 0) & over, start + run_time + stopped, UNKNOWN)
            end = np.where(never, stated, end)  # a cancellation has its time as the start
        if not kept.has("Start") and "start" not in kept.mapped:
            start = np.where((end >= 0) & (run_time > 0), end - run_time - stopped, UNKNOWN)
        numbers = {
            "job_number": kept.numbers(raw, job_of, as_it_is),
            "submit": submit if "Submit" in kept.columns else eligible,
            "start": start,
            "end": end,
            "run_time": run_time,
            "suspended": suspended,
            "limit": known(column("TimelimitRaw"), column("Timelimit")),
            "processors": processors,
            "nodes": nodes,
            "memory": memory,
            "gpus": gpus,
            "status": status,
        }
        return numbers | ({"eligible": eligible} if "Eligible" in kept.columns else {})

    def _override(self, kept: "_Kept", numbers: dict[str, Integers]) -> None:
        """Replace numbers by those of the columns that the user has mapped."""
        for name in kept.mapped.keys() - WORDS.keys():
            numbers[name] = self._stated(kept, name)

    def _stated(self, kept: "_Kept", name: str) -> Integers:
        """Return the numbers of a mapped column."""
        mapped = self._mapped[name]
        at_once = mapped.at_once(name, self.instants)
        return kept.parsed(mapped.column, kept.mapped[name], self._parser(name), *at_once)

    def _parser(self, name: str) -> Parser:
        """Return the parser of the cells of a mapped column."""
        unit = self._mapped[name].unit_of(name)
        if name in INSTANTS:
            return instant_of(self.instants, unit)
        if name in ("run_time", "suspended", "limit"):
            return span_of(unit)
        return memory_of(unit) if name == "memory" else count_of


def _held_nothing(kept: "_Kept", allocated: Integers, at_once: Flags) -> Flags:
    """Return which rows, if they ran for 0 seconds, show that their job never started.

    Slurm 22.05 prints the requested processors as allocated, and the time of a cancellation as start and end.
    `at_once` says whether start and end are equal.
    """
    nothing: Flags = (allocated <= 0) & kept.has("AllocCPUS", "NCPUS", "AllocTRES")
    if kept.has("AllocTRES"):
        nothing |= kept.numbers("AllocTRES", len) == 0
    elif not kept.has("NodeList"):
        nothing |= at_once & (kept.numbers("State", lambda text: int(state_in(text) == "CANCELLED")) == 1)
    return nothing


def _memory_and_gpus(kept: "_Kept", processors: Integers, nodes: Integers) -> tuple[Integers, Integers]:
    """Return memory in MiB and GPUs from the trackable resources (TRES), or from older fields for rows without TRES."""
    had = kept.numbers("AllocTRES", len) > 0
    memory, gpus = (np.where(had, *(kept.numbers(name, parse) for name in TRES)) for parse in (memory_held, gpus_held))
    listed = had | (kept.numbers("ReqTRES", len) > 0)
    if listed.all():
        return memory, gpus
    size, unit = kept.numbers("ReqMem", requested_memory), kept.numbers("ReqMem", memory_unit)
    times = np.select([unit == 1, unit == 2], [nodes, processors], 1)
    devices = kept.numbers("ReqGRES", gpus_of_nodes)
    return (
        np.where(listed, memory, np.where((size > 0) & (times > 0), size * times // 1024, UNKNOWN)),
        np.where(listed, gpus, np.where((devices > 0) & (nodes > 0), devices * nodes, UNKNOWN)),
    )


def _are_numbers_of_pandas(column: CellColumn, dotted: Sequence[str]) -> bool:
    """Return whether the ids with a dot are numbers with a fraction of zero, and not steps. `dotted` are these ids."""
    if not all(map(_WITH_FRACTION.match, dotted)):
        return False
    return len(dotted) + sum(column[at] in NOT_SET for at in range(len(column))) == len(column)


def _is_step(job: str) -> bool:
    """Return whether an id is that of a step. A list of tasks may end in dots.

    >>> _is_step("17.batch"), _is_step("17_[1,3,...]")
    (True, False)
    """
    return "." in job and "." in job.partition("[")[0]


PARSERS = {
    **dict.fromkeys(("ElapsedRaw", "ReqCPUS", "AllocCPUS", "NCPUS"), whole),
    "NNodes": counted,
    "Suspended": span,
    "Elapsed": elapsed_of,
    **dict.fromkeys(("TimelimitRaw", "Timelimit"), limit_of),
}
"""Parsers of fields by name."""


class _Tasks(NamedTuple):
    """The number and the id of each row that is an array task; `UNKNOWN` and an empty id for other rows."""

    numbers: Integers
    names: CellColumn


class _Kept:
    """Rows that are kept, as columns. `bad` has the reason why a row is odd, by index."""

    def __init__(
        self, rows: AccountingRows, lines: Integers, columns: Mapping[str, CellColumn], mapped: Mapping[str, CellColumn]
    ) -> None:
        self._rows = rows
        self.lines = lines
        self.columns = columns
        self.mapped = mapped
        self.bad: dict[int, str] = {}

    def has(self, *names: str) -> bool:
        """Return whether the file has one of these fields."""
        return not self.columns.keys().isdisjoint(names)

    def select(self, at: Integers) -> None:
        """Keep the rows with these indices, in this order."""
        self.lines = self.lines[at]
        self.columns, self.mapped = (
            {name: column.select(at) for name, column in part.items()} for part in (self.columns, self.mapped)
        )

    def numbers(self, name: str, parse: Callable[[str], int | None], *at_once: Any) -> Integers:
        """Return a field as numbers, as `CellColumn.numbers` does; `UNKNOWN` if the file does not have it."""
        if name not in self.columns:
            return np.full(len(self.lines), UNKNOWN, dtype=np.int64)
        return self.parsed(name, self.columns[name], parse, *at_once)

    def parsed(self, name: str, column: CellColumn, parse: Callable[[Any], int | None], *at_once: Any) -> Integers:
        """Return cells as numbers. Unreadable ones are `UNKNOWN`, and make their rows odd."""
        values, bad = column.numbers(parse, *at_once)
        for at in bad:
            self.bad.setdefault(at, f"{name} {quote(str(column[at]))} {EXPECTED.get(name, 'cannot be read')}")
        return values

    def without_bad(self) -> Integers:
        """Count the odd rows, once for each line, and drop their line numbers. Return the indices of the others."""
        counted = {int(self.lines[at]): reason for at, reason in reversed(self.bad.items())}
        for line, reason in sorted(counted.items()):
            self._rows.odd.add(line, reason)
        good = np.array([at for at in range(len(self.lines)) if at not in self.bad], dtype=np.int64)
        self.lines = self.lines[good]
        return good
