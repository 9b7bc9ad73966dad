"""Calibration of backfill decisions: whether candidates delay the head as often as their probabilities state.

Every evaluated candidate is followed, whether it was started or not. The old jobs are the jobs that ran at the
evaluation. The outcome is known at the latest once the candidate and the old jobs have ended. It depends on the first
instant at which the old jobs have released enough processors for the head. The candidate would have delayed the head if
two conditions hold at that instant. The old jobs have not released enough for the head and the candidate together. And
the candidate, if started at the evaluation, would still run (docs/algorithms.md#calibration).

The scheduler never reads these outcomes: it follows some candidates itself
(`services.scheduler.probabilistic.outcomes`).
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from shadowtime.services.scoreboard.scores.reliability import ReliabilityTable
from shadowtime.shared.kernels import HeadTracker
from shadowtime.shared.messages import CalibrationScores, Decided, Evaluated, JobSubmitted

MAX_FOLLOWED = 2_500_000
"""Maximum number of followed candidates without outcome, 56 bytes each. Further candidates count as open. The
maximum over the logs of the archive is 1,977,180."""

NOT_STATED = -1.0
"""Placeholder for a missing recalibrated probability."""

CHUNK = 65_536
"""Number of new candidates that are kept as tuples before they are put together into an array."""


class Calibration:
    """Reliability of delay probabilities, from the outcomes of all evaluated candidates.

    An attempt is a set of candidates that one pass evaluated beside the same running jobs. Outcomes are found in
    batches: a batch begins when there are as many new candidates as the last batch left without outcome. This costs
    O(1) amortised for each candidate. Each end of a job costs O(attempts that are open or have candidates without
    outcome). Memory is bounded by these attempts and candidates. Changes of the machine's size between evaluation and
    outcome are ignored.
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
        """Table of the recalibrated probabilities; empty if the policy does not recalibrate."""
        self.heads = HeadTracker()
        self.candidates = np.empty(0, self.CANDIDATE)
        self.new_candidates: list[tuple[int, int, int, int, float, float, float]] = []
        self.chunks: list[npt.NDArray[np.void]] = []
        """Arrays of candidates that are newer than `candidates` and older than `new_candidates`."""
        self.fresh = 0
        """Number of candidates in `chunks`."""
        self.passed_over = 0
        """Number of candidates beyond `MAX_FOLLOWED`, and so not followed, since outcomes were last found."""
        self.run_times: dict[int, int] = {}
        """Run times of ended jobs that have candidates without outcome."""
        self.followed: set[int] = set()
        """Jobs with candidates without outcome."""
        self.unknowable = 0
        """Number of candidates that never get an outcome. Either too many others were followed, or they left without
        running, or their head could not start even when all jobs that ran at the evaluation had ended."""

    def decide(self, decided: Decided, waiting: Mapping[int, JobSubmitted], *, obeyed: bool) -> None:
        """Add the candidates of a pass. `waiting` has the jobs that waited at that time.

        If decisions are only advice (not `obeyed`), only evaluations before the first start of a pass count. Later
        evaluations assume that the started jobs run, although they do not.
        """
        evaluated = [candidates for candidates in decided.evaluated if obeyed or candidates.after == 0]
        starts = iter(decided.starts if obeyed else ())
        started = 0
        for entry in self._with_room(evaluated):
            for start in islice(starts, entry.after - started):
                self.heads.start(start.job_number)
            started = entry.after
            self._add(decided.time, entry, waiting)

        for start in starts:
            self.heads.start(start.job_number)
        if len(self.new_candidates) > CHUNK:
            self._put_together()
        if self.passed_over + self.fresh + len(self.new_candidates) > max(len(self.candidates), self.MIN_BATCH):
            self._find_outcomes()

    def _add(self, time: int, entry: Evaluated, waiting: Mapping[int, JobSubmitted]) -> None:
        self.followed.update(entry.job_numbers)
        attempt = self.heads.add(time, entry.needed)
        last = len(entry.job_numbers) - 1 if entry.accepted else -1
        for row, job_number in enumerate(entry.job_numbers):
            candidate = attempt, job_number, waiting[job_number].requested_processors, int(row == last)
            mended = NOT_STATED if entry.recalibrated is None else entry.recalibrated[row]
            self.new_candidates.append((*candidate, entry.probabilities[row], entry.bounds[row], mended))

    def start(self, job_number: int) -> None:
        """Record the start of a job. It has no effect if the decision to start it was recorded before."""
        self.heads.start(job_number)

    def withdraw(self, job_number: int) -> None:
        """Drop the candidates of a job that leaves without running: their outcomes stay unknown. O(candidates)."""
        self.heads.withdraw(job_number)
        if job_number in self.followed:
            self._put_together()
            candidates = np.concatenate([self.candidates, *self.chunks])
            self.chunks, self.fresh = [], 0
            left = candidates["job_number"] != job_number
            self.unknowable += int((~left).sum())
            self.candidates = candidates[left]
            self.followed.discard(job_number)

    def end(self, time: int, job_number: int, processors: int, run_time: int | None) -> None:
        """Record the end of a job. `run_time` is None if it will run again."""
        if run_time is not None and job_number in self.followed:
            self.run_times[job_number] = run_time
        self.heads.end(time, job_number, processors)

    def scores(self) -> CalibrationScores | None:
        """Return the calibration as known by now. Return None if no candidate was ever evaluated."""
        if not self.heads.next_attempt:
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

    def _with_room(self, evaluated: list[Evaluated]) -> list[Evaluated]:
        """Return the evaluations that fit below `MAX_FOLLOWED`. The outcomes of all other evaluations stay open."""
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
        """Move the new candidates to an array, which needs only a fifth of their memory."""
        self.chunks.append(np.array(self.new_candidates, self.CANDIDATE))
        self.fresh += len(self.new_candidates)
        self.new_candidates.clear()

    def _find_outcomes(self) -> None:
        """Score the candidates with known outcomes. Forget state that no other candidate needs."""
        self.heads.mark_ready()
        self._put_together()
        candidates = np.concatenate([self.candidates, *self.chunks])
        self.chunks, self.fresh, self.passed_over = [], 0, 0
        heads = self.heads.columns()
        attempt = np.searchsorted(heads.id, candidates["attempt"])
        numbers = np.array(sorted(self.run_times), dtype=np.int64)
        run_times = np.array([self.run_times[number] for number in numbers.tolist()] + [0], dtype=np.int64)
        at = np.searchsorted(numbers, candidates["job_number"])
        ended = np.append(numbers, -1)[at] == candidates["job_number"]
        ready = heads.ready[attempt]
        enough = candidates["processors"] <= heads.extra[attempt]
        known = ready & (enough | ended)
        delayed = (~enough & (run_times[at] > heads.ready_after[attempt]))[known]
        scored = candidates[known]
        self.exact.add(scored["exact"], scored["started"], delayed)
        self.bound.add(scored["bound"], scored["started"], delayed)
        mended = scored["recalibrated"] >= 0.0
        self.recalibrated.add(scored["recalibrated"][mended], scored["started"][mended], delayed[mended])
        never = heads.hopeless[attempt]
        self.unknowable += int(never.sum())
        self.candidates = candidates[~known & ~never]
        self.heads.keep(np.isin(heads.id, np.unique(self.candidates["attempt"])))
        self.followed = set(self.candidates["job_number"].tolist())
        self.run_times = {number: run_time for number, run_time in self.run_times.items() if number in self.followed}

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        chunks = [row for chunk in self.chunks for row in chunk.tolist()]
        return {
            "heads": self.heads.snapshot(),
            "unknowable": self.unknowable,
            "passed_over": self.passed_over,
            "new_candidates": chunks + self.new_candidates,
            "exact": self.exact.snapshot(),
            "bound": self.bound.snapshot(),
            "recalibrated": self.recalibrated.snapshot(),
            "candidates": self.candidates.tolist(),
            "run_times": list(self.run_times.items()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.exact.restore(state["exact"])
        self.bound.restore(state["bound"])
        self.recalibrated.restore(state["recalibrated"])
        self.heads.restore(state["heads"])
        self.candidates = np.array([tuple(row) for row in state["candidates"]], self.CANDIDATE)
        self.new_candidates = [tuple(row) for row in state["new_candidates"]]
        self.chunks, self.fresh = [], 0
        self.passed_over, self.unknowable = state["passed_over"], state["unknowable"]
        self.followed = {*self.candidates["job_number"].tolist(), *(row[1] for row in self.new_candidates)}
        self.run_times = dict(state["run_times"])
