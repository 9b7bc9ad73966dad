"""Jobs of an accounting file one at a time, and values of a job as files write them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from shadowtime.shared.accounting.instants import Instants, whole_number
from shadowtime.shared.accounting.reading import TEXTS, UNKNOWN, AccountingRows
from shadowtime.shared.bounds import MAX_DURATION, MAX_INTEGER
from shadowtime.shared.quoting import quote

BATCH = 16_384
"""Number of jobs that are kept as objects at a time."""

_FIRST_SECOND, _LAST_SECOND = 10**8, 10**11
"""Bounds of an instant in seconds, in the years 1973 and 5138. A larger number counts milli- or microseconds."""

_DECIMAL = re.compile(r"\.[0-9]*\Z")

Values = TypeVar("Values", str, dict[str, Any])
"""A line, or an object of JSON, with the values of a job."""


class JobRow(NamedTuple):
    """A job of an accounting file, with its line in the file. `UNKNOWN` stands for a missing value.

    `submit`, `start`, `end` and `eligible` are Unix times in seconds; a job without a start never ran. `limit`,
    `run_time` and `suspended` are seconds; `MAX_DURATION` is no limit. `memory` is in MiB. `processors`, `nodes`,
    `memory` and `gpus` are of the whole job. `job_number` of a task of an array is from `number_of`
    (`job_numbers.py`); all other jobs keep their number.
    """

    line: int
    job_number: int
    submit: int
    start: int
    end: int
    processors: int
    status: int
    limit: int = MAX_DURATION
    eligible: int = UNKNOWN
    run_time: int = UNKNOWN
    suspended: int = UNKNOWN
    nodes: int = UNKNOWN
    memory: int = UNKNOWN
    gpus: int = UNKNOWN
    user: str = ""
    account: str = ""
    job_name: str = ""
    partition: str = ""
    qos: str = ""
    node_list: str = ""
    cluster: str = ""
    job_id: str = ""
    """The job's id, if that is no number."""


class AccountedJobs:
    """Collector of the jobs of a file. It adds them to `rows` in batches.

    Examples
    --------
    >>> jobs = AccountedJobs()
    >>> jobs.add(JobRow(1, 17, submit=1000, start=1010, end=1070, processors=4, status=1, limit=600, user="eve"))
    >>> jobs.finished("FILE has none").column("processors").tolist()
    [4]
    """

    def __init__(self) -> None:
        self.rows = AccountingRows()
        self._waiting: list[JobRow] = []
        self._limited = False

    def add(self, job: JobRow) -> None:
        """Add a job. A job without a time of eligibility is eligible from its submission on."""
        self._waiting.append(job)
        if len(self._waiting) == BATCH:
            self._extend()

    def take(
        self,
        rows: Iterable[tuple[int, Values | None]],
        job_of: Callable[[int, Values], JobRow | str],
        damaged: str = "a damaged object",
    ) -> None:
        """Add the job of each row of a file. A row has its line number and its values.

        `job_of` returns the reason if a row is no job. If it raises `ValueError`, the row is odd. So is a row without
        values, for the reason `damaged`.
        """
        for line, values in rows:
            try:
                if values is None:
                    raise ValueError(damaged)
                job = job_of(line, values)
            except ValueError as error:
                self.rows.odd.add(line, f"{error}: {quote(values)}" if isinstance(values, str) else str(error))
                continue

            self.rows.records += 1
            if isinstance(job, str):
                self.rows.leave_out(job, 1, f"line {line}")
            else:
                self.add(job)

    def finished(self, without_limits: str) -> AccountingRows:
        """Return all rows. If no job has a limit, add a note with the reason `without_limits`."""
        self._extend()
        if len(self.rows) and not self._limited:
            self.rows.notes.append(
                f"{without_limits}: its jobs count as jobs without a limit; "
                "--requests actual takes the run time of each job as its request"
            )
        return self.rows

    def _extend(self) -> None:
        if not self._waiting:
            return
        columns: dict[str, Any] = dict(zip(JobRow._fields, zip(*self._waiting, strict=True), strict=True))
        self._limited = self._limited or min(columns["limit"]) < MAX_DURATION
        submit, eligible = (np.array(columns[name], dtype=np.int64) for name in ("submit", "eligible"))
        columns["eligible"] = np.where(eligible == UNKNOWN, submit, eligible)
        lines = columns.pop("line")
        words = {name: columns.pop(name) for name in (*TEXTS, "cluster", "job_id")}
        self.rows.extend(lines, columns, words)
        self._waiting.clear()


def whole_of(values: Mapping[str, object], name: str, default: int | None = None) -> int:
    """Return a whole number among the values of a job; a fraction is dropped.

    Raise `ValueError` if the value is not a number from 0 on, or is missing and there is no default.

    >>> whole_of({"cpus": "4"}, "cpus"), whole_of({"cpus": 4.0}, "cpus"), whole_of({}, "cpus", 1)
    (4, 4, 1)
    """
    value = values.get(name)
    if type(value) is int and 0 <= value <= MAX_INTEGER:  # by far the most often
        return value
    if value is None or value == "":
        if default is None:
            raise ValueError(f"no {name}")
        return default
    number = None
    if isinstance(value, str):
        number = whole_number(value)
        number = whole_number(_DECIMAL.sub("", value.strip())) if number is None else number
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        number = int(value)
    if number is None or not 0 <= number <= MAX_INTEGER:
        raise ValueError(f"{name} {quote(str(value))} is not a whole number from 0 to {MAX_INTEGER}")
    return number


def instant_of(values: Mapping[str, object], name: str) -> int:
    """Return a Unix time in seconds among the values of a job. It may be in milli- or microseconds.

    `UNKNOWN` if it is missing, 0 or -1.

    Raise `ValueError` if the value is not a number, or is an instant before 1973.

    >>> [instant_of({"end": value}, "end") for value in ("1600003610", 1600003610123, 0)]
    [1600003610, 1600003610, -1]
    """
    value = values.get(name)
    if type(value) is int and _FIRST_SECOND <= value < _LAST_SECOND:
        return value
    if value in (-1, "-1", -1.0):
        return UNKNOWN
    number = whole_of(values, name, 0)
    while number > _LAST_SECOND:
        number //= 1000
    if 0 < number < _FIRST_SECOND:
        raise ValueError(f"{name} {number} is not a Unix time")
    return number or UNKNOWN


def date_of(values: Mapping[str, object], name: str, instants: Instants) -> int:
    """Return a Unix time in seconds from a date among the values of a job; `UNKNOWN` if it is missing.

    Raise `ValueError` if the value is not a date, or is a date before 1973.
    """
    instant = instants(str(values.get(name) or ""))
    if instant is None or 0 < instant < _FIRST_SECOND:
        raise ValueError(f"{name} {quote(str(values[name]))} is not a time")
    return instant or UNKNOWN


def text_of(values: Mapping[str, object], names: Iterable[str]) -> str:
    """Return the first text among the values of a job that is not missing, empty or `(null)`; "" if there is none.

    >>> text_of({"Owner": "", "User": "eve@site"}, ("Owner", "User"))
    'eve@site'
    """
    for name in names:
        value = values.get(name)
        if value not in (None, "", "(null)"):
            return str(value)

    return ""
