"""The header of sacct's output, or the order of its fields where the output has no header."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from shadowtime.shared.accounting import Shape
from shadowtime.shared.errors import TraceError
from shadowtime.shared.quoting import quote

FIELDS = (
    *("JobIDRaw", "JobID", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw"),
    *("ReqCPUS", "AllocCPUS", "NNodes", "ReqTRES", "AllocTRES", "NodeList", "User", "Account", "Partition", "QOS"),
    "JobName",
)
"""Fields to request from sacct. The job name comes last, since it may contain any character."""

COMMAND = f"SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0 sacct -aPXD --noconvert -S 2025-01-01 -o {','.join(FIELDS)}"
"""Command that prints a file in this format."""

FREE_TEXT = (
    *("JobName", "Comment", "AdminComment", "SystemComment", "WorkDir"),
    *("SubmitLine", "Reason", "Extra", "Container", "Constraints", "Licenses"),
)
"""Fields that may contain the delimiter. Constraints and licences have `|` between alternatives."""

KNOWN = {
    field.lower(): field
    for field in (
        *FIELDS,
        *FREE_TEXT,
        *("AllocNodes", "AssocID", "Cluster", "ConsumedEnergy", "ConsumedEnergyRaw", "CPUTime"),
        *("CPUTimeRAW", "DBIndex", "DerivedExitCode", "Elapsed", "ExitCode", "Flags", "GID", "Group", "Layout"),
        *("MaxRSS", "McsLabel", "NCPUS", "NTasks", "Planned", "PlannedCPU", "PlannedCPURAW", "Priority", "QOSRAW"),
        "QOSREQ",
        *("ReqGRES", "ReqMem", "ReqNodes", "Reservation", "ReservationId", "Reserved", "Restarts", "SystemCPU"),
        *("Timelimit", "TotalCPU", "TRESUsageInAve", "UID", "UserCPU", "WCKey", "WCKeyID"),
    )
}
"""Fields of sacct by their names in lower case: those that are read, and others that are frequent."""

XDMOD = (
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID", "Submit"),
    *("Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem", "ReqTRES"),
    *("AllocTRES", "Timelimit", "NodeList", "JobName"),
)
"""Order of fields that the documentation of Open XDMoD asks for (open.xdmod.org, resource-manager-slurm)."""

ORDERS: tuple[Sequence[str], ...] = (
    FIELDS,
    [name for name in FIELDS if name not in ("Suspended", "ReqTRES", "AllocTRES", "NodeList", "QOS")],
    XDMOD,
    [name for name in XDMOD if name != "QOS"],
    [{"ReqTRES": "ReqGRES", "AllocTRES": "ReqTRES"}.get(name, name) for name in XDMOD if name != "QOS"],
    [field for name in XDMOD if name != "QOS" for field in (("ReqGRES", name) if name == "ReqTRES" else (name,))],
)
"""Orders of fields that are recognised without a header: ours, and those of several versions of Open XDMoD."""

MAX_SHOWN, MAX_NAME = 40, 40
"""The maximum number of columns that a message shows, and the length from which on it shows a name in quotes."""

SIZES = {"NCPUS", "AllocCPUS", "ReqCPUS", "AllocTRES", "ReqTRES"}
"""Fields that state processors. Tables of other kinds have none of these names, in any case."""

MAX_PREAMBLE = 20
"""The number of lines that are searched for a header. Warnings may precede it."""

DELIMITERS = ("|", ";", ",", "\t")
"""Delimiters that are tried where there is no header."""

_FIRST_TWO = re.compile(r"\W*\w+(\W+)(?=\w)")
_SPAN = re.compile(r"-+")

IsRow = Callable[[Sequence[str], Sequence[str]], bool]
"""A function of the names of fields and the fields of a line. It returns whether the line is a row."""


class SacctHead(NamedTuple):
    """The shape of sacct's output, and the number of lines before its first row: 0 if there is no header."""

    shape: Shape
    lines: int


def is_header(names: Sequence[str], *, any_case: bool = False) -> bool:
    """Return whether names of columns are a header of sacct: at least three of its fields, with a job id among them.

    The names must be spelled as sacct does, except with `any_case` or if there is a field of `SIZES`.

    >>> is_header(["JobID", "State", "Submit", "NCPUS"]), is_header(["job", "submit", "start"])
    (True, False)
    """
    spelled = [KNOWN.get(name.lower(), "") for name in names]
    any_case = any_case or not SIZES.isdisjoint(spelled)
    known = {field for field, name in zip(spelled, names, strict=True) if field and (any_case or field == name)}
    return len(known) >= 3 and not {"JobID", "JobIDRaw"}.isdisjoint(known)


def header_of(text: str, delimiter: str | None = None) -> Shape | None:
    """Return the shape of lines with this header; None if it is no header of sacct.

    Without a `delimiter`, the text between the first two names is the delimiter.

    >>> header_of("JobID;State;Submit").delimiter, header_of("Nov 22 sacct: error")
    (';', None)
    """
    if delimiter is None:
        match = _FIRST_TWO.match(text.replace('"', ""))
        delimiter = match[1] if match else "|"
    if not delimiter.strip(" "):
        names = text.split()
        delimiter = " "
    else:
        names = [name.strip().strip('"') for name in text.rstrip("\r\n").split(delimiter)]
    if names[-1] == "":  # sacct -p ends each line with a delimiter
        names.pop()
    return shape_of(names, delimiter, quoted='"' in text) if is_header(names) else None


def shape_of(names: Sequence[str], delimiter: str, *, quoted: bool = False) -> Shape:
    """Return the shape of lines with these fields. The shape has sacct's spelling of their names."""
    names = [KNOWN.get(name.lower(), name) for name in names]
    free = [at for at, name in enumerate(names) if name in FREE_TEXT]
    return Shape(names, delimiter, (), free, quoted=quoted or delimiter in (",", ";", "\t"))


def find_head(lines: Sequence[str], fields: Sequence[str], delimiter: str | None, is_row: IsRow) -> SacctHead | None:
    """Return the head of a file that begins with these lines; None if it is no output of sacct.

    Parameters
    ----------
    fields
        The fields, if the user has named them (`--fields`). Then the file has no header, or exactly these names.
    delimiter
        The delimiter, if the user has named it.
    is_row
        Decides which known order of fields a file without a header has.
    """
    if fields:
        order = [KNOWN.get(field.lower(), field) for field in fields]
        known = [text for text in DELIMITERS if any(line.count(text) >= len(fields) - 1 for line in lines)]
        blanks = any(len(line.split()) >= len(fields) for line in lines)
        shape = shape_of(order, delimiter or next(iter(known), " " if blanks else "|"))
        return SacctHead(shape, int(bool(lines) and shape.split(lines[0]) == list(fields)))
    for at, line in enumerate(lines[:MAX_PREAMBLE]):
        if (header := header_of(line, delimiter)) is not None:
            if header.delimiter != " ":
                return SacctHead(header, at + 1)
            ruler = lines[at + 1] if at + 1 < len(lines) else ""
            spans = [match.span() for match in _SPAN.finditer(ruler)]
            if ruler.strip(" -") or len(spans) != len(header.names):
                return None
            return SacctHead(header._replace(spans=spans), at + 2)
    return _without_header(lines, delimiter, is_row)


def _without_header(lines: Sequence[str], delimiter: str | None, is_row: IsRow) -> SacctHead | None:
    """Return the head of output of `sacct -n`, by the known order of fields that fits most lines; None if none fits.

    Of three lines or more, at least half must have exactly its fields. Surplus fields are pieces of a job name.
    """
    lines = [line for line in lines if line.strip()]
    best, most = None, (len(lines) // 2, 0)
    for text in DELIMITERS if delimiter is None else (delimiter,):
        for order in ORDERS:
            surplus = [line.removesuffix(text).count(text) - len(order) + 1 for line in lines]
            if 2 * (exact := surplus.count(0)) < len(lines) > 2:
                continue
            rows = [line.split(text, len(order) - 1) for line, more in zip(lines, surplus, strict=True) if more >= 0]
            if (score := (sum(is_row(order, fields) for fields in rows), exact)) > most:
                best, most = SacctHead(shape_of(order, text), 0), score
    return best


def columns_shown(names: Sequence[str], values: Sequence[str]) -> str:
    """Return the names of columns with their first values, if there are any, for a message.

    >>> columns_shown(["job", "t"], ["17", "2026-11-22"]), columns_shown(["job", "t"], [])
    ("job '17', t '2026-11-22'", 'job, t')
    """
    texts = (f" {quote(value, 32)}" for value in values)
    shown = [_plain(name) + next(texts, "") for name in names[:MAX_SHOWN]]
    return ", ".join(shown) + (f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else "")


def _plain(name: str) -> str:
    return name if name.isprintable() and 0 < len(name) < MAX_NAME else quote(name, 24)


def refuse_repeated(path: object, names: Sequence[str]) -> None:
    """Raise `TraceError` if two fields have the same name."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise TraceError(f"{path}: expected each field once, found more than once: {', '.join(repeated)}")
