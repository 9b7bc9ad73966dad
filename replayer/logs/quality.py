"""Quality of a log: contents, gaps and oddities, for `shadowtime check` and a line of the report."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import Workload, processors_of_jobs
from shadowtime.shared.kernels import Flags, Integers
from shadowtime.shared.quoting import quote

# Processors in use by concurrent jobs.


def processors_in_use(start: Integers, end: Integers, processors: Integers) -> Integers:
    """Return for each job the number of processors in use just after its start. O(jobs log jobs).

    Within a second, ends precede starts, and smaller jobs start before larger ones.

    Parameters
    ----------
    start, end, processors
        Values of each job, shape (jobs,). Times are in seconds.

    >>> processors_in_use(np.array([0, 5, 5]), np.array([5, 9, 9]), np.array([4, 3, 2])).tolist()
    [4, 5, 2]
    """
    changes = np.concatenate((processors, -processors))
    order = np.lexsort((changes, np.concatenate((start, end))))
    held = np.empty_like(changes)
    held[order] = np.cumsum(changes[order])
    at_starts: Integers = held[: len(start)]
    return at_starts


DAY, WEEK = 86_400, 604_800

FLURRY = 3.0
"""A user's jobs in a week are a flurry if they exceed this multiple of the mean weekly number of all users' jobs."""

LEAST_FLURRY = 100
"""Number of jobs that every flurry exceeds."""

GRACE = 120
"""Seconds that a job may run beyond its limit without being reported."""

JUMP = 3_600
"""Limit in seconds. A longer jump back of submit times, from one job number to the next, means that a clock was set
back or the numbering restarted."""

SILENCE = 14 * DAY
"""Limit in seconds. A longer gap between submissions means that the logging or the machine was down."""

Columns = Mapping[str, Integers]


class Lack(NamedTuple):
    """A fact that a log states for no job, and the consequence for a replay or report."""

    what: str
    therefore: str


class Oddity(NamedTuple):
    """An oddity of a log: how often it occurs, and the first example."""

    what: str
    times: int
    example: str


LACKS: tuple[tuple[str, str, str], ...] = (
    ("wait_time", "waits", "only a closed replay is possible, and no bound can be compared with a wait"),
    ("requested_time", "requested times", "its jobs are left out: nothing could be planned"),
    (
        "user_id",
        "users",
        "predictions and adjustments by user treat all jobs as of one user, and it stays unknown whether some "
        "user is worse off",
    ),
    (
        "group_id",
        "accounts or groups",
        "adjustments leave the project out of their keys; those by project alone treat all jobs as of one project",
    ),
    ("executable_number", "programs or job names", "similar jobs are found by user, size and request alone"),
    ("queue_number", "queues or partitions", "waits are bounded over all jobs, not by queue"),
    ("status", "how jobs ended", "every job counts as ended by itself"),
    ("memory", "memory", "memory keeps no job from starting"),
    ("gpus", "GPUs", "GPUs keep no job from starting"),
    ("left_time", "cancelled jobs that never started", "queues look shorter than they were"),
    ("handed_in", "when jobs became eligible", "waits count from submission, and include holds and dependencies"),
)
"""Columns, each with a description and the consequence for a log that lacks the column."""


def lacks_of(columns: Columns, stated_columns: Collection[str] = ()) -> list[Lack]:
    """Return the facts that a log lacks, from the columns of its jobs. -1 means unknown.

    `stated_columns` names columns that the log does not lack, although they add nothing to its other columns.

    >>> [lack.what for lack in lacks_of({name: np.array([1]) for name, *_ in LACKS if name != "gpus"})]
    ['GPUs']
    """
    return [
        Lack(what, therefore)
        for name, what, therefore in LACKS
        if name not in stated_columns
        and (name not in columns or bool((columns[name] < (1 if name == "requested_time" else 0)).all()))
    ]


def columns_of_workload(workload: Workload) -> dict[str, Integers]:
    """Return the columns of a workload by the names of a log.

    Both columns of processors have the sizes that the replay uses. If `memory` is missing, the `requested_memory` of
    SWF takes its place, which a replay does not use.
    """
    columns = dict(workload.columns)
    if "memory" not in columns and "requested_memory" in workload.unused:
        columns["memory"] = workload.unused["requested_memory"]
    sizes = dict.fromkeys(("allocated_processors", "requested_processors"), columns["processors"])
    return columns | sizes


def columns_of(trace: Trace) -> dict[str, Integers]:
    """Return the columns of a log by name. For SWF, `memory` and `left_time` (of cancelled jobs) are added."""
    columns = dict(zip(FIELDS, trace.table.T, strict=True))
    if not trace.more:
        columns["memory"] = columns["requested_memory"]
        never = (columns["status"] == 5) & (columns["run_time"] <= 0)
        columns["left_time"] = np.where(never, columns["submit_time"], -1)
    return columns | dict(trace.more)


def oddities_of(trace: Trace, processors: int) -> list[Oddity]:
    """Return the oddities of a log on a machine with this number of processors. O(jobs log jobs)."""
    columns = columns_of(trace)
    oddities = [Oddity(f"left out: {reason}", count, example) for reason, (count, example) in trace.left_out.items()]
    for look in ODD if trace.more else ODD + ODD_IN_ARCHIVES:
        oddities += look(columns, processors)
    if not trace.job_ids:
        return oddities

    def with_id(match: re.Match[str]) -> str:
        job_id = trace.job_ids.get(int(match[1]))
        return match[0] if job_id is None else f"{match[0]} ({quote(job_id)})"

    return [oddity._replace(example=re.sub(r"\bjob (\d+)", with_id, oddity.example)) for oddity in oddities]


def _of_rows(what: str, columns: Columns, rows: Flags, tell: Callable[[int], str]) -> Iterator[Oddity]:
    """Yield an oddity of the flagged jobs, if any, with the first of them in the log as its example."""
    if (there := np.flatnonzero(rows)).size:
        first = int(there[0])
        yield Oddity(what, len(there), f"job {columns['job_number'][first]}: {tell(first)}")


def _impossible(columns: Columns, processors: int) -> Iterator[Oddity]:
    run_time, wait, requested = columns["run_time"], columns["wait_time"], columns["requested_time"]
    size = processors_of_jobs(columns, "requested")
    ran = run_time > 0
    yield from _of_rows(
        "larger than the machine", columns, size > processors, lambda row: f"{size[row]} of {processors} processors"
    )
    submit = columns["submit_time"]
    yield from _of_rows("submit time negative", columns, submit < 0, lambda row: str(submit[row]))
    yield from _of_rows("no processors", columns, size <= 0, lambda row: _number(size[row]))
    yield from _of_rows(
        "ran for no time",
        columns,
        (run_time <= 0) & (_of(columns, "left_time") < 0),
        lambda row: f"{_number(run_time[row])} s",
    )
    yield from _of_rows("no requested time", columns, requested <= 0, lambda row: _number(requested[row]))
    yield from _of_rows("started before its submission", columns, wait < -1, lambda row: f"wait of {wait[row]} s")
    yield from _of_rows(
        f"ran longer than its limit and {GRACE} s",
        columns,
        ran & (requested > 0) & (run_time > requested + GRACE),
        lambda row: f"{run_time[row]} s for {requested[row]} s",
    )
    allocated, asked = columns["allocated_processors"], columns["requested_processors"]
    yield from _of_rows(
        "got another number of processors than requested",
        columns,
        (allocated > 0) & (asked > 0) & (allocated != asked),
        lambda row: f"{allocated[row]} for {asked[row]}",
    )


def overlaps(columns: Columns, processors: int) -> Iterator[Oddity]:
    """Yield an oddity if, at recorded starts, more processors were in use than the machine has.

    While a job is suspended, its processors are free. When that was is unknown, so a job counts for its run time.
    """
    ran = np.flatnonzero((columns["wait_time"] >= 0) & (columns["run_time"] > 0))
    size = processors_of_jobs(columns, "allocated")
    start = columns["submit_time"][ran] + columns["wait_time"][ran]
    held = processors_in_use(start, start + columns["run_time"][ran], size[ran])
    over = held > processors
    if over.any():
        first = int(np.flatnonzero(over)[np.argmin(start[over])])
        number, most = columns["job_number"][ran[first]], int(held.max())
        yield Oddity(
            "started when more processors were in use than the machine has",
            int(over.sum()),
            f"job {number} at {start[first]}: {held[first]} of {processors} processors; at most {most}",
        )


def _flurries(columns: Columns, _: int) -> Iterator[Oddity]:
    """Yield an oddity of weeks in which one user submits more than `FLURRY` mean weeks of all users (Tsafrir 2006)."""
    submit, user = columns["submit_time"], columns["user_id"]
    if not len(submit) or (user < 0).all():
        return
    weeks = (submit - submit[0]) // WEEK
    mean = len(submit) / (int(weeks[-1]) + 1)
    keys, counts = np.unique(np.stack((user, weeks)), axis=1, return_counts=True)
    beyond = (counts > max(FLURRY * mean, LEAST_FLURRY)) & (keys[0] >= 0)
    if beyond.any():
        most = int(np.argmax(np.where(beyond, counts, 0)))
        yield Oddity(
            "flurry: a week in which one user submits more than all users do in three",
            int(beyond.sum()),
            f"user {keys[0, most]}, week {keys[1, most] + 1}: {counts[most]:,} jobs; all users {mean:,.0f} in the mean",
        )


def _clock(columns: Columns, _: int) -> Iterator[Oddity]:
    """Yield an oddity of submit times that jump back from one job number to the next."""
    numbers, submit = columns["job_number"], columns["submit_time"]
    order = np.argsort(numbers, kind="stable")
    back = np.flatnonzero(np.diff(submit[order]) < -JUMP)
    if back.size:
        row, before = order[back[0] + 1], order[back[0]]
        yield Oddity(
            "clock jump: submitted more than an hour before the preceding job number",
            len(back),
            f"job {numbers[row]} at {submit[row]}, job {numbers[before]} at {submit[before]}",
        )


def _silence(columns: Columns, _: int) -> Iterator[Oddity]:
    """Yield an oddity of long gaps between submissions."""
    numbers, gaps = columns["job_number"], np.diff(columns["submit_time"])
    silent = np.flatnonzero(gaps > SILENCE)
    if silent.size:
        yield Oddity(
            "silence: nothing submitted for more than two weeks",
            len(silent),
            f"after job {numbers[silent[0]]}: {gaps[silent[0]] / DAY:.0f} days",
        )


def _users(columns: Columns, _: int) -> Iterator[Oddity]:
    """Yield oddities of jobs without a user, and of gaps in the user numbers."""
    user = columns["user_id"]
    known = np.unique(user[user >= 0])
    if not known.size:
        return
    yield from _of_rows("without a user, unlike others", columns, user < 0, lambda row: f"user {user[row]}")
    missing = int(known[-1] - known[0] + 1 - len(known))
    if 0 < missing <= len(known):  # gaps in sparse numbers, such as system user ids, mean nothing
        first = int(known[np.flatnonzero(np.diff(known) > 1)[0]]) + 1
        yield Oddity("user number without a job: users may have been removed", missing, f"user {first}")


def _number(value: int) -> str:
    """Return a number for an example; `unknown` if it is missing."""
    return "unknown" if value < 0 else str(value)


def _of(columns: Columns, name: str) -> Integers:
    return columns.get(name, np.full(len(columns["job_number"]), -1, dtype=np.int64))


ODD = (_impossible, overlaps, _flurries, _silence)
"""Checks of any log."""

ODD_IN_ARCHIVES = (_clock, _users)
"""Checks of archived logs only. Accounting files number array tasks as they start, and users as they appear."""
