"""LSF's accounting file `lsb.acct`: a record for each job that finished."""

import re
from collections.abc import Sequence
from pathlib import Path

from shadowtime.shared.accounting.instants import whole_number
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.systems.job_rows import AccountedJobs, JobRow
from shadowtime.shared.accounting.text_file import first_lines, numbered_lines
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import KILLED, LIMIT
from shadowtime.shared.quoting import quote

NAME = "LSF"

FINISHED = '"JOB_FINISH" '
"""First field of the record of a job that finished. Records of other types are passed over."""

DONE = 64
"""Job status of a job that ended by itself with exit status 0. All others exited (32)."""

TERMINATED = {
    **dict.fromkeys((5, 6), LIMIT),  # run time limit, deadline
    **dict.fromkeys((1, 3, 10, 11, 13, 18), KILLED),  # preempted, host overloaded, requeued, checkpointed, RMS
    **dict.fromkeys((8, 9, 14, 15), 5),  # killed by owner or administrator
}
"""Status by the reason of termination (`exitInfo`, `TERM_*` of lsbatch.h). All other reasons are failures."""

# Places of fields. The first part of a record has a fixed length. Lists of hosts follow, then status, host factor, job
# name and command. The places of the last part count from the field behind the command.
EVENT_TIME, JOB, PROCESSORS, SUBMIT, BEGIN, START, USER, QUEUE, ASKED_HOSTS = 2, 3, 6, 7, 8, 10, 11, 12, 22
PROJECT, MAX_PROCESSORS, TASK, EXIT_INFO, EXTENSIONS = 20, 22, 25, 34, 49

RUN_TIME = 10
"""Place of the run time in seconds, counted from the effective resource requirement."""

LONG_SINCE = 7
"""First major version of the format whose records have the fields up to `EXTENSIONS`."""

_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^\s"]\S*)')
_RECORD = re.compile(
    r'"(?:(?:JOB|EVENT|SBD|QUEUE|HOST|HGROUP|MBD|LOG|LOAD|PRE)_[A-Z0-9_]{3,}|MIG|UNFULFILL)" "[0-9.]+" [0-9]+(?: |\Z)'
)
"""The beginning of a record of any type (lsb.acct and lsb.events). A record of an unknown type is an odd row."""

_BEGINS = re.compile(rb'"(?:JOB_FINISH|JOB_RESIZE|EVENT_ADRSV_FINISH)" "[0-9.]+" [0-9]+ ')


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is an LSF accounting file."""
    return any(_BEGINS.match(line) for line in first_lines(head))


def read(path: Path, _: Reading) -> AccountingRows:
    """Return the jobs in the file. Times are Unix seconds.

    A line that is not a record counts as an odd row.

    References
    ----------
    IBM Spectrum LSF 10.1, lsb.acct(5); docs/other-systems.md#lsf.
    """
    jobs = AccountedJobs()
    for number, text in numbered_lines(path):
        if text.startswith(FINISHED):
            jobs.take([(number, text)], _job)
        elif _RECORD.match(text):
            jobs.rows.passed_over += 1
        elif not text.startswith("#"):
            jobs.rows.odd.add(number, f"not a record of lsb.acct: {quote(text)}")
    return jobs.finished("it states no run time limit (bsub -W)")


def _job(line: int, text: str) -> JobRow:
    try:
        return _job_of(line, _FIELD.findall(text))
    except IndexError:
        raise ValueError("a record that is cut off") from None


def _job_of(line: int, fields: Sequence[tuple[str, str]]) -> JobRow:
    """Return the job of a record. Each field has its text in quotes, or else its bare text."""
    number, submit, end = (_whole(fields, at) for at in (JOB, SUBMIT, EVENT_TIME))
    hosts = ASKED_HOSTS + 1 + _whole(fields, ASKED_HOSTS)
    status_at = hosts + 1 + _whole(fields, hosts)
    held, done = fields[hosts + 1 : status_at], _whole(fields, status_at) == DONE
    at = status_at + 4  # behind status, host factor, job name and command
    task, started = _whole(fields, at + TASK), _whole(fields, START)
    limit, ran = _limit_and_run_time(fields, at + EXTENSIONS)
    whole = int(fields[1][0].partition(".")[0] or 0) >= LONG_SINCE
    exit_info = _whole(fields, at + EXIT_INFO) if whole and _whole(fields, at + EXTENSIONS) >= 0 else 0
    processors = sum(map(_slots, held)) or max(_whole(fields, PROCESSORS), _whole(fields, at + MAX_PROCESSORS))
    stopped = end - started - ran if started and ran != UNKNOWN else UNKNOWN
    return JobRow(
        line,
        number_of(number, task or None),
        submit,
        started or UNKNOWN,
        end,
        processors,
        1 if done else TERMINATED.get(exit_info, 0 if started else 5),
        limit,
        eligible=max(_whole(fields, BEGIN), submit),
        suspended=stopped if stopped > 0 else UNKNOWN,
        user=fields[USER][0],
        account=fields[at + PROJECT][0],
        job_name=fields[status_at + 2][0],
        partition=fields[QUEUE][0],
        node_list=held[0][0].rpartition("*")[2] if held else "",
    )


def _limit_and_run_time(fields: Sequence[tuple[str, str]], extensions: int) -> tuple[int, int]:
    """Return the run time limit and the run time in seconds; `MAX_DURATION` and `UNKNOWN` if the record has none.

    Lists of varying length and form precede them: extensions of the submission, and the use of each host. The run time
    limit is the third field before the effective resource requirement. The requirement is found by its form: it is the
    first of two texts, before a number and a text about the job's other clusters.
    """
    count = whole_number(fields[extensions][1]) if extensions < len(fields) else None
    for at in range(extensions + 1 + 2 * (count or 0), len(fields) - RUN_TIME):
        if not (fields[at][1] or fields[at + 1][1] or fields[at + 3][1]) and fields[at + 2][1]:
            limit, ran = whole_number(fields[at - 3][1]), whole_number(fields[at + RUN_TIME][1])
            return min(limit or MAX_DURATION, MAX_DURATION), UNKNOWN if ran is None else ran

    return MAX_DURATION, UNKNOWN


def _slots(field: tuple[str, str]) -> int:
    """Return the slots in an entry of the list of hosts: `4*n01` has four, `n01` one.

    >>> _slots(("4*n01", "")), _slots(("n01", ""))
    (4, 1)
    """
    count, star, _ = field[0].partition("*")
    return (whole_number(count) or 0) if star else 1


def _whole(fields: Sequence[tuple[str, str]], at: int) -> int:
    number = whole_number(fields[at][1])
    if number is None:
        raise ValueError(f"field {at + 1} is not a whole number")
    return number
