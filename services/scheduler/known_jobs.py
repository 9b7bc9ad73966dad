"""What is known of the jobs of a run, as columns that shadow machines work on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.services.scheduler.job_table import SLOT, Queue, Running
from shadowtime.services.scheduler.ordering import Ordering
from shadowtime.services.scheduler.orders import Key
from shadowtime.services.scheduler.policy_settings import PolicySettings
from shadowtime.services.scheduler.run_time_measures import RunTimeMeasures
from shadowtime.services.scheduler.shadow_machine import AS_PREDICTED, AS_REQUESTED, Known
from shadowtime.shared.arrays import Flags, FloatTable, Integers, IntegerTable
from shadowtime.shared.events import Event, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.packed_table import packed_numbers, unpacked_numbers

SUBMITTED, PROCESSORS, LIMIT, RUN_TIME, STARTED, USER = range(6)
"""Rows of the table of facts; times in seconds. Run time and start are -1 until they are known."""

MAX_USERS = 4_096
"""Users that are told apart; those that come later count as one more."""

GROWTH = 256
"""Jobs for which there is room at first."""


def grown(table: Any, size: int, filler: int = 0) -> Any:
    """Return a table with room for `size` columns at least: itself, or a copy of twice the size or more."""
    if table.shape[1] >= size:
        return table
    more = np.full((len(table), max(size, 2 * table.shape[1])), filler, dtype=table.dtype)
    more[:, : table.shape[1]] = table
    return more


class KnownJobs:
    """The jobs of a run in order of (submit time, job number): what was known at submission, and what is known since.

    Events are only noted; the next scheduling point, which has the tables of jobs, tells what is planned of new ones.
    O(new jobs * variants) a scheduling point.

    Parameters
    ----------
    bases
        Orders, and the functions that give what is sorted by.
    taus
        Probabilities with which a job outlasts what it is planned to run.
    settings
        What the policy makes of adjusted requests.
    most
        Jobs at one time; those that come beyond are left out.
    """

    def __init__(
        self, bases: Sequence[tuple[Ordering, Key]], taus: tuple[float, ...], settings: PolicySettings, most: int
    ) -> None:
        self.bases, self.settings, self.most = bases, settings, most
        self.measures = RunTimeMeasures(taus)
        self.pending: list[tuple[str, int, int, int]] = []
        """Kind, job number, and time, or run time, or user; since the last scheduling point."""
        self.index: dict[int, int] = {}
        """Where each job is that has not ended in the run itself."""
        self.users: dict[int | None, int] = {}
        self.size = 0
        self.facts: IntegerTable = np.zeros((6, GROWTH), dtype=np.int64)
        self.planned: IntegerTable = np.zeros((2 + len(taus), GROWTH), dtype=np.int64)
        self.numbers: FloatTable = np.zeros((len(bases), GROWTH))

    @property
    def known(self) -> Known:
        """The columns, as machines take them."""
        facts = self.facts
        times = facts[SUBMITTED], facts[PROCESSORS], facts[LIMIT]
        return Known(self.size, *times, self.planned, self.numbers, facts[RUN_TIME], facts[STARTED])

    @property
    def user_rows(self) -> Integers:
        """Of each job the row of its user."""
        users: Integers = self.facts[USER]
        return users

    def observe(self, event: Event) -> None:
        """Note an event."""
        if isinstance(event, JobSubmitted):
            user = self.users.get(event.user_id, len(self.users))
            if user < MAX_USERS:
                self.users[event.user_id] = user
            self.pending.append(("submitted", event.job_number, min(user, MAX_USERS), 0))
        elif isinstance(event, JobStarted):
            self.pending.append(("started", event.job_number, event.time, 0))
        elif isinstance(event, JobEnded):
            self.pending.append(("ended", event.job_number, event.own_run_time, event.requeued))

    def take_in(self, now: int, queue: Queue, running: Running) -> None:
        """Take in the events noted, with what the tables of jobs say of the new ones."""
        users: dict[int, int] = {}
        of_new = []
        for kind, number, value, requeued in self.pending:
            if kind == "submitted":
                users[number] = value
            elif number in users:  # a number is free again once its job has ended
                of_new.append((kind, number, value, requeued))
            else:
                self._learn(kind, number, value, requeued)
        if users:
            self._add(now, users, queue, running)
        for each in of_new:
            self._learn(*each)
        self.pending.clear()

    def _learn(self, kind: str, number: int, value: int, requeued: int) -> None:
        """Take in the start or the end of a job that is known."""
        if (at := self.index.get(number)) is None:  # it was one too many
            return
        if kind == "started":
            self.facts[STARTED, at] = value
        elif requeued:
            self.facts[STARTED, at] = -1
        else:
            self.facts[RUN_TIME, at] = value
            del self.index[number]

    def drop(self, gone: Flags) -> None:
        """Forget jobs that have ended in the run itself, of each job whether it goes; the others move up."""
        places = np.cumsum(~gone) - 1
        left = int(places[-1]) + 1 if len(places) else 0
        for table in (self.facts, self.planned, self.numbers):
            table[:, :left] = table[:, : self.size][:, ~gone]
        self.index = {number: int(places[at]) for number, at in self.index.items()}
        self.size = left

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "pending": [list(each) for each in self.pending],
            "index": list(self.index.items()),
            "users": list(self.users.items()),
            "tables": [packed_numbers(table[:, : self.size]) for table in (self.facts, self.planned, self.numbers)],
        }

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.pending = [(kind, number, value, flag) for kind, number, value, flag in state["pending"]]
        self.index, self.users = dict(state["index"]), dict(state["users"])
        tables = [unpacked_numbers(table) for table in state["tables"]]
        self.size = tables[0].shape[1]
        self.facts, self.planned, self.numbers = (grown(table, GROWTH) for table in tables)

    def _add(self, now: int, users: dict[int, int], queue: Queue, running: Running) -> None:
        new = Queue(queue.histograms, self.settings)
        new.fractions = queue.fractions
        for number in users:
            row = queue.row(number) or running.row(number)
            if row is not None and self.size + len(new) < self.most:
                new.add(row[: SLOT + 1])
        size = self.size + len(new)
        tables = (self.facts, self.planned, self.numbers)
        self.facts, self.planned, self.numbers = (grown(table, size) for table in tables)
        there = slice(self.size, size)
        numbers = new.job_number.tolist()
        self.facts[[SUBMITTED, PROCESSORS, LIMIT], there] = new.submit_time, new.processors, new.requested_time
        self.facts[[RUN_TIME, STARTED], there] = -1
        self.facts[USER, there] = [users[number] for number in numbers]
        self.planned[AS_REQUESTED, there] = new.requested_time
        self.planned[AS_PREDICTED, there] = new.predicted_time
        self.planned[2:, there] = self.measures.outlasted(new)
        for at, (ordering, key) in enumerate(self.bases):
            self.numbers[at, there] = ordering.keys(key, now, new)
        self.index.update(zip(numbers, range(self.size, size), strict=True))
        self.size = size
