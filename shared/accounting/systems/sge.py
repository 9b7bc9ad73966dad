"""The accounting file of Grid Engine (SGE, Univa, Altair, Gridware): a line for each job that finished."""

import re
from pathlib import Path
from typing import Any

from shadowtime.shared.accounting.durations import seconds_of
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.systems.job_rows import AccountedJobs, JobRow, instant_of, text_of, whole_of
from shadowtime.shared.accounting.systems.json_objects import json_keys, json_records
from shadowtime.shared.accounting.text_file import beginning_of, first_lines, numbered_lines
from shadowtime.shared.bounds import MAX_AMOUNT, MAX_DURATION
from shadowtime.shared.cluster import KILLED, LIMIT
from shadowtime.shared.formatting import counted

NAME = "Grid Engine"

FIELDS = (
    *("qname", "hostname", "group", "owner", "job_name", "job_number", "account", "priority", "submission_time"),
    *("start_time", "end_time", "failed", "exit_status", "ru_wallclock", "ru_utime", "ru_stime", "ru_maxrss"),
    *("ru_ixrss", "ru_ismrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt", "ru_nswap", "ru_inblock"),
    *("ru_oublock", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw", "ru_nivcsw", "project", "department"),
    *("granted_pe", "slots", "task_number", "cpu", "mem", "io"),
)
"""The fields before `category`. The durations in `category` may contain the delimiter."""

RESCHEDULED, MIGRATED, OVER_LIMIT, AFTER_JOB = 25, 24, 37, 100
"""Values of `failed`: the job runs again; the server ended it at a limit; it ended by a signal."""

SIGNALLED = {128 + 2, 128 + 9, 128 + 15}
"""Exit statuses of jobs that were interrupted, killed or terminated."""

_REST = re.compile(r"(.*?):[-0-9.e+]+:([^:\s]+):[-0-9.e+]+(?::[0-9]+:[0-9]+(?::.*)?)?\Z")
"""The fields from `category` on: category, I/O wait, task of a parallel job, memory, and in version 6.2 two more."""

_LIMIT = re.compile(r"(?<![\w.])h_rt=([0-9:.]+)")
_MEMORY = re.compile(r"(?<![\w.])h_vmem=([0-9]{1,15}(?:\.[0-9]{1,9})?[KMGTkmgt]?)(?![\w.])")
_UNIT = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_GPUS = re.compile(r"(?<![\w.])(?:n|num_)?gpus?=([0-9]{1,6})(?![\w.])")
_KEYS = {"job_number", "submission_time", "qname", "slots"}
_BEGINS = re.compile(rb"[^:\s]+(?::[^:]*){4}:[0-9]+(?::[^:]*){2}(?::[0-9]+){5}(?::[^:]*){28}")


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is an accounting file of Grid Engine."""
    return json_keys(head) >= _KEYS or any(_BEGINS.match(line) for line in first_lines(head))


def read(path: Path, _: Reading) -> AccountingRows:
    """Return the jobs in the file. Times are Unix seconds, milliseconds (Univa) or microseconds (JSON of Gridware).

    A job that is rescheduled has a line for each run. Tasks of parallel jobs with a line of their own are left out.

    References
    ----------
    accounting(5) and sge_status(5) of Son of Grid Engine 8.1; sge_accounting(5) of Gridware 9.0;
    docs/other-systems.md#grid-engine.
    """
    jobs = AccountedJobs()
    if json_keys(beginning_of(path)) >= _KEYS:
        jobs.take(json_records(path, "job_number"), _job_of)
    else:
        jobs.take(((number, text) for number, text in numbered_lines(path) if not text.startswith("#")), _job)
    rows = jobs.finished("it states no run time limit (qsub -l h_rt)")
    several = int(((rows.column("gpus") > 0) & (rows.column("processors") > 1)).sum()) if len(rows) else 0
    if several:
        rows.notes.append(
            f"{counted(several, 'job')} of several slots request GPUs, which count for each slot; "
            "where the complex is a consumable JOB, they have fewer"
        )
    return rows


def _job(line: int, text: str) -> JobRow | str:
    """Return the job of a line, or the reason why the line is no job."""
    parts = text.split(":", len(FIELDS))
    rest = _REST.match(parts[-1].strip())
    if len(parts) <= len(FIELDS) or rest is None:
        raise ValueError(f"expected a record of at least {len(FIELDS) + 4} fields")
    category, task_of_job = rest.groups()
    return _job_of(line, {**dict(zip(FIELDS, parts, strict=False)), "category": category, "pe_taskid": task_of_job})


def _job_of(line: int, values: dict[str, Any]) -> JobRow | str:
    """Return the job with these values, or the reason why they are of no job."""
    if text_of(values, ["pe_taskid", "pe_task_id"]) not in ("", "NONE"):
        return "task of a parallel job"
    category = text_of(values, ["category"])
    number, task, slots = (whole_of(values, name) for name in ("job_number", "task_number", "slots"))
    submit, start, end = (instant_of(values, name) for name in ("submission_time", "start_time", "end_time"))
    failed, exit_status = whole_of(values, "failed"), whole_of(values, "exit_status")
    if end == UNKNOWN:
        return "never started; the file does not say when it left"
    limit = _limit_of(category)
    memory, gpus = _MEMORY.search(category), _GPUS.search(category)
    return JobRow(
        line,
        number_of(number, task or None),
        submit,
        start,
        end,
        slots,
        _status(failed, exit_status, over_limit=start != UNKNOWN and end - start >= limit),
        limit,
        memory=_mebibytes(slots, memory[1]) if memory else UNKNOWN,
        gpus=slots * int(gpus[1]) if gpus else UNKNOWN,
        user=text_of(values, ["owner"]),
        account=text_of(values, ["project"] if values.get("project", "NONE") != "NONE" else ["account"]),
        job_name=text_of(values, ["job_name"]),
        partition=text_of(values, ["qname"]),
        node_list=text_of(values, ["hostname"]),
    )


def _limit_of(category: str) -> int:
    """Return the run time limit in seconds among the requests of a job; `MAX_DURATION` if there is none.

    >>> _limit_of("-l h_rt=2:00:00,h_vmem=4G -pe mpi 4"), _limit_of("-l h_vmem=4G") == MAX_DURATION
    (7200, True)
    """
    match = _LIMIT.search(category)
    seconds = None if match is None else seconds_of(match[1].strip(":"))
    return MAX_DURATION if seconds is None else seconds


def _mebibytes(slots: int, size: str) -> int:
    """Return the memory of a job in MiB, from its size for each slot; `UNKNOWN` if it is too large for any machine.

    Units in capital letters are powers of two, others powers of ten. A bare number counts bytes.

    >>> _mebibytes(4, "1.5G"), _mebibytes(1, "2097152"), _mebibytes(1, "1g")
    (6144, 2, 954)
    """
    number = float(size.rstrip("KMGTkmgt")) * _UNIT.get(size[-1], 1)
    mebibytes = round(slots * number / 2**20)
    return mebibytes if mebibytes <= MAX_AMOUNT else UNKNOWN


def _status(failed: int, exit_status: int, *, over_limit: bool) -> int:
    if failed in (RESCHEDULED, MIGRATED):
        return KILLED
    if over_limit and (failed in (OVER_LIMIT, AFTER_JOB) or exit_status in SIGNALLED):
        return LIMIT
    if failed == AFTER_JOB and exit_status in SIGNALLED:
        return 5
    return 1 if failed == exit_status == 0 else 0
