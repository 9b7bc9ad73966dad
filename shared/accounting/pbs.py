"""Accounting files of OpenPBS and PBS Pro: one record for each event of a job."""

from pathlib import Path

from shadowtime.shared.accounting.instants import Instants, zone_of
from shadowtime.shared.accounting.pbs_records import DELETED, RECORD, PbsJobs, PbsLife
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.text_file import first_lines, lines_of
from shadowtime.shared.errors import TraceError

NAME = "PBS"


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a PBS accounting file."""
    return any(RECORD.match(line.decode(errors="replace")) for line in first_lines(head))


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs that ended (E), were rerun (R), or were deleted while they waited (D, A, K).

    A record's attributes have Unix times in seconds. `ctime` is the submission, `etime` the time from which the job may
    run, and `start` and `end` are those of the run. The date of the record itself is local wall-clock time.

    Raises
    ------
    TraceError
        If a line is not a record. The message names the line.

    References
    ----------
    docs/accounting.md#pbs.
    """
    rows, instants = AccountingRows(), Instants(zone_of(reading.time_zone))
    jobs = PbsJobs(instants)
    last, taken = 0, list[PbsLife]()
    for lines in lines_of(path):
        for number, line in enumerate(lines, last + 1):
            try:
                life = jobs.take(line.decode(errors="surrogateescape"), number)
            except ValueError as error:
                raise TraceError(f"{path}, line {number}: {error}") from error

            if life is None or life.kind in ("Q", "S"):
                continue
            if life.kind == "M":
                rows.leave_out("moved to another server", 1, f"job {life.job}, line {number}")
            elif life.kind in DELETED and not life.known:
                rows.leave_out("deleted; the file has no other record of the job", 1, f"job {life.job}, line {number}")
            else:
                taken.append(life)

        last += len(lines)

    for job, known in jobs.waiting.items():
        state = "still waiting" if known.started == UNKNOWN else "still running"
        rows.leave_out(state, 1, f"job {job}, line {known.line}")
    if taken:
        numbers = {name: [life.numbers[name] for life in taken] for name in taken[0].numbers}
        words = {name: [life.words[name] for life in taken] for name in taken[0].words}
        rows.extend([life.line for life in taken], numbers, words)

    if instants.assumed:
        rows.notes.append("jobs that never started are dated by a clock of no zone: taken for UTC; see --time-zone")
    return rows
