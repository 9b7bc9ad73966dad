"""Logs in the Grid Workload Format of the Grid Workloads Archive: 29 fields for each job, `#` before comments."""

import re
from pathlib import Path

from shadowtime.replayer.logs.other_formats.standard_rows import StandardRows
from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting import DATED, UNKNOWN, Reading, first_lines, numbered_lines
from shadowtime.shared.quoting import quote

NAME = "Grid Workload Format"

NUMBERS = FIELDS[:11]
"""The first fields, which are those of the Standard Workload Format: numbers from 0 on, or -1."""

NAMES = FIELDS[11:16]
"""The next fields: names of user, group, executable, queue and partition."""

COLUMNS = 29

LEAST_COLUMNS = 19
"""Number of fields before the structure of the job. The lines of some traces end there."""


_SIZE = re.compile(r"#\s*(?:MaxProcs|Processors|CPUs)\s*:\s*([0-9]{1,9})\b", re.IGNORECASE | re.ASCII)
_HEADING = re.compile(rb"#.*(?:Grid Workloads? (?:Format|Archive)|JobID\s+SubmitTime)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:[0-9]{1,16}(?:\.[0-9]*)?|\.[0-9]+)\Z")


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a log in the Grid Workload Format."""
    lines = first_lines(head, 200)
    rows = [line for line in lines if line.strip() and not line.startswith(b"#")]
    return any(map(_HEADING.match, lines)) or any(map(_is_job, rows[:20]))


def _is_job(line: bytes) -> bool:
    fields = line.decode(errors="replace").split()
    return len(fields) >= LEAST_COLUMNS and all(map(_NUMBER.match, fields[:11]))


def read(path: Path, reading: Reading) -> Trace:
    """Return the jobs of the log. Names are numbered in order of appearance.

    Raise `TraceError` if the file cannot be read, has no job, or has too many odd lines.

    References
    ----------
    The Grid Workloads Archive, gwa.ewi.tudelft.nl; docs/other-systems.md#grid-workload-format.
    """
    rows, header = StandardRows(path), dict[str, str]()
    numbers: dict[str, dict[str, int]] = {name: {} for name in NAMES}
    zero: int | None = None
    for number, line in numbered_lines(path):
        if line.startswith("#"):
            if size := _SIZE.match(line):
                header.setdefault("MaxProcs", size[1])
            continue
        fields = line.split()
        try:
            job = _job(fields)
            if zero is None:
                zero = job["submit_time"] if job["submit_time"] >= DATED else 0
            job["submit_time"] -= zero
            for name, text in zip(NAMES, fields[len(NUMBERS) :], strict=False):
                known = numbers[name]
                job[name] = UNKNOWN if text == "-1" else known.setdefault(text, len(known) + 1)
            rows.add(job)
        except ValueError as error:
            rows.odd.add(number, f"{error}: {quote(line)}")

    return rows.trace(header | ({"UnixStartTime": str(zero)} if zero else {}), lenient=reading.lenient)


def _job(fields: list[str]) -> dict[str, int]:
    if len(fields) < LEAST_COLUMNS:
        raise ValueError(f"expected {COLUMNS} fields, or at least {LEAST_COLUMNS}, found {len(fields)}")
    for at, text in enumerate(fields[: len(NUMBERS)], 1):
        if not _NUMBER.match(text):
            raise ValueError(f"field {at} is {quote(text)}, not a number")
    return {name: int(float(text)) for name, text in zip(NUMBERS, fields, strict=False)}
