"""Outcomes of backfilling candidates: whether each candidate would have delayed the head.

An attempt is a pass that evaluates candidates. Its head is ready when the jobs that ran at the attempt have released
enough processors for it. A candidate would have delayed the head if two conditions hold. First, when the head was
ready, these jobs had not released enough for the head and the candidate together. Second, the candidate ran for longer
than the time from the attempt until the head was ready. The candidate's own start does not matter
(docs/algorithms.md#calibration).

If the released processors sufficed for both jobs, the outcome is known at once. Otherwise, the outcome is due when the
same time has passed since the candidate's own start. An outcome is not emitted earlier, even if the candidate ends
earlier. So the order in which outcomes are emitted does not depend on their values, and learning from them has no bias.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shadowtime.shared.kernels import HeadTracker
from shadowtime.shared.messages import JobEnded, JobStarted

# An attempt to backfill, its candidates, and their pending outcomes.


class FollowedCandidate(NamedTuple):
    """A followed candidate of an attempt to backfill.

    `probability` is its raw probability of delay, `stated` the recalibrated one. `passes` is whether it passed the
    criterion. `among` is the number of followed candidates of the attempt.
    """

    job_number: int
    processors: int
    probability: float
    stated: float
    passes: bool
    among: int


class CandidateOutcome(NamedTuple):
    """A candidate, and whether it would have delayed the head."""

    candidate: FollowedCandidate
    delayed: bool


@dataclass(slots=True)
class Pending:
    """The outcome of a candidate whose head is ready; it is emitted at `due`.

    `delayed` is True until the candidate's end shows otherwise. It is None if the candidate was requeued: then the
    outcome stays unknown.
    """

    due: int
    attempt: int
    candidate: FollowedCandidate
    delayed: bool | None = True

    def ranked(self) -> "Ranked":
        """Return the heap entry of this outcome: due time, attempt and job number, a unique key, then itself."""
        return self.due, self.attempt, self.candidate.job_number, self


Ranked = tuple[int, int, int, Pending]
"""Due time, attempt, job number, and the outcome."""


EACH_ATTEMPT = 32
"""Maximum number of followed candidates of one attempt, evenly spread over all its candidates, which have the same
head."""

MAX_FOLLOWED = 65_536
"""Maximum number of candidates that are followed at a time. An attempt that would exceed this number is not
followed."""


class Outcomes:
    """Tracker of candidates up to their outcomes, from the events of the run alone.

    Each end of a job costs O(attempts whose head is not ready), each candidate O(log candidates) once. Memory is
    bounded by those attempts and by `MAX_FOLLOWED` candidates.
    """

    def __init__(self) -> None:
        self.heads = HeadTracker()
        """Attempts whose head is not ready."""
        self.candidates: dict[int, list[FollowedCandidate]] = {}
        """Followed candidates of each attempt whose head is not ready."""
        self.followed = 0
        """Number of followed candidates without an outcome."""
        self.running: dict[int, tuple[int, int]] = {}
        """Start and processors of each running job."""
        self.open: dict[int, int] = {}
        """Number of attempts that follow a job as a candidate and whose head is not ready, by job number."""
        self.ran: dict[int, tuple[int, int]] = {}
        """Start and end of each job in `open` that has ended, by job number."""
        self.waiting: dict[int, list[tuple[int, int, FollowedCandidate]]] = {}
        """By waiting job: attempts whose head is ready, seconds until it was ready, and the job as a candidate."""
        self.pending: list[Ranked] = []
        """Heap of outcomes that are not emitted yet."""
        self.runs: dict[int, list[Pending]] = {}
        """By running job, the outcomes that its end decides."""

    def follow(
        self, time: int, needed: int, started: Iterable[int], candidates: Sequence[tuple[int, int, float, float, bool]]
    ) -> None:
        """Record an attempt, and the jobs that its pass has `started` before.

        Parameters
        ----------
        needed
            Processors that the running jobs must release for the head.
        candidates
            The fields of a `FollowedCandidate` except `among`, for each candidate; at least one candidate.
        """
        for job_number in started:
            self.heads.start(job_number)
        among = min(len(candidates), EACH_ATTEMPT)
        keep = self.followed + among <= MAX_FOLLOWED
        attempt = self.heads.add(time, needed, keep=keep)
        if keep:
            chosen = ((index + 1) * len(candidates) // among - 1 for index in range(among))  # the last one, too
            self._keep(attempt, [FollowedCandidate(*candidates[index], among) for index in chosen])

    def _keep(self, attempt: int, candidates: list[FollowedCandidate]) -> None:
        self.candidates[attempt] = candidates
        self.followed += len(candidates)
        for candidate in candidates:
            self.open[candidate.job_number] = self.open.get(candidate.job_number, 0) + 1

    def start(self, event: JobStarted) -> None:
        """Record the start of a job."""
        number, time = event.job_number, event.time
        self.heads.start(number)
        self.running[number] = time, event.processors
        for attempt, ready_after, candidate in self.waiting.pop(number, ()):
            self._await(Pending(time + ready_after, attempt, candidate))

    def withdraw(self, job_number: int) -> None:
        """Drop a candidate that was withdrawn: it never runs, so its outcome stays unknown. O(attempts)."""
        self.heads.withdraw(job_number)
        self.followed -= len(self.waiting.pop(job_number, ()))
        if self.open.pop(job_number, None) is not None:
            for candidates in self.candidates.values():
                left = [candidate for candidate in candidates if candidate.job_number != job_number]
                self.followed -= len(candidates) - len(left)
                candidates[:] = left

    def end(self, event: JobEnded) -> None:
        """Record the end of a job."""
        if event.time > self.heads.last_end:
            self._resolve_heads()
        start, processors = self.running.pop(event.job_number)
        self.heads.end(event.time, event.job_number, processors)
        for pending in self.runs.pop(event.job_number, ()):
            if pending.due >= event.time:
                pending.delayed = None if event.requeued else False
        if event.job_number in self.open and not event.requeued:
            self.ran[event.job_number] = start, event.time

    def take_until(self, now: int) -> Iterator[CandidateOutcome]:
        """Yield the outcomes that are due by now. All jobs that ended by now must have been recorded."""
        self._resolve_heads()
        while self.pending and self.pending[0][0] <= now:
            pending = heapq.heappop(self.pending)[-1]
            self.followed -= 1
            if pending.delayed is not None:
                yield CandidateOutcome(pending.candidate, pending.delayed)

    def _resolve_heads(self) -> None:
        """Find the heads that became ready at the last instant with ends, and the outcomes of their candidates.

        All ends of that instant must have been recorded.
        """
        if self.heads.marked:
            return
        self.heads.mark_ready()
        heads = self.heads.columns()
        done = heads.ready | heads.hopeless
        if not done.any():
            return
        for at in np.flatnonzero(done).tolist():
            attempt = int(heads.id[at])
            for candidate in self.candidates.pop(attempt):
                if heads.ready[at]:
                    self._find(attempt, int(heads.ready_after[at]), int(heads.extra[at]), candidate)
                else:  # the machine has shrunk: the outcome stays unknown
                    self.followed -= 1

                number = candidate.job_number
                self.open[number] -= 1
                if not self.open[number]:
                    del self.open[number]
                    self.ran.pop(number, None)

        self.heads.keep(~done)

    def _find(self, attempt: int, ready_after: int, extra: int, candidate: FollowedCandidate) -> None:
        """Queue the outcome of a candidate, now that its head is ready with `extra` processors to spare."""
        number = candidate.job_number
        if candidate.processors <= extra:
            self._resolve(Pending(self.heads.last_end, attempt, candidate, delayed=False))
        elif number in self.ran:
            start, end = self.ran[number]
            due = start + ready_after
            self._resolve(Pending(due, attempt, candidate, delayed=end > due))
        elif number in self.running:
            self._await(Pending(self.running[number][0] + ready_after, attempt, candidate))
        else:
            self.waiting.setdefault(number, []).append((attempt, ready_after, candidate))

    def _await(self, pending: Pending) -> None:
        """Queue the outcome of a running job, which its end may still change."""
        self._resolve(pending)
        self.runs.setdefault(pending.candidate.job_number, []).append(pending)

    def _resolve(self, pending: Pending) -> None:
        """Queue an outcome to be emitted when it is due."""
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
        """Restore the state that `snapshot` returned."""
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
