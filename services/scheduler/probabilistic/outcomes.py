"""Outcomes of backfilling candidates: whether each would have delayed the head, once that is known.

The head is ready when the jobs that ran at the attempt have released enough for it. A candidate would have delayed it
if they had not released enough for both by then, and its run took longer than the head waited, whenever it ran
(docs/algorithms.md#calibration). Where there was enough for both, that is known at once. Else it is known when the
candidate's own start lies as far back, and is told then and not before, also of a run that is shorter: the order in
which outcomes are told has nothing to do with what they are, so whoever learns from them learns no bias.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shadowtime.shared.kernels import HeadTracker
from shadowtime.shared.messages import JobEnded, JobStarted

# An attempt to backfill, its candidates, and what is waited for before one has an outcome.


class FollowedCandidate(NamedTuple):
    """A candidate of an attempt, one of `among` that are followed.

    There is its raw probability, what was stated instead, and whether it passed the criterion.
    """

    job_number: int
    processors: int
    probability: float
    stated: float
    passes: bool
    among: int


class CandidateOutcome(NamedTuple):
    """Whether a candidate would have delayed the head."""

    candidate: FollowedCandidate
    delayed: bool


@dataclass(slots=True)
class Pending:
    """A candidate that has started, of a head that is ready; it is told of at `due`.

    `delayed` is True until its end shows otherwise, None if it is to run again, which leaves it unknown.
    """

    due: int
    attempt: int
    candidate: FollowedCandidate
    delayed: bool | None = True

    def ranked(self) -> "Ranked":
        """Return it behind what orders it: by time, then as they were weighed; no two are alike in that."""
        return self.due, self.attempt, self.candidate.job_number, self


Ranked = tuple[int, int, int, Pending]
"""When it is due, its attempt, its job, and itself."""


EACH_ATTEMPT = 32
"""Candidates that are followed of one attempt, evenly spread over all: the others have the same head and its delays."""

MAX_FOLLOWED = 65_536
"""Candidates whose outcome is waited for; while there are so many, attempts are passed over."""


class Outcomes:
    """Follows candidates to their outcomes, from no more than the events of the run.

    Each end of a job costs O(attempts whose head is not ready), each candidate O(log candidates) once. Memory is of
    those attempts and of at most `MAX_FOLLOWED` candidates.
    """

    def __init__(self) -> None:
        self.heads = HeadTracker()
        """Attempts whose head is not ready."""
        self.candidates: dict[int, list[FollowedCandidate]] = {}
        """Of each of those attempts."""
        self.followed = 0
        """Candidates without outcome."""
        self.running: dict[int, tuple[int, int]] = {}
        """Start and processors of each running job."""
        self.open: dict[int, int] = {}
        """Of how many attempts, whose head is not ready, a job is a candidate."""
        self.ran: dict[int, tuple[int, int]] = {}
        """Start and end of those of them that have ended."""
        self.waiting: dict[int, list[tuple[int, int, FollowedCandidate]]] = {}
        """Of waiting jobs: attempts whose head was ready, after how many seconds, and what they were in it."""
        self.pending: list[Ranked] = []
        """A heap."""
        self.runs: dict[int, list[Pending]] = {}
        """Of each running job, those that its end decides."""

    def follow(
        self, time: int, needed: int, started: Iterable[int], candidates: Sequence[tuple[int, int, float, float, bool]]
    ) -> None:
        """Take in an attempt, with the jobs that its pass has `started` before.

        Parameters
        ----------
        needed
            Processors that the running jobs must release for the head.
        candidates
            Of each, at least one, what a `FollowedCandidate` begins with.
        """
        for job_number in started:
            self.heads.start(job_number)
        among = min(len(candidates), EACH_ATTEMPT)
        keep = self.followed + among <= MAX_FOLLOWED
        attempt = self.heads.add(time, needed, keep=keep)
        if keep:
            chosen = ((index + 1) * len(candidates) // among - 1 for index in range(among))  # the last one always
            self._keep(attempt, [FollowedCandidate(*candidates[index], among) for index in chosen])

    def _keep(self, attempt: int, candidates: list[FollowedCandidate]) -> None:
        self.candidates[attempt] = candidates
        self.followed += len(candidates)
        for candidate in candidates:
            self.open[candidate.job_number] = self.open.get(candidate.job_number, 0) + 1

    def start(self, event: JobStarted) -> None:
        """Take in the start of a job."""
        number, time = event.job_number, event.time
        self.heads.start(number)
        self.running[number] = time, event.processors
        for attempt, ready_after, candidate in self.waiting.pop(number, ()):
            self._await(Pending(time + ready_after, attempt, candidate))

    def withdraw(self, job_number: int) -> None:
        """Forget a candidate that never runs: nobody will know its outcome. O(attempts)."""
        self.heads.withdraw(job_number)
        self.followed -= len(self.waiting.pop(job_number, ()))
        if self.open.pop(job_number, None) is not None:
            for candidates in self.candidates.values():
                left = [candidate for candidate in candidates if candidate.job_number != job_number]
                self.followed -= len(candidates) - len(left)
                candidates[:] = left

    def end(self, event: JobEnded) -> None:
        """Take in the end of a job."""
        if event.time > self.heads.last_end:
            self._settle()
        start, processors = self.running.pop(event.job_number)
        self.heads.end(event.time, event.job_number, processors)
        for pending in self.runs.pop(event.job_number, ()):
            if pending.due >= event.time:
                pending.delayed = None if event.requeued else False
        if event.job_number in self.open and not event.requeued:
            self.ran[event.job_number] = start, event.time

    def take_until(self, now: int) -> Iterator[CandidateOutcome]:
        """Yield the outcomes that are to be told by now, with all jobs told of that ended by now."""
        self._settle()
        while self.pending and self.pending[0][0] <= now:
            pending = heapq.heappop(self.pending)[-1]
            self.followed -= 1
            if pending.delayed is not None:
                yield CandidateOutcome(pending.candidate, pending.delayed)

    def _settle(self) -> None:
        """Find the heads that were ready at the last instant at which jobs ended: all of it has been told."""
        if self.heads.settled:
            return
        self.heads.settle()
        heads = self.heads.columns()
        done = heads.ready | heads.hopeless
        for at in np.flatnonzero(done).tolist():
            attempt = int(heads.id[at])
            for candidate in self.candidates.pop(attempt):
                if heads.ready[at]:
                    self._find(attempt, int(heads.ready_after[at]), int(heads.extra[at]), candidate)
                else:  # the machine has shrunk: nothing will show
                    self.followed -= 1

                number = candidate.job_number
                self.open[number] -= 1
                if not self.open[number]:
                    del self.open[number]
                    self.ran.pop(number, None)

        self.heads.keep(~done)

    def _find(self, attempt: int, ready_after: int, extra: int, candidate: FollowedCandidate) -> None:
        """Put a candidate, now that its head is ready with `extra` processors, where its outcome is waited for."""
        number = candidate.job_number
        if candidate.processors <= extra:
            self._tell(Pending(self.heads.last_end, attempt, candidate, delayed=False))
        elif number in self.ran:
            start, end = self.ran[number]
            due = start + ready_after
            self._tell(Pending(due, attempt, candidate, delayed=end > due))
        elif number in self.running:
            self._await(Pending(self.running[number][0] + ready_after, attempt, candidate))
        else:
            self.waiting.setdefault(number, []).append((attempt, ready_after, candidate))

    def _await(self, pending: Pending) -> None:
        """Wait for what a running job has to say of itself."""
        self._tell(pending)
        self.runs.setdefault(pending.candidate.job_number, []).append(pending)

    def _tell(self, pending: Pending) -> None:
        """Have it told of when it is due."""
        heapq.heappush(self.pending, pending.ranked())

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "heads": self.heads.snapshot(),
            "candidates": [(attempt, list(map(tuple, rows))) for attempt, rows in self.candidates.items()],
            "running": list(self.running.items()),
            "ran": list(self.ran.items()),
            "waiting": [
                (number, [(attempt, ready_after, tuple(candidate)) for attempt, ready_after, candidate in rows])
                for number, rows in self.waiting.items()
            ],
            "pending": [
                (entry.due, entry.attempt, tuple(entry.candidate), entry.delayed) for *_, entry in self.pending
            ],
        }

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.heads.restore(state["heads"])
        self.running, self.ran = ({number: tuple(row) for number, row in state[name]} for name in ("running", "ran"))
        self.waiting = {
            number: [(attempt, ready_after, FollowedCandidate(*row)) for attempt, ready_after, row in rows]
            for number, rows in state["waiting"]
        }
        self.pending = [
            Pending(due, attempt, FollowedCandidate(*candidate), delayed).ranked()
            for due, attempt, candidate, delayed in state["pending"]
        ]
        self.followed = len(self.pending) + sum(len(entries) for entries in self.waiting.values())
        self.candidates, self.open, self.runs = {}, {}, {}
        for attempt, rows in state["candidates"]:
            self._keep(attempt, [FollowedCandidate(*row) for row in rows])
        for *_, pending in self.pending:
            if pending.candidate.job_number in self.running:
                self.runs.setdefault(pending.candidate.job_number, []).append(pending)
