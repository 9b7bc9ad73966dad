"""Known jobs of a run, as columns for the simulated machines."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from shadowtime.services.scheduler.machine import KnownTables
from shadowtime.services.scheduler.ordering import Key, Ordering, RunTimeMeasures
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables import SLOT, Queue, Running
from shadowtime.shared.distributions import packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Flags, FloatTable, Integers, IntegerTable
from shadowtime.shared.messages import (
    Event,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    moment,
)

SUBMITTED, PROCESSORS, LIMIT, RUN_TIME, STARTED, USER, WITHDRAWN = range(7)
"""Rows of the table of facts; times in seconds. Run time, start and withdrawal are -1 until they are known."""

MAX_USERS = 4_096
"""Maximum number of distinguished users. All later users together count as one more."""

LOST = 14 * 86_400
"""Simulated machines give up a job that has waited in the run for more than this many seconds."""

GROWTH = 256
"""Initial capacity of the tables, in jobs."""


def grown(table: Any, size: int, filler: int = 0) -> Any:
    """Return a table with room for at least `size` columns: the table itself, or a copy of at least twice its size."""
    if table.shape[1] >= size:
        return table
    more = np.full((len(table), max(size, 2 * table.shape[1])), filler, dtype=table.dtype)
    more[:, : table.shape[1]] = table
    return more


@dataclass(slots=True)
class JobUpdate:
    """Changes of one job since the last scheduling point; `user` is the user's index if the job was submitted since."""

    user: int | None = None
    started: int | None = None
    run_time: int | None = None
    withdrawn: int | None = None


class JobLog:
    """The jobs of a run in order of (submit time, job number), with the facts known at submission and since.

    Events are only recorded. The next scheduling point applies them, with the planned times of new jobs from the queue
    and the running jobs. O(new jobs * variants) for each scheduling point.

    Parameters
    ----------
    bases
        Orders, each with the function that returns its basis, see `compiled`.
    taus
        Probabilities with which a job outlasts its planned time. Each adds a row of planned times.
    settings
        Settings of the policy; they say how adjusted requests are used.
    most
        Maximum number of jobs at one time; further jobs are left out.
    """

    def __init__(
        self, bases: Sequence[tuple[Ordering, Key]], taus: tuple[float, ...], settings: PolicySettings, most: int
    ) -> None:
        self.bases, self.settings, self.most = bases, settings, most
        self.measures = RunTimeMeasures(taus)
        self.news: dict[int, list[JobUpdate]] = {}
        """Updates since the last scheduling point, by job number. If a number is reused, the old job is first."""
        self.index: dict[int, int] = {}
        """Columns of the jobs that have not ended in the run itself, by job number."""
        self.users: dict[int | None, int] = {}
        self.size = 0
        self.facts: IntegerTable = np.zeros((7, GROWTH), dtype=np.int64)
        self.planned: IntegerTable = np.zeros((2 + len(taus), GROWTH), dtype=np.int64)
        self.numbers: FloatTable = np.zeros((len(bases), GROWTH))

    @property
    def known(self) -> KnownTables:
        """The columns of all jobs in the form that simulated machines use."""
        facts = self.facts
        times = facts[SUBMITTED], facts[PROCESSORS], facts[LIMIT]
        return KnownTables(
            self.size, *times, self.planned, self.numbers, facts[RUN_TIME], facts[STARTED], facts[WITHDRAWN]
        )

    @property
    def user_rows(self) -> Integers:
        """Index of the user of each job, in order of first submission; `MAX_USERS` for all later users."""
        users: Integers = self.facts[USER]
        return users

    def observe(self, event: Event) -> None:
        """Record an event until the next scheduling point."""
        if isinstance(event, JobSubmitted):
            user = self.user(event.user_id)
            before = [update for update in self.news.get(event.job_number, ()) if update.user is None]
            self.news[event.job_number] = [*before, JobUpdate(user)]
        elif isinstance(event, JobWithdrawn):
            self._end(event.job_number, JobUpdate(withdrawn=event.time))
        elif isinstance(event, JobEnded):
            if event.requeued:
                self._last(event.job_number).started = -1
            else:
                self._end(event.job_number, JobUpdate(run_time=event.own_run_time))
        elif isinstance(event, JobStarted | JobResumed):  # the elapsed run time counts from here
            self._last(event.job_number).started = moment(event)
        elif isinstance(event, JobSuspended):  # the elapsed run time is unknown until the job resumes
            self._last(event.job_number).started = -1

    def user(self, user_id: int | None) -> int:
        """Return the index of a user, which is new at the first call."""
        index = self.users.get(user_id, len(self.users))
        if index < MAX_USERS:
            self.users[user_id] = index
        return min(index, MAX_USERS)

    def _last(self, number: int) -> JobUpdate:
        return self.news.setdefault(number, [JobUpdate()])[-1]

    def _end(self, number: int, news: JobUpdate) -> None:
        """Record that a job has ended or was withdrawn. A job that no scheduling point has seen is dropped."""
        last = self._last(number)
        if last.user is None:
            last.run_time, last.withdrawn = news.run_time, news.withdrawn
            return
        self.news[number].pop()
        if not self.news[number]:
            del self.news[number]

    def take_in(self, now: int, queue: Queue, running: Running) -> None:
        """Apply the recorded events, with the planned times of new jobs from the tables of jobs."""
        new = [(number, news[-1]) for number, news in self.news.items() if news[-1].user is not None]
        for number, (first, *_) in self.news.items():
            if first.user is None:
                self._learn(number, first)
        if new:
            self._add(now, {number: update.user or 0 for number, update in new}, queue, running)
            for number, update in new:
                self._learn(number, update)

        self.news.clear()

    def _learn(self, number: int, news: JobUpdate) -> None:
        """Apply the changes of a known job."""
        if (at := self.index.get(number)) is None:  # the job was left out or given up
            return
        if news.started is not None:
            self.facts[STARTED, at] = news.started
        if news.withdrawn is not None:
            self.facts[WITHDRAWN, at] = news.withdrawn
            del self.index[number]
        if news.run_time is not None:
            self.facts[RUN_TIME, at] = news.run_time
            del self.index[number]

    def give_up(self, now: int) -> None:
        """Mark jobs that have waited for over `LOST` seconds as withdrawn at their submission.

        Otherwise simulated machines would wait for the ends of these jobs.
        """
        submitted, started, run_times, withdrawn = (
            self.facts[row, : self.size] for row in (SUBMITTED, STARTED, RUN_TIME, WITHDRAWN)
        )
        lost = (started < 0) & (run_times < 0) & (withdrawn < 0) & (submitted < now - LOST)
        withdrawn[lost] = submitted[lost]
        if lost.any():
            self.index = {number: at for number, at in self.index.items() if not lost[at]}

    def drop(self, gone: Flags) -> None:
        """Drop the jobs marked in `gone`, which have ended or left the queue in the run itself. The others move up."""
        places = np.cumsum(~gone) - 1
        left = int(places[-1]) + 1 if len(places) else 0
        for table in (self.facts, self.planned, self.numbers):
            table[:, :left] = table[:, : self.size][:, ~gone]
        self.index = {number: int(places[at]) for number, at in self.index.items()}
        self.size = left

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "news": [[number, [astuple(update) for update in news]] for number, news in self.news.items()],
            "index": list(self.index.items()),
            "users": list(self.users.items()),
            "tables": [packed_numbers(table[:, : self.size]) for table in (self.facts, self.planned, self.numbers)],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.news = {number: [JobUpdate(*values) for values in news] for number, news in state["news"]}
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

        numbers = new.job_number.tolist()
        facts = np.stack((new.submit_time, new.processors, new.requested_time))
        planned = np.concatenate((np.stack((new.requested_time, new.predicted_time)), self.measures.outlasted(new)))
        bases = np.array([ordering.keys(key, now, new) for ordering, key in self.bases]).reshape(
            len(self.bases), len(new)
        )
        self.extend(numbers, facts, [users[number] for number in numbers], planned, bases)

    def extend(
        self, numbers: list[int], facts: IntegerTable, users: list[int], planned: IntegerTable, bases: FloatTable
    ) -> None:
        """Append jobs: their numbers; submit times, processors and limits, shape (3, jobs); and their other columns."""
        size = self.size + len(numbers)
        tables = (self.facts, self.planned, self.numbers)
        self.facts, self.planned, self.numbers = (grown(table, size) for table in tables)
        there = slice(self.size, size)
        self.facts[[SUBMITTED, PROCESSORS, LIMIT], there] = facts
        self.facts[[RUN_TIME, STARTED, WITHDRAWN], there] = -1
        self.facts[USER, there] = users
        self.planned[:, there], self.numbers[:, there] = planned, bases
        self.index.update(zip(numbers, range(self.size, size), strict=True))
        self.size = size
