"""Calibration of backfill decisions: whether candidates delay the head as often as their probabilities say.

A candidate that was evaluated, started or not, has an outcome once the jobs that ran at that moment and the candidate
itself have ended: it would have delayed the head if, at the first instant at which those jobs had released enough for
the head, they had not released enough for both, and the candidate, started then, would still have run
(docs/algorithms.md#calibration). The scheduler never reads what is found here: it follows some candidates by itself
(`services.scheduler.probabilistic.outcomes`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from shadowtime.services.scoreboard.scores.reliability import ReliabilityTable
from shadowtime.shared.kernels import IntegerTable, kernel
from shadowtime.shared.messages import CalibrationScores, Decided, Evaluated, JobSubmitted

# What running jobs have released for the heads of attempts to backfill, and which heads were ready when.

ID, TIME, NEEDED, RELEASED, READY_AFTER = range(5)
"""Columns of attempts."""


@kernel
def settle(attempts: IntegerTable, last_end: int) -> None:
    """Note, in place, which heads could have started at the last instant at which jobs ended. O(attempts)."""
    for attempt in attempts:
        if attempt[READY_AFTER] < 0 and attempt[RELEASED] >= attempt[NEEDED]:
            attempt[READY_AFTER] = last_end - attempt[TIME]


@kernel
def release(attempts: IntegerTable, seen_by: int, processors: int) -> None:
    """Add, in place, what a job released to the attempts that saw it running and whose heads are not ready."""
    for at in range(len(attempts) - 1, -1, -1):  # in order of their ids
        if attempts[at, ID] < seen_by:
            break
        if attempts[at, READY_AFTER] < 0:
            attempts[at, RELEASED] += processors


MAX_FOLLOWED = 2_500_000
"""Candidates without outcome that are followed at once, 56 bytes each; those that come while there are so many count as
open. The most of any log of the archive is 1,977,180."""

NOT_STATED = -1.0
"""In the place of a recalibrated probability where there is none."""

CHUNK = 65_536
"""New candidates that are kept one by one."""


class Calibration:
    """Follows every evaluated candidate to its outcome.

    Candidates that were evaluated together, in one pass beside the same running jobs, are an attempt. Outcomes are
    found in batches, once as many candidates have come as were left over from the last batch: O(1) amortised for each.
    Each end of a job costs O(attempts that are open or have candidates without outcome); memory is of those attempts
    and candidates. A change of the machine's size between evaluation and outcome is left out of account.
    """

    CANDIDATE = np.dtype(
        [
            *((name, np.int64) for name in ("attempt", "job_number", "processors", "started")),
            *((name, np.float64) for name in ("exact", "bound", "recalibrated")),
        ]
    )
    MIN_BATCH = 1024

    def __init__(self) -> None:
        self.exact = ReliabilityTable()
        self.bound = ReliabilityTable()
        self.recalibrated = ReliabilityTable()
        """Empty where nothing is recalibrated."""
        self.attempts: IntegerTable = np.empty((0, READY_AFTER + 1), np.int64)
        self.next_attempt = 0
        self.candidates = np.empty(0, self.CANDIDATE)
        self.new_candidates: list[tuple[int, int, int, int, float, float, float]] = []
        self.chunks: list[npt.NDArray[np.void]] = []
        """Candidates that came between the others and the new ones."""
        self.fresh = 0
        """How many those are."""
        self.passed_over = 0
        """Candidates that are not followed since outcomes were found last."""
        self.new_attempts: list[tuple[int, int, int, int, int]] = []
        self.seen_by: dict[int, int] = {}
        """Of each running job, the first attempt that counts it among the running ones."""
        self.run_times: dict[int, int] = {}
        """Of jobs that have ended and have candidates without outcome."""
        self.followed: set[int] = set()
        """Jobs with candidates without outcome."""
        self.last_end = 0
        self.unknowable = 0
        """Candidates of heads that could not start when all jobs that ran then had ended: no outcome."""

    def decide(self, decided: Decided, waiting: Mapping[int, JobSubmitted], *, obeyed: bool) -> None:
        """Take in the candidates of a pass, and the jobs that waited at it.

        Where decisions are advice only (not `obeyed`), just what came before the first start of a pass is about jobs
        that really run.
        """
        if not decided.evaluated and not len(self.attempts):  # as always where a policy weighs nothing
            if obeyed:
                self.seen_by.update(dict.fromkeys([start.job_number for start in decided.starts], self.next_attempt))
            return
        kept = self._with_room([candidate for candidate in decided.evaluated if obeyed or candidate.after == 0])
        if obeyed:
            for number, start in enumerate(decided.starts):
                before = sum(candidate.after <= number for candidate in kept)
                self.seen_by[start.job_number] = self.next_attempt + before
        for entry in kept:
            self.followed.update(entry.job_numbers)
            self.new_attempts.append((self.next_attempt, decided.time, entry.needed, 0, -1))
            last = len(entry.job_numbers) - 1 if entry.accepted else -1
            for row, job_number in enumerate(entry.job_numbers):
                processors = waiting[job_number].requested_processors
                candidate = self.next_attempt, job_number, processors, int(row == last)
                mended = NOT_STATED if entry.recalibrated is None else entry.recalibrated[row]
                self.new_candidates.append((*candidate, entry.probabilities[row], entry.bounds[row], mended))
            self.next_attempt += 1
        if len(self.new_candidates) > CHUNK:
            self._put_together()
        if self.passed_over + self.fresh + len(self.new_candidates) > max(len(self.candidates), self.MIN_BATCH):
            self._find_outcomes()

    def start(self, job_number: int) -> None:
        """Take in the start of a job; if a decision brought it about, that has been noted then."""
        self.seen_by.setdefault(job_number, self.next_attempt)

    def withdraw(self, job_number: int) -> None:
        """Give up the candidates that never run: nobody will know their outcome. O(candidates)."""
        if job_number in self.followed:
            self._put_together()
            candidates = np.concatenate([self.candidates, *self.chunks])
            self.chunks, self.fresh = [], 0
            left = candidates["job_number"] != job_number
            self.unknowable += int((~left).sum())
            self.candidates = candidates[left]
            self.followed.discard(job_number)

    def end(self, time: int, job_number: int, processors: int, run_time: int | None) -> None:
        """Take in the end of a job; `run_time` is None if it will run again."""
        if time > self.last_end:
            self._settle()
        self.last_end = time
        seen_by = self.seen_by.pop(job_number)
        if run_time is not None and job_number in self.followed:
            self.run_times[job_number] = run_time
        self._merge_attempts()
        release(self.attempts, seen_by, processors)

    def scores(self) -> CalibrationScores | None:
        """Return what is known by now; None if no candidate was ever evaluated."""
        if not self.next_attempt:
            return None
        self._find_outcomes()
        tables = {"exact": self.exact, "bound": self.bound}
        if self.recalibrated.candidates.any():
            tables["recalibrated"] = self.recalibrated
        rows = (("", None), ("_started", 1), ("_not_started", 0))
        return CalibrationScores(
            open_candidates=len(self.candidates) + self.unknowable,
            **{name + which: table.reliability(row) for name, table in tables.items() for which, row in rows},
        )

    def _merge_attempts(self) -> None:
        if self.new_attempts:
            self.attempts = np.concatenate([self.attempts, np.array(self.new_attempts, np.int64)])
            self.new_attempts.clear()

    def _with_room(self, evaluated: list[Evaluated]) -> list[Evaluated]:
        """Return those whose candidates can be followed; the others' outcomes stay open."""
        room = MAX_FOLLOWED - len(self.candidates) - self.fresh - len(self.new_candidates)
        kept = []
        for candidate in evaluated:
            count = len(candidate.job_numbers)
            if count <= room:
                kept.append(candidate)
                room -= count
            else:
                self.passed_over += count
                self.unknowable += count
        return kept

    def _put_together(self) -> None:
        """Turn new candidates into an array, which takes a fifth of the memory."""
        self.chunks.append(np.array(self.new_candidates, self.CANDIDATE))
        self.fresh += len(self.new_candidates)
        self.new_candidates.clear()

    def _settle(self) -> None:
        """Note which heads could have started at the last instant at which jobs ended: all of it is known now."""
        settle(self.attempts, self.last_end)

    def _find_outcomes(self) -> None:
        """Score the candidates whose outcome is known by now, and forget whatever none of the others needs."""
        self._settle()
        self._merge_attempts()
        self._put_together()
        candidates = np.concatenate([self.candidates, *self.chunks])
        self.chunks, self.fresh, self.passed_over = [], 0, 0
        attempts = self.attempts[np.searchsorted(self.attempts[:, ID], candidates["attempt"])]
        numbers = np.array(sorted(self.run_times), dtype=np.int64)
        run_times = np.array([self.run_times[number] for number in numbers.tolist()] + [0], dtype=np.int64)
        at = np.searchsorted(numbers, candidates["job_number"])
        ended = np.append(numbers, -1)[at] == candidates["job_number"]
        ready = attempts[:, READY_AFTER] >= 0
        enough = attempts[:, RELEASED] >= attempts[:, NEEDED] + candidates["processors"]
        known = ready & (enough | ended)
        delayed = (~enough & (run_times[at] > attempts[:, READY_AFTER]))[known]
        scored = candidates[known]
        self.exact.add(scored["exact"], scored["started"], delayed)
        self.bound.add(scored["bound"], scored["started"], delayed)
        mended = scored["recalibrated"] >= 0.0
        self.recalibrated.add(scored["recalibrated"][mended], scored["started"][mended], delayed[mended])
        oldest = min(self.seen_by.values(), default=self.next_attempt)
        never = ~ready & (attempts[:, ID] < oldest)  # all that ran then has ended, and the head could not start
        self.unknowable += int((never & ~known).sum())
        self.candidates = candidates[~known & ~never]
        waiting = np.unique(self.candidates["attempt"])
        self.attempts = self.attempts[np.isin(self.attempts[:, ID], waiting)]
        self.followed = set(self.candidates["job_number"].tolist())
        self.run_times = {number: run_time for number, run_time in self.run_times.items() if number in self.followed}

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        plain = ("next_attempt", "new_attempts", "last_end", "unknowable", "passed_over")
        chunks = [row for chunk in self.chunks for row in chunk.tolist()]
        return {name: getattr(self, name) for name in plain} | {
            "new_candidates": chunks + self.new_candidates,
            "exact": self.exact.snapshot(),
            "bound": self.bound.snapshot(),
            "recalibrated": self.recalibrated.snapshot(),
            "attempts": self.attempts.tolist(),
            "candidates": self.candidates.tolist(),
            "seen_by": list(self.seen_by.items()),
            "run_times": list(self.run_times.items()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        self.exact.restore(state["exact"])
        self.bound.restore(state["bound"])
        self.recalibrated.restore(state["recalibrated"])
        self.attempts = np.array(state["attempts"], np.int64).reshape(-1, READY_AFTER + 1)
        self.candidates = np.array([tuple(row) for row in state["candidates"]], self.CANDIDATE)
        self.new_candidates = [tuple(row) for row in state["new_candidates"]]
        self.chunks, self.fresh, self.passed_over = [], 0, state["passed_over"]
        self.new_attempts = [tuple(row) for row in state["new_attempts"]]
        self.next_attempt, self.last_end, self.unknowable = (
            state[name] for name in ("next_attempt", "last_end", "unknowable")
        )
        self.followed = {*self.candidates["job_number"].tolist(), *(row[1] for row in self.new_candidates)}
        self.seen_by, self.run_times = dict(state["seen_by"]), dict(state["run_times"])
