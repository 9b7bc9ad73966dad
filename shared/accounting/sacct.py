"""Slurm's accounting as text: the output of `sacct -aPXD`."""

from collections.abc import Callable, Sequence
from pathlib import Path

from shadowtime.shared.accounting.durations import seconds_of
from shadowtime.shared.accounting.instants import Instants, whole_number, zone_of
from shadowtime.shared.accounting.job_numbers import LIFE, TASKS, number_of, tasks_of
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.sacct_values import EXPECTED, limit_of, nodes_of, resources_of, whole
from shadowtime.shared.accounting.text_file import ends_with_a_line, first_lines, lines_of
from shadowtime.shared.cluster import KILLED, LIMIT, RESIZED
from shadowtime.shared.errors import TraceError
from shadowtime.shared.quoting import quote

FIELDS = (
    *("JobIDRaw", "JobID", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw"),
    *("ReqCPUS", "AllocCPUS", "NNodes", "ReqTRES", "AllocTRES", "NodeList", "User", "Account", "Partition", "QOS"),
    "JobName",
)
"""Fields to request from sacct. The job name comes last, since it may contain any character."""

REQUIRED = ("JobIDRaw", "State", "Submit", "Start", "End", "TimelimitRaw", "ReqCPUS", "AllocCPUS")

COMMAND = f"SLURM_TIME_FORMAT=%s sacct -aPXD --noconvert -S 2025-01-01 -o {','.join(FIELDS)}"
"""Command that prints a file in this format."""

FREE_TEXT = {"JobName", "Comment", "AdminComment", "SystemComment", "WorkDir", "SubmitLine"}
"""Fields that may contain the delimiter."""

STATES = {
    "COMPLETED": 1,
    **dict.fromkeys(("FAILED", "OUT_OF_MEMORY"), 0),
    "CANCELLED": 5,
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), LIMIT),
    **dict.fromkeys(("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REQUEUED", "REVOKED"), KILLED),
    "RESIZING": RESIZED,
}
"""Job status for each Slurm state that is not one of `GOING_ON`."""

GOING_ON = {
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESV_DEL_HOLD", "REQUEUE_FED", "REQUEUE_HOLD"),
    *("SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED"),
}

NAME = "sacct"


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is output of sacct."""
    line = first_lines(head)[0]
    return b"|" in line and b"JobID" in line


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs in the file. Steps of jobs are left out.

    Raises
    ------
    TraceError
        If a field is missing, or a line cannot be read as a job. The message names the line and the field.

    References
    ----------
    docs/accounting.md (sacct of Slurm 22.05 and 25.11).
    """
    return _Reader(path, reading).rows()


class _Reader:
    def __init__(self, path: Path, reading: Reading) -> None:
        self.path = path
        self.instants = Instants(zone_of(reading.time_zone))
        self.names: list[str] = []
        self.accepted = AccountingRows()

    def rows(self) -> AccountingRows:
        last, head = 0, ""
        cut: tuple[int, list[str]] | None = None
        for lines in lines_of(self.path):
            taken: list[list[str]] = []
            numbers: list[int] = []
            for number, line in enumerate(lines, last + 1):
                if not line.strip():
                    continue
                if cut is not None:
                    self._refuse_short(*cut)
                text = line.decode(errors="surrogateescape")
                if not self.names:
                    self._head(text)
                    head = text
                    continue

                if text == head:  # the header of another time window's output, appended to the file
                    continue
                if "|" not in text and not text.isdecimal() and self.names[-1] == "JobName" and number > 2:
                    self.accepted.leave_out("rest of a job name of several lines", 1, f"line {number}")
                    continue
                fields = self._split(text, number)
                if len(fields) < len(self.names):
                    cut = number, fields
                else:
                    taken.append(fields)
                    numbers.append(number)

            last += len(lines)
            if taken:
                self._take(numbers, dict(zip(self.names, map(list, zip(*taken, strict=True)), strict=True)))

        if cut is not None:
            self.accepted.leave_out("line cut off", 1, f"line {cut[0]}, the last one")
        if cut is not None or not ends_with_a_line(self.path):
            self.accepted.notes.append("the last line is cut off: the file may not be whole")
        if self.instants.assumed:
            self.accepted.notes.append(
                "its dates tell no time zone: taken for UTC, in which summer time is an hour off; "
                "ask sacct with SLURM_TIME_FORMAT=%s, or say --time-zone"
            )

        return self.accepted

    def _head(self, text: str) -> None:
        self.names = text.strip().split("|")
        if self.names[-1] == "":  # -p, not -P
            self.names.pop()
        missing = [name for name in REQUIRED if name not in self.names]
        if missing:
            raise TraceError(f"{self.path}: no field {', '.join(missing)}; this prints all needed fields: {COMMAND}")
        if twice := {name for name in self.names if self.names.count(name) > 1}:
            raise TraceError(f"{self.path}: field {', '.join(sorted(twice))} occurs twice")

    def _split(self, text: str, number: int) -> list[str]:
        """Return the fields of a line. Surplus delimiters belong to the one field of free text.

        Raises `TraceError` if the line has surplus delimiters, but not exactly one field of free text.
        """
        fields = text.split("|")
        more = len(fields) - len(self.names)
        if more == 1 and fields[-1] == "":  # -p, not -P
            fields.pop()
            more = 0
        if more <= 0:
            return fields
        free = [at for at, name in enumerate(self.names) if name in FREE_TEXT]
        if len(free) != 1:
            raise TraceError(
                f"{self.path}, line {number}: {len(fields)} fields, but {len(self.names)} in the head: "
                "a field contains the delimiter; request no field of free text but JobName"
            )

        at = free[0]
        return [*fields[:at], "|".join(fields[at : at + more + 1]), *fields[at + more + 1 :]]

    def _refuse_short(self, number: int, fields: Sequence[str]) -> None:
        raise TraceError(
            f"{self.path}, line {number}: {len(fields)} fields, but {len(self.names)} in the head: "
            f"{quote('|'.join(fields))}"
        )

    def _take(self, lines: Sequence[int], columns: dict[str, list[str]]) -> None:
        """Add the jobs of some lines to the accepted rows."""
        states = [text.split(" ", 1)[0] if text else "" for text in columns["State"]]
        strange = {
            state: f"in state {quote(state)}, which is not known" for state in {*states} - STATES.keys() - GOING_ON
        }
        reasons = {
            at: "step of a job" if "." in number else strange[state]
            for at, (number, state) in enumerate(zip(columns["JobIDRaw"], states, strict=True))
            if "." in number or state in strange
        }
        if reasons:
            for at, reason in reasons.items():
                self.accepted.leave_out(reason, 1, f"line {lines[at]}")
            kept = [at for at in range(len(lines)) if at not in reasons]
            lines, states = [lines[at] for at in kept], [states[at] for at in kept]
            columns = {name: [texts[at] for at in kept] for name, texts in columns.items()}

        lines, columns, states, numbers_of_jobs = _with_tasks(lines, columns, states)
        self._lines = lines

        def every(name: str, parse: Callable[[str], int | None]) -> list[int]:
            return self._every(name, columns.get(name), parse)

        started = every("Start", self.instants)
        requested, allocated = every("ReqCPUS", whole), every("AllocCPUS", whole)
        run_times = every("ElapsedRaw", whole)
        for at, state in enumerate(states):  # recognise jobs that never started even without NodeList
            if run_times[at] == 0 == allocated[at] and state not in GOING_ON:
                started[at] = UNKNOWN
        asked, had = (columns.get(name, [""] * len(lines)) for name in ("ReqTRES", "AllocTRES"))
        resources = [resources_of(text or before) for before, text in zip(asked, had, strict=True)]
        numbers = {
            "job_number": [
                number if own is None else own
                for number, own in zip(every("JobIDRaw", whole), numbers_of_jobs, strict=True)
            ],
            "life_step": [LIFE if own is None else LIFE * TASKS for own in numbers_of_jobs],
            "submit": every("Submit", self.instants),
            "start": started,
            "end": every("End", self.instants),
            "run_time": run_times,
            "suspended": every("Suspended", seconds_of),
            "limit": every("TimelimitRaw", limit_of),
            "processors": [size if size > 0 else before for size, before in zip(allocated, requested, strict=True)],
            "nodes": [
                nodes if nodes > 0 else held
                for nodes, held in zip(map(nodes_of, asked), every("NNodes", whole), strict=True)
            ],
            "memory": [memory for memory, _ in resources],
            "gpus": [gpus for _, gpus in resources],
            "status": [STATES.get(state, UNKNOWN) for state in states],
        }
        if "Eligible" in columns:
            numbers["eligible"] = every("Eligible", self.instants)
        fields = {
            "user": "User",
            "account": "Account",
            "job_name": "JobName",
            "partition": "Partition",
            "qos": "QOS",
            "node_list": "NodeList",
        }
        words = {ours: columns[theirs] for ours, theirs in fields.items() if theirs in columns}
        self.accepted.extend(lines, numbers, words)

    def _every(self, name: str, texts: Sequence[str] | None, parse: Callable[[str], int | None]) -> list[int]:
        if texts is None:
            return [UNKNOWN] * len(self._lines)
        values: list[int] = []
        for at, text in enumerate(texts):
            if (value := parse(text)) is None:
                raise TraceError(f"{self.path}, line {self._lines[at]}: {name} {quote(text)} {EXPECTED[name]}")
            values.append(value)

        return values


def _with_tasks(
    lines: Sequence[int], columns: dict[str, list[str]], states: list[str]
) -> tuple[Sequence[int], dict[str, list[str]], list[str], list[int | None]]:
    """Return lines, columns and states with a row for each array task, and the job number of each row.

    The number is None if the row is no array task.
    """
    numbers: list[int | None] = [None] * len(lines)
    if "JobID" not in columns or not any("_" in text for text in columns["JobID"]):
        return lines, columns, states, numbers
    rows: list[int] = []
    numbers = []
    for at, text in enumerate(columns["JobID"]):
        job, _, tasks = text.partition("_")
        array, task_list = whole_number(job), tasks_of(tasks)
        if array is None or task_list is None:
            rows.append(at)
            numbers.append(None)
        else:
            rows += [at] * len(task_list)
            numbers += [number_of(array, task) for task in task_list]

    spread = {name: [texts[at] for at in rows] for name, texts in columns.items()}
    return [lines[at] for at in rows], spread, [states[at] for at in rows], numbers
