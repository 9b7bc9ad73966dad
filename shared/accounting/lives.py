"""The lives of jobs. A life is one wait of a job, with the run or the cancellation that ended the wait."""

from itertools import pairwise, product
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from shadowtime.shared.accounting.instants import Instants, zone_of
from shadowtime.shared.accounting.job_numbers import LIFE
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows
from shadowtime.shared.bounds import MAX_PROCESSORS
from shadowtime.shared.cluster import KILLED, RESIZED
from shadowtime.shared.kernels import Flags, Integers

DATED = 10**8
"""Limit below which times are seconds since the start of the log, not Unix times. `convert` writes such logs."""

NO_INSTANTS = 2**31 - 1, 2**32 - 2, 2**32 - 1
"""The last numbers of 32 bits, which programs write for no time."""

HOUR, TWO_DAYS = 3_600, 172_800

NOWHERE = "none assigned"
"""Node list of a job that never started. For such a job, some versions of Slurm print its end also as its start."""

CUT_AT_WINDOWS = "sacct -T cuts jobs off at the limits of its window; run it without -T"
"""Advice in the notes on rows that seem to be cut off."""


class Lives(NamedTuple):
    """The times of lives: columns of shape (n,), with one value for each row of an accounting file.

    Instants are Unix times in seconds, `UNKNOWN` if missing. Durations are in seconds.
    """

    submit: Integers
    eligible: Integers
    start: Integers
    end: Integers
    run_time: Integers
    suspended: Integers

    @property
    def started(self) -> Flags:
        """Whether the job of each row started, shape (n,)."""
        started: Flags = self.start != UNKNOWN
        return started


def in_order_of_time(rows: AccountingRows, instants: Instants) -> Lives:
    """Return the instants and durations of rows. `instants` parsed their dates, and has the time zone of the user.

    At the end of summer time a local hour occurs twice. In the time zone of the user, the chosen occurrence is the one
    that agrees with the run time, or else the one that keeps submit, eligible, start and end in order. If UTC was
    assumed, an end is moved by an hour if its distance from the start differs by an hour from the run time.
    """
    submit, eligible, start, end = (_dated(rows.column(name)) for name in ("submit", "eligible", "start", "end"))
    run_time, suspended = rows.column("run_time"), np.maximum(rows.column("suspended"), 0)
    nodes = rows.words("node_list")
    nowhere = [code for word, code in nodes.values.items() if word.strip().lower() == NOWHERE]
    start = np.where((end != UNKNOWN) & (run_time <= 0) & np.isin(nodes.codes, nowhere), UNKNOWN, start)
    if instants.zone is not zone_of(None):
        known = (start != UNKNOWN) & (end != UNKNOWN) & (run_time >= 0)
        for at in np.flatnonzero(known & (end - start != run_time + suspended)).tolist():
            for begun, over in product(
                *((int(column[at]), instants.twice(int(column[at]))) for column in (start, end))
            ):
                if over - begun == run_time[at] + suspended[at]:
                    start[at], end[at] = begun, over
                    break

        for later, earlier in ((eligible, submit), (start, eligible), (end, start)):
            for at in np.flatnonzero((later != UNKNOWN) & (earlier != UNKNOWN) & (later < earlier)).tolist():
                later[at] = max(int(later[at]), instants.twice(int(later[at])))

    elif rows.assumed_utc:
        known = (start != UNKNOWN) & (end != UNKNOWN)
        more = run_time + suspended - (end - start)
        stated = (more == HOUR) | ((more == -HOUR) & (run_time >= 0) & (rows.column("suspended") < 0))
        end = np.where(known & stated, end + more, end)

    held = end - start
    run_time = np.where(run_time < 0, held - suspended, np.minimum(run_time, held))
    return Lives(submit, eligible, start, end, np.maximum(run_time, 0), suspended)


def _dated(instants: Integers) -> Integers:
    """Return instants, `UNKNOWN` for numbers that stand for none: among dates, also the first two days of 1970."""
    dates = (instants >= DATED).any() and not ((instants >= TWO_DAYS) & (instants < DATED)).any()
    missing = (instants >= 0) & (instants < TWO_DAYS) & bool(dates)
    return np.where(missing | np.isin(instants, NO_INSTANTS), UNKNOWN, instants)


def joined_sizes(
    numbers: Integers, lives: Lives, status: Integers, limit: Integers, processors: Integers, known: Flags
) -> tuple[list[tuple[int, int, int]], Flags]:
    """Join the rows of each resized job into its first row: change `lives`, `status` and `limit` in place.

    The file has one row for each size of a job. All arguments are columns of shape (n,), with a value for each row.

    Parameters
    ----------
    known
        Whether a row is considered.

    Returns
    -------
    changes
        For each change of size, in order of time: the first row of the job, the time, and the new processors.
    joined
        Whether a row continues the job of an earlier row, shape (n,).
    """
    joined = np.zeros(len(numbers), dtype=np.bool_)
    changes: list[tuple[int, int, int]] = []
    order = np.flatnonzero(known & np.isin(numbers, numbers[known & (status == RESIZED)]))
    order = order[np.lexsort((lives.end[order], lives.submit[order], numbers[order]))]
    first = -1
    for row, following in pairwise([*order.tolist(), -1]):
        if status[row] != RESIZED or following < 0 or numbers[following] != numbers[row]:
            first = -1
            continue
        first = row if first < 0 else first
        changed, over = int(lives.end[row]), int(lives.end[following])
        begun = lives.start[first] != UNKNOWN and lives.start[following] != UNKNOWN
        if not (begun and lives.start[first] <= changed <= over and 0 < processors[following] <= MAX_PROCESSORS):
            first = -1
            continue
        changes.append((first, changed, int(processors[following])))
        joined[following] = True
        lives.suspended[first] += lives.suspended[following]
        lives.end[first], status[first], limit[first] = over, status[following], limit[following]
        lives.run_time[first] = max(int(over - lives.start[first] - lives.suspended[first]), 0)

    status[status == RESIZED] = KILLED
    return sorted(changes, key=itemgetter(1)), joined


def repeated(numbers: Integers, lives: Lives) -> Flags:
    """Return which rows repeat another row of the same job and submit time, shape (n,).

    Two rows are the same if their start and end are equal. A row without an end repeats any other row of its life. So
    does a row without a start: sacct prints the tasks of a cancelled array once more, as 1427_[0-29].
    """
    going_on, never = lives.end == UNKNOWN, ~lives.started
    order = np.lexsort((lives.end, lives.start, never, going_on, lives.submit, numbers))
    same = (numbers[order][1:] == numbers[order][:-1]) & (lives.submit[order][1:] == lives.submit[order][:-1])
    twice = (lives.start[order][1:] == lives.start[order][:-1]) & (lives.end[order][1:] == lives.end[order][:-1])
    again = np.zeros(len(numbers), dtype=np.bool_)
    again[order[1:]] = same & (twice | going_on[order][1:] | never[order][1:])
    return again


def cut_at_windows(numbers: Integers, lives: Lives, kept: Flags) -> Integers:
    """Return the indices of kept rows that start in the second in which another row of their submission ends.

    `sacct -T` prints such rows, see `CUT_AT_WINDOWS`. A requeued job is submitted anew.
    """
    rows = np.flatnonzero(kept & lives.started)
    rows = rows[np.lexsort((lives.start[rows], lives.submit[rows], numbers[rows]))]
    before, later = rows[:-1], rows[1:]
    same = (numbers[before] == numbers[later]) & (lives.submit[before] == lives.submit[later])
    cut: Integers = later[same & (lives.end[before] == lives.start[later])]
    return cut


def own_numbers(
    numbers: Integers, lives: Lives, since: Integers, kept: Flags, steps: Integers
) -> tuple[Integers, Integers]:
    """Return the number of each life, shape (n,): each further life of a job has a number higher by one step.

    Only the rows in `kept` count. `steps` has the step of each row. For a step of `UNKNOWN`, a power of ten above all
    numbers is used. `since`, the time from which a life waits, is raised in place to the end of the previous life. A
    row that starts before that end is another job of the same number, for which `since` stays. The second result has
    the indices of these rows.
    """
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((lives.start[rows], lives.submit[rows], numbers[rows]))]
    new = np.r_[True, numbers[rows][1:] != numbers[rows][:-1]][: len(rows)]
    life = np.arange(len(rows)) - np.flatnonzero(new)[np.cumsum(new) - 1] if len(rows) else rows
    unit = max(LIFE, 10 ** len(str(int(numbers[rows].max())))) if len(rows) else LIFE
    own = numbers.copy()
    own[rows] += np.where(steps[rows] == UNKNOWN, unit, steps[rows]) * life
    again = np.flatnonzero(life > 0)
    before, later = lives.end[rows[again - 1]], rows[again]
    others = lives.started[later] & (lives.start[later] < before)
    several = np.isin(numbers[later], numbers[later[others]])  # which of them are lives of one job is unknown
    since[later] = np.where(several, since[later], np.maximum(since[later], before))
    return own, later[others]
