"""All log formats by name, recognised by the beginning of a file."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting import (
    SUFFIXES,
    AccountingRows,
    Reading,
    beginning_of,
    first_lines,
    header_of,
    is_header,
    is_pipe,
    is_table,
    json_keys,
    kept,
)
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.plugins import Plugins
from shadowtime.shared.quoting import quote


class LogFormat(Protocol):
    """A log format. Most formats are modules. `docs/plugins.md` explains how another distribution adds one.

    `NAME` is the name of the format in messages.
    """

    NAME: str

    def begins(self, head: bytes, /) -> bool:
        """Return whether a file has this format, from its beginning, unpacked and without a byte order mark."""
        ...

    def read(self, path: Path, reading: Reading, /) -> AccountingRows | Trace:
        """Return the rows of a file, or the log as a whole."""
        ...


STANDARD = (".swf", *(f".swf{suffix}" for suffix in SUFFIXES))

AS_READ = Reading()

NUMERIC = b"0123456789+-.eE; \t\r"
"""All characters that a job line in the Standard Workload Format may have."""

JOB_LINE = re.compile(rb"(?:[\s;]*[-+]?[.0-9]+(?:[eE][-+]?[0-9]+)?(?![^\s;])){4}")
"""The beginning of a job line in the Standard Workload Format."""

WHOLE_LOGS = ("Batsim", "Grid Workload Format")
"""Formats that are logs, not accounting: the options for accounting do not apply to them."""

UNREAD = {
    b"SQLite format 3": "an SQLite database; export the table of jobs as CSV",
    b"\x89HDF": "an HDF5 file; export the table of jobs as CSV or Parquet",
    b"PK\x03\x04": "a zip archive or an Excel table; unpack it, or export the table of jobs as CSV",
    b"ORC": "an ORC file; export the table of jobs as CSV or Parquet",
    b"Obj\x01": "an Avro file; export the table of jobs as CSV or Parquet",
    **dict.fromkeys((b"ARROW1", b"\xff\xff\xff\xff"), "an Arrow file; export the table of jobs as CSV or Parquet"),
    b"FEA1": "a Feather file; export the table of jobs as CSV or Parquet",
    b"-- MySQL dump": "a dump of a MySQL database; export the table of jobs as CSV",
    b"-- MariaDB dump": "a dump of a MariaDB database; export the table of jobs as CSV",
    b"-- PostgreSQL database dump": "a dump of a PostgreSQL database; export the table of jobs as CSV",
    b'"JOB_NEW"': "LSF's file of events, lsb.events; use lsb.acct of the same folder",
    b"\x1f\x8b": "packed twice; unpack it first",
    b"\x1f\x9d": "packed by compress; unpack it with gunzip",
    b"\x04\x22\x4d\x18": "packed by lz4; unpack it with unlz4",
    b"\x5d\x00\x00": "packed by lzma; unpack it with unlzma",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it",
    b"\xd0\xcf\x11\xe0": "an Excel table of before 2007; export the table of jobs as CSV",
    **dict.fromkeys((b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle of Python; write the table with to_parquet"),
    b"\x93NUMPY": "an array of numpy; write the table of jobs as CSV or Parquet",
    **dict.fromkeys((b"RDX", b"RDA", b"X\n\x00"), "data of R; write the table of jobs with write.csv"),
    b"version https://git-lfs": "a pointer of Git LFS in place of the file; fetch it with git lfs pull",
    b"INSERT INTO": "SQL; export the table of jobs as CSV",
    b"#!": "a script",
    b"---\n": "YAML; sacct can print JSON with --json, or text with -P",
    b"%YAML": "YAML; sacct can print JSON with --json, or text with -P",
    b"================== Job": "output of LoadLeveler; export the table of jobs as CSV",
    b"=====": "output of qacct -j; use Grid Engine's file, $SGE_ROOT/$SGE_CELL/common/accounting",
    b"Accounting information about jobs": "output of bacct; use LSF's file lsb.acct",
    **dict.fromkeys((b"Summary of time in seconds", b"Job <"), "output of bhist or bjobs; use LSF's file lsb.acct"),
    b"VERSION ": "a file of statistics of Maui or Moab; use the accounting of the PBS or Slurm below it",
    b"000 (": "HTCondor's log of events; print condor_history -json",
    b"[20": "a log of Slurm's daemons; print the accounting of jobs with sacct -P",
    b"[[pool]]": "a file of pools, which is for --pools; name the log of jobs, too",
    b"JobId=": "output of scontrol show job; print the accounting of ended jobs with sacct -P",
    b"NodeName=": "output of scontrol show node, which is for --pools; print the accounting of jobs with sacct -P",
    b"Job: ": "output of tracejob; use the folder server_priv/accounting",
    b"Job Id: ": "output of qstat -f; use the folder server_priv/accounting",
    b"job-ID ": "output of qstat; use Grid Engine's file, $SGE_ROOT/$SGE_CELL/common/accounting",
    b"ID ": "a table of condor_history without times; print condor_history -json",
    b"JOBID ": "a list of waiting and running jobs; use the accounting of ended jobs, such as sacct or lsb.acct",
    b"JobID ": "output of sacct without the line of dashes below its header; print it with -P",
    b"<": "XML or HTML; HTCondor's history can be printed with condor_history -json",
}
"""For the first bytes of a file that cannot be read: its format, and what to do."""

NO_TABLES = tuple(beginning for beginning in UNREAD if beginning == beginning.strip() != b"ORC")
"""Beginnings of files that are no tables, even if their first line has a comma. `ORCID` or `ID ` may begin a table."""

OF_QUEUE = {"job_state", "job_resources"}
"""Keys of the waiting and running jobs that squeue and slurmrestd print in JSON."""


def read_trace(path: Path, reading: Reading = AS_READ) -> Trace:
    """Return the log of a file in any known format. New names are written to the mapping `reading.names`.

    Raises
    ------
    TraceError
        If the file cannot be read, or does not continue in the format that its beginning shows.
    SettingsError
        If `reading` has options that do not apply to the format.
    OutputError
        If the mapping of names cannot be written.

    Examples
    --------
    >>> from shadowtime.replayer.logs.trace import BUNDLED
    >>> read_trace(BUNDLED).name
    'bundled'
    """
    if is_pipe(path):
        with kept(path) as (copy, name):
            try:
                return replace(read_trace(copy, reading), name=name)
            except TraceError as error:
                raise TraceError(str(error).replace(str(copy), name).replace(copy.name, name)) from None
    form = _stated_format(path, reading) or format_of(path)
    if form is None and (what := _unread(path)):
        raise TraceError(f"{path}: this is {what}")
    if (
        (form is None or form.NAME in WHOLE_LOGS)
        and replace(reading, lenient=False) != AS_READ
        and _size_of(path) is not None
    ):
        kind = "the Standard Workload Format" if form is None else form.NAME
        raise SettingsError(
            f"{path} is read as a log in {kind}; --columns, --time-zone, --pools, --names and similar options are only "
            "for accounting files and tables; leave them out"
        )
    from shadowtime.replayer.logs.machine_size import with_sizes

    if form is None:
        return with_sizes(read_swf(path, lenient=reading.lenient))

    from shadowtime.replayer.logs.accounted_log import trace_of
    from shadowtime.shared.accounting import read_names, read_parts

    if reading.columns and form.NAME not in ("sacct", "table"):
        raise SettingsError(
            f"{path}: expected a table or output of sacct for --columns, found {form.NAME}; leave --columns out"
        )
    if reading.names_key is not None and reading.names is None:
        raise SettingsError("--names-key needs --names FILE, where the names are kept")
    parts = None if reading.pools is None else read_parts(reading.pools)
    names = read_names(reading.names, reading.names_key)
    rows = form.read(path, reading)
    if isinstance(rows, Trace):
        return with_sizes(rows)
    rows.require_few_odd(path, lenient=reading.lenient)
    trace = trace_of(_name_of(path), rows, reading, names, parts)
    if reading.names is not None:
        names.write(reading.names)
    return trace


def _stated_format(path: Path, reading: Reading) -> LogFormat | None:
    """Return the format of a file whose fields or delimiter the user has stated; None without these."""
    if reading.fields:
        return log_formats()["sacct" if is_header(reading.fields, any_case=True) else "table"]
    if reading.delimiter is None and not is_table(reading.columns):
        return None
    lines = [line.decode(errors="replace") for line in first_lines(beginning_of(path))]
    if is_table(reading.columns):
        shape = header_of(lines[0], reading.delimiter)
        stated = reading.delimiter is not None or (shape is not None and shape.delimiter != " ")
        return log_formats()["table"] if stated else None
    return log_formats()["sacct" if any(header_of(line, reading.delimiter) for line in lines) else "table"]


def _name_of(path: Path) -> str:
    name = path.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name.rpartition(".")[0] or name


def trace_of_frame(frame: Any, reading: Reading = AS_READ) -> Trace:
    """Return the log of a data frame: of pandas, polars or pyarrow, with the columns of a table of jobs.

    Raise `TraceError` if it is no data frame, lacks a column, or has a value of the wrong kind.
    """
    from shadowtime.replayer.logs.accounted_log import trace_of
    from shadowtime.shared.accounting import read_names, read_parts, table

    parts = None if reading.pools is None else read_parts(reading.pools)
    try:
        return trace_of("frame", table.read_frame(frame, reading), reading, read_names(None, None), parts)
    except TraceError as error:
        raise TraceError(in_python(str(error))) from error.__cause__


_PAIR = re.compile(r"(\w+)=([^\s,;)]*)")
_COLUMNS = re.compile(rf"--columns ({_PAIR.pattern}(?:, {_PAIR.pattern})*)")
_VALUE = re.compile(r"--([a-z-]+) (actual|queue-maximum|'[^']*'|[A-Z]\w*/\w+)")


def in_python(text: str) -> str:
    """Return a message in which options of the command line are arguments of `read_log`.

    >>> in_python("give --columns submit=COLUMN, limit=t:min; limit is not needed with --requests actual")
    "give columns={'submit': 'COLUMN', 'limit': 't:min'}; limit is not needed with requests='actual'"
    >>> in_python("name other columns with --columns, or state --time-zone")
    'name other columns with columns, or state time_zone'
    """
    text = _COLUMNS.sub(lambda match: f"columns={dict(_PAIR.findall(match[1]))}", text)
    text = _VALUE.sub(lambda match: f"{match[1].replace('-', '_')}={match[2].strip(chr(39))!r}", text)
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", lambda match: match[1].replace("-", "_"), text)


def format_of(path: Path) -> LogFormat | None:
    """Return the format that the beginning of a file shows; None for the Standard Workload Format and unknown formats.

    Plug-ins are asked after all formats but `table`, which accepts any file with a comma in its first line.
    """
    head = beginning_of(path)
    lines = list(filter(bytes.strip, first_lines(head)))
    if _is_tar(head) or not lines or lines[0].startswith(b";") or not any(line.strip(NUMERIC) for line in lines):
        return None
    known = log_formats()
    own = [known[name] for name in known.data if name != "table"]
    for form in own:
        if form.begins(head):
            return form
    for name in known.plugged_in():
        if known[name].begins(head):
            return known[name]
    table = known["table"]
    if head.lstrip().startswith(NO_TABLES) or json_keys(head) >= OF_QUEUE or path.name.endswith(STANDARD):
        return None
    return table if table.begins(head) else None


@cache
def log_formats() -> Plugins[LogFormat]:
    """Return all formats but the Standard Workload Format, by name. They are imported on first use."""
    from shadowtime.replayer.logs.other_formats import batsim, gwf
    from shadowtime.shared.accounting import elasticsearch, filetxt, flux, htcondor, lsf, pbs, philly, sacct, sge, table

    readers: tuple[LogFormat, ...] = (
        sacct,
        pbs,
        lsf,
        sge,
        filetxt,
        elasticsearch,
        htcondor,
        flux,
        philly,
        batsim,
        gwf,
        table,
    )
    return Plugins("log format", {reader.NAME: reader for reader in readers}, "log_formats", _fault)


def _fault(loaded: object, _: str) -> str | None:
    """Return why a plug-in is no log format; None if it is one."""
    lacking = [name for name in ("NAME", "begins", "read") if not hasattr(loaded, name)]
    return f"it has no {', '.join(lacking)}" if lacking else None


def _unread(path: Path) -> str | None:
    """Return the kind of a file that no format accepts, and what to do; None if it may be SWF."""
    head = beginning_of(path)
    if not head and _size_of(path) == 0:
        return "an empty file"
    for beginning, what in UNREAD.items():
        if head.lstrip().startswith(beginning):
            return what
    if json_keys(head) >= OF_QUEUE:
        return "a list of waiting and running jobs of Slurm; print the accounting of ended jobs with sacct --json"
    if (keys := json_keys(head)) or head.lstrip()[:1] in (b"{", b"["):
        shown = ", ".join(sorted(keys)[:10]) or "none"
        return f"JSON in no known format; its keys are {shown}; known formats are {_known()}"
    lines = [line for line in first_lines(head) if line.strip()]
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "text in UTF-32; convert it with iconv -f UTF-32 -t UTF-8"
    if b"\0" in head[:4]:
        return "text in UTF-16 or UTF-32 without a byte order mark, or no text; convert it with iconv -t UTF-8"
    if _is_tar(head):
        return "a tar archive; unpack it: a folder is read as one log"
    standard = path.name.endswith(STANDARD) or any(line.startswith(b";") or JOB_LINE.match(line) for line in lines)
    if lines and not standard:
        shown = quote(lines[0].decode(errors="replace"))
        return (
            f"in no known format; it begins with {shown}; known formats are {_known()}, the Standard Workload Format "
            "and tables of text with a delimiter (--delimiter, ' ' for blanks) and names of columns (--fields)"
        )
    return None


def _size_of(path: Path) -> int | None:
    """Return the bytes of a file; None for other paths, also for those that the system refuses."""
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):
        return None


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _known() -> str:
    return ", ".join(sorted(log_formats().data))
