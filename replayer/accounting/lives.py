"""The lives of jobs: each time that one waited, and ran or was cancelled, is one."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.accounting.instants import UNKNOWN
from shadowtime.replayer.accounting.reading import Rows
from shadowtime.replayer.source import KILLED, RESIZED
from shadowtime.shared.arrays import Flags, Integers

NOWHERE = "none assigned"
"""The nodes of a job that never started, of which some versions of Slurm print the end as its start."""

LIFE = 10**9, 10**14
"""What the number of a job that waits anew is higher by, each time: the smaller one, if all numbers are below it."""


class Lives(NamedTuple):
    """Rows by columns: instants in seconds of Unix, `UNKNOWN` where they are not."""

    submit: Integers
    eligible: Integers
    start: Integers
    end: Integers
    run_time: Integers
    suspended: Integers

    @property
    def started(self) -> Flags:
        """Whether each started."""
        started: Flags = self.start != UNKNOWN
        return started


def in_order_of_time(rows: Rows, unfolded: Callable[[int, int], int] | None) -> Lives:
    """Return the instants of rows, hours that summer time gives twice put right."""
    submit, eligible, start, end = (rows.column(each) for each in ("submit", "eligible", "start", "end"))
    nodes = rows.words("node_list")
    nowhere = [code for word, code in nodes.values.items() if word.strip().lower() == NOWHERE]
    start = np.where((end != UNKNOWN) & np.isin(nodes.codes, nowhere), UNKNOWN, start)
    run_time, suspended = rows.column("run_time"), np.maximum(rows.column("suspended"), 0)
    if unfolded is not None:
        for later, earlier, least in ((start, submit, 0), (end, start, np.maximum(run_time, 0) + suspended)):
            wrong = np.flatnonzero((later != UNKNOWN) & (earlier != UNKNOWN) & (later < earlier + least))
            for at in wrong.tolist():
                later[at] = unfolded(int(later[at]), int((earlier + least)[at]))
    held = end - start
    run_time = np.where(run_time < 0, held - suspended, np.minimum(run_time, held))
    return Lives(submit, eligible, start, end, np.maximum(run_time, 0), suspended)


def joined_sizes(
    numbers: Integers, lives: Lives, status: Integers, limit: Integers, processors: Integers
) -> tuple[list[tuple[int, int, int]], Flags]:
    """Join the rows of each resized job into the first of them, in place; one job has a row for each size.

    Returns
    -------
    changes
        Row, time and processors of each new size.
    joined
        Which rows are parts of jobs that rows before them are of.
    """
    joined = np.zeros(len(numbers), dtype=np.bool_)
    changes: list[tuple[int, int, int]] = []
    order = np.lexsort((lives.submit, numbers))
    for place in np.flatnonzero(status[order] == RESIZED)[::-1].tolist():
        row, following = int(order[place]), int(order[place + 1]) if place + 1 < len(order) else -1
        if following < 0 or numbers[following] != numbers[row]:
            continue
        changes = [(row if each == following else each, *rest) for each, *rest in changes]  # type: ignore[misc]
        changes.append((row, int(lives.end[row]), int(processors[following])))
        still = lives.suspended[row] + lives.suspended[following]
        lives.end[row], lives.suspended[row] = lives.end[following], still
        lives.run_time[row] = max(int(lives.end[row] - lives.start[row] - still), 0)
        status[row], limit[row], joined[following] = status[following], limit[following], True
    status[status == RESIZED] = KILLED
    return changes, joined


def repeated(numbers: Integers, lives: Lives) -> Flags:
    """Return which rows were told before: the same job, submitted and started at the same time."""
    order = np.lexsort((lives.start, lives.submit, numbers))
    keys = np.stack((numbers[order], lives.submit[order], lives.start[order]))
    again = np.zeros(len(numbers), dtype=np.bool_)
    again[order[1:]] = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    return again


def own_numbers(numbers: Integers, lives: Lives, kept: Flags) -> Integers:
    """Return numbers of which each is one job's: the second life of a job is numbered higher."""
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((lives.start[rows], lives.submit[rows], numbers[rows]))]
    new = np.r_[True, numbers[rows][1:] != numbers[rows][:-1]]
    life = np.arange(len(rows)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    unit = LIFE[0] if len(rows) == 0 or numbers[rows].max() < LIFE[0] else LIFE[1]
    own = numbers.copy()
    own[rows] += unit * life
    return own
