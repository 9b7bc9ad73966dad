"""Accounting files of OpenPBS, PBS Pro and Torque: one record for each event of a job."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from shadowtime.shared.accounting.instants import Instants, zone_of
from shadowtime.shared.accounting.pbs_records import DELETED, RECORD, RESERVATION, PbsJobs, PbsLife
from shadowtime.shared.accounting.reading import NUMBERS, UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.text_file import first_lines, lines_of
from shadowtime.shared.formatting import counted

NAME = "PBS"

FIRST_ENDS = 1_000
"""The number of ended jobs that show how far the dates are ahead of UTC. Their records have dates and Unix times."""

_OF_RESERVATION = re.compile(rb"[^;]*;[^;]*;" + RESERVATION.pattern.encode())


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a PBS accounting file."""
    return any(RECORD.match(line.decode(errors="replace")) for line in first_lines(head))


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs that ended (E), were rerun (R), or were deleted while they waited (D, A, K).

    A record's attributes have Unix times in seconds. `ctime` is the submission, `etime` the time from which the job may
    run, and `start` and `end` are those of the run. The date of the record itself is local wall-clock time.

    A line that is not a record counts as an odd row.

    References
    ----------
    docs/accounting.md#pbs.
    """
    rows, instants = AccountingRows(), Instants(zone_of(reading.time_zone))
    jobs = PbsJobs(instants)
    last, taken, differing, deleted = 0, list[PbsLife](), list[PbsLife](), False
    servers, ahead = _Servers(rows), list[int]()
    for lines in lines_of(path):
        for number, line in enumerate(lines, last + 1):
            try:
                life = jobs.take(line.decode(errors="surrogateescape"), number)
            except ValueError as error:
                rows.odd.add(number, str(error))
                continue

            if life is None and _OF_RESERVATION.match(line):
                rows.leave_out("about a reservation", 1, f"line {number}")
            elif life is None or life.kind in ("Q", "S"):
                rows.passed_over += bool(line.strip())
            elif life.kind == "M":
                rows.leave_out("moved to another server", 1, f"job {life.job}, line {number}")
            elif life.kind in DELETED and not life.known:
                rows.leave_out("deleted; the file has no other record of the job", 1, f"job {life.job}, line {number}")
            else:
                taken.append(life)
                if life.kind == "E" and len(ahead) < FIRST_ENDS:
                    ahead.append(jobs.time - life.numbers["end"])

        last += len(lines)
        differing += (life for life in taken if life.numbers["requested"] not in (UNKNOWN, life.numbers["processors"]))
        deleted = deleted or any(life.kind in DELETED for life in taken)
        _extend(rows, taken, servers)
        taken.clear()

    for job, known in jobs.waiting.items():
        state = "still waiting" if known.started == UNKNOWN else "still running"
        state = "deleted while it ran; the file has no record of its end" if known.deleted else state
        rows.leave_out(state, 1, f"job {job}, line {known.line}")
        rows.passed_over -= 1  # its last record is counted as this job now
    servers.note()
    if differing:
        rows.notes.append(
            f"{counted(len(differing), 'job')} held another number of processors than nodes=N:ppn=M or select= "
            f"requests, and count with those that they held; first job {differing[0].job}, line {differing[0].line}"
        )
    if jobs.released:
        rows.notes.append(
            f"{counted(len(jobs.released), 'job')} released nodes while they ran, and count with all that they held at "
            f"first; first job {jobs.released[0]}"
        )
    if instants.assumed and deleted:
        hours = round(median(ahead or [0]) / 3600, 1)
        clock = f", although the dates of ended jobs are {abs(hours):g} h {'ahead of' if hours > 0 else 'behind'} UTC"
        rows.notes.append(
            "the ends of jobs that never started have dates without a time zone: read as UTC"
            f"{clock if hours else ''}; see --time-zone"
        )
    return rows


class _Servers:
    """The servers of a file's jobs. A number belongs to the server whose job had it first."""

    def __init__(self, rows: AccountingRows) -> None:
        self._rows = rows
        self._counts = Counter[str]()
        self._owners: dict[int, str] = {}
        """The server of each number, once there are several servers."""
        self._renumbered = 0

    def ids(self, lives: Sequence[PbsLife]) -> list[str]:
        """Return the id of each job whose number belongs to another server, else an empty text."""
        ids = []
        for at, life in enumerate(lives):
            server = life.job.partition(".")[2].partition(".")[0]
            if self._counts and server not in self._counts and not self._owners:
                earlier = [
                    *self._rows.column("job_number").tolist(),
                    *(life.numbers["job_number"] for life in lives[:at]),
                ]
                self._owners = dict.fromkeys(earlier, next(iter(self._counts)))
            self._counts[server] += 1
            own = not self._owners or self._owners.setdefault(life.numbers["job_number"], server) == server
            ids.append("" if own else life.job.replace(".", "@", 1))
        self._renumbered += sum(map(bool, ids))
        return ids

    def note(self) -> None:
        """Add a note if there are several servers."""
        if len(self._counts) > 1:
            names = ", ".join(f"{name or 'no name'} ({count:,})" for name, count in self._counts.items())
            self._rows.notes.append(
                f"its jobs are of {len(self._counts)} servers: {names}; {counted(self._renumbered, 'job')} get a new "
                "number, because a job of another server has their number. If the servers are of separate machines, "
                "read their files one by one"
            )


def _extend(rows: AccountingRows, lives: Sequence[PbsLife], servers: _Servers) -> None:
    if not lives:
        return
    ids = servers.ids(lives)
    columns = zip(*(life.numbers.values() for life in lives), strict=True)
    numbers = dict(zip(lives[0].numbers, columns, strict=True))
    words = dict(zip(lives[0].words, zip(*(life.words.values() for life in lives), strict=True), strict=True))
    if any(ids):
        words["job_id"] = tuple(ids)
        numbers["job_number"] = tuple(
            UNKNOWN if job else number for job, number in zip(ids, numbers["job_number"], strict=True)
        )
    rows.extend([life.line for life in lives], {name: numbers[name] for name in NUMBERS if name in numbers}, words)
