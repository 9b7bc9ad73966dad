"""Accounting files of OpenPBS and PBS Pro: a record for whatever happens to a job."""

from pathlib import Path

from shadowtime.shared.accounting.instants import Instants, zone_of
from shadowtime.shared.accounting.pbs_records import DELETED, RECORD, PbsJobs, PbsLife
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.text_file import lines_of
from shadowtime.shared.errors import TraceError

NAME = "PBS"


def begins(line: bytes) -> bool:
    """Return whether a file that begins with this line is such a file."""
    return RECORD.match(line.decode(errors="replace")) is not None


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return what the file says of jobs: those that ended (E), were run again (R), or deleted while they waited (D, A).

    Of what is told, `ctime` is when a job was submitted, `etime` from when on it may run, `start` and `end` when it
    ran; all are seconds of Unix. A record's own date is that of the clock on the wall.

    Raises
    ------
    TraceError
        If a line is no record; names it.

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
                rows.leave_out("deleted, and nothing else told", 1, f"job {life.job}, line {number}")
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
