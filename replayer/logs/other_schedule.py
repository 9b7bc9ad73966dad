"""Start times of a log's jobs by another simulator, read from SWF, comma-separated values or Parquet."""

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from shadowtime.replayer.logs.frame_files import PARQUET, require_parquet
from shadowtime.replayer.logs.quality import processors_in_use
from shadowtime.replayer.logs.swf import FIELDS, read_swf
from shadowtime.replayer.logs.workload import Workload
from shadowtime.shared.accounting import lines_of
from shadowtime.shared.bounds import MAX_INTEGER
from shadowtime.shared.errors import TraceError
from shadowtime.shared.kernels import Integers
from shadowtime.shared.quoting import QUOTED, quote, truncate

COLUMNS = ("job_number", "submit_time", "start_time", "processors")
"""Columns that are read from a table, as written by `--schedule`."""


def read_starts(path: Path, workload: Workload) -> Integers:
    """Return the start time of each job of a workload from a file, in seconds, in the order of the workload.

    Raise `TraceError` if the file cannot be read, has other jobs or other submit times, starts a job before its
    submission, or uses no processors for a job or more than the machine has. The error names the first such job.
    """
    rows = _swf(path) if path.name.endswith((".swf", ".swf.gz")) else _table(path)
    columns = workload.columns
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if twice := rows[1:, 0][rows[1:, 0] == rows[:-1, 0]].tolist():
        raise TraceError(f"{path}: job {twice[0]} occurs twice; expected one start of each job")
    missing = np.setdiff1d(columns["job_number"], rows[:, 0])
    if len(missing):
        raise TraceError(
            f"{path}: {len(missing):,} of {len(workload):,} jobs of the log are missing, the first is job {missing[0]}"
            "; expected the start of each job"
        )

    more = np.setdiff1d(rows[:, 0], columns["job_number"])
    if len(more):
        raise TraceError(
            f"{path}: a replay of the log does not use {len(more):,} of {len(rows):,} jobs, the first is "
            f"job {more[0]}; shadowtime convert writes a log of the used jobs"
        )

    _, submitted, started, processors = rows[np.searchsorted(rows[:, 0], columns["job_number"])].T
    for wrong, words in (
        (submitted != columns["submit_time"], "is submitted at {submitted}, in the log at {submit_time}"),
        (started < submitted, "starts at {started}, before its submission at {submitted}"),
        (processors < 1, "takes {processors} processors"),
        (processors > workload.processors, "takes {processors} processors; the machine has {machine}"),
    ):
        if wrong.any():
            job = int(np.argmax(wrong))
            values = {"submitted": submitted[job], "started": started[job], "processors": processors[job]}
            reason = words.format(**values, submit_time=columns["submit_time"][job], machine=workload.processors)
            raise TraceError(f"{path}: job {columns['job_number'][job]} {reason}")

    _require_room(path, workload, started)
    starts: Integers = started
    return starts


def _swf(path: Path) -> Integers:
    columns = dict(zip(FIELDS, read_swf(path).table.T, strict=True))
    numbers, submitted, waited = columns["job_number"], columns["submit_time"], columns["wait_time"]
    if (waited == -1).any():
        raise TraceError(f"{path}: job {numbers[np.argmax(waited == -1)]} has no wait time; expected one for each job")
    allocated, requested = columns["allocated_processors"], columns["requested_processors"]
    rows: Integers = np.stack(
        [numbers, submitted, submitted + waited, np.where(allocated > 0, allocated, requested)], axis=1
    )
    return rows


def _table(path: Path) -> Integers:
    try:
        if path.name.endswith(PARQUET):
            with path.open("rb") as file:
                require_parquet(path)
                from pyarrow import parquet

                table = parquet.read_table(file, columns=list(COLUMNS)).to_pydict()

            rows: Iterable[Iterable[Any]] = zip(*(table[name] for name in COLUMNS), strict=True)
        else:
            rows = _values(csv.DictReader(line.decode() for lines in lines_of(path) for line in lines))

        return np.array([[_whole(value) for value in row] for row in rows], dtype=np.int64).reshape(-1, len(COLUMNS))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (KeyError, ValueError, csv.Error) as error:
        what = f"there is no {error.args[0]}" if isinstance(error, KeyError) else truncate(str(error), QUOTED)
        raise TraceError(f"{path}: expected columns {', '.join(COLUMNS)} of whole numbers: {what}") from None


def _values(reader: "csv.DictReader[str]") -> Iterator[list[str]]:
    """Yield the `COLUMNS` of each line. Raise `ValueError` if a heading repeats or a line has too many values."""
    if len(set(names := reader.fieldnames or ())) < len(names):
        raise ValueError("a column occurs twice")
    for row in reader:
        if None in row:
            raise ValueError(f"line {reader.line_num} has more values than there are columns")
        yield [row[name] for name in COLUMNS]


def _whole(value: Any) -> int:
    """Return a value as a whole number. Raise `ValueError` if it is not whole or too large."""
    try:
        number = int(value)
        whole = isinstance(value, str) or number == value
    except (TypeError, ValueError, OverflowError):  # such as 100.0 as a text, nothing, NaN
        whole = isinstance(value, str) and (exact := _float(value)).is_integer()
        number = int(exact) if whole else 0
    if not whole or abs(number) > MAX_INTEGER:
        shown = "a missing value" if value in (None, "") else quote(str(value))
        raise ValueError(f"{shown} is not a whole number, or too large")
    return number


def _float(text: str) -> float:
    """Return the number that a text states; NaN if it states none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _require_room(path: Path, workload: Workload, started: Integers) -> None:
    """Raise `TraceError` if more processors are in use than the machine has. Within a second, ends precede starts."""
    columns = workload.columns
    sizes = columns["processors"]
    ended = started + np.minimum(columns["run_time"], columns["requested_time"])
    used = processors_in_use(started, ended, sizes)
    if (over := used > workload.processors).any():
        first = np.flatnonzero(over)[np.lexsort((used[over], started[over]))[0]]
        raise TraceError(
            f"{path}: job {columns['job_number'][first]} starts at {started[first]}, when {used[first]} processors "
            f"would be in use; the machine has {workload.processors}"
        )


# Start times as recorded in the log itself.


def real_starts(workload: Workload) -> Integers:
    """Return the recorded start time of each job, in seconds.

    Raise `TraceError` if a job of the log has no recorded wait.
    """
    waits = workload.columns["wait_time"]
    if (waits < 0).any():
        raise TraceError(
            f"{workload.name}: {int((waits < 0).sum()):,} jobs have no wait time; expected a log with the wait of each"
        )
    starts: Integers = workload.columns["submit_time"] + waits
    return starts
