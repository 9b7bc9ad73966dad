"""Use of the processors that the plan of a pass leaves idle: trials, then widening, both in order of planning.

The rules: docs/algorithms.md#speculation and docs/algorithms.md#widening.
"""

from collections.abc import Iterator
from typing import NamedTuple

from shadowtime.services.scheduler.kernels import EACH_STEP, FIRST, FOREVER, PlannedStarts, take
from shadowtime.services.scheduler.policies.shapes import JobShape, Shapes
from shadowtime.services.scheduler.policies.trial_runs import (
    SpeculativeRun,
    Suspended,
    TrialJob,
    Trials,
    attempt,
    hole_of,
    worthwhile,
)
from shadowtime.services.scheduler.tables import NEVER, UNKNOWN, Queue
from shadowtime.services.scheduler.work_limits import PLANNED
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions import EDGES
from shadowtime.shared.kernels import Integers, IntegerTable, has_room
from shadowtime.shared.messages import CutShort, Reserved, Speculated, Start

EACH_JOB = 10_000
"""Fixed cost of examining one job, in steps over the profile."""


class TrialRule(NamedTuple):
    """Rule by which jobs get trials on idle processors."""

    speculate: float | str
    """Least length of a hole as a share of the planned run time; `expected` to decide by the expected gain; or `no`."""
    came_true: float
    """Actual waits as a share of the waits foreseen by the plan. It scales the wait that a trial may save."""
    test_runs: bool
    """Whether jobs with long requests get test runs."""


class IdleProcessors:
    """Use of the idle processors in one pass, after its jobs are planned.

    Parameters
    ----------
    queue, estimates
        The waiting jobs, and their planned run times on the requested processors, in seconds.
    planned
        The plan. Its profile is changed in place.
    reservations
        Reservations of the waiting jobs; None without guarantees. A trial may then overlap the planned run of its job.
    free
        Idle amount of each resource after the planned starts of this pass. It is changed in place.
    """

    def __init__(
        self,
        queue: Queue,
        estimates: Integers,
        planned: PlannedStarts,
        reservations: IntegerTable | None,
        free: Integers,
        shapes: Shapes,
        trials: Trials,
        rule: TrialRule,
    ) -> None:
        self.queue = queue
        self.sizes = queue.sizes
        self.estimates = estimates
        self.planned = planned
        self.reservations = reservations
        self.free = free
        self.steps = planned.steps
        self.now = int(planned.times[0])
        self.shapes = shapes
        self.trials = trials
        self.rule = rule
        self.work = 0

    def tried(self, rows: Integers) -> Iterator[Start | CutShort]:
        """Yield the trials of waiting jobs in the holes of the plan, in order. A trial has the first shape of its job.

        Jobs are examined for at most `work_limits.PLANNED` steps. If this limit is reached, the last item is a
        `CutShort` with the number of jobs left.
        """
        if self.rule.speculate == "no" and not self.rule.test_runs:
            return
        for looked_at, row in enumerate(rows.tolist()):
            if self.free[0] <= 0:
                return
            if self.work > PLANNED:
                yield CutShort(by="depth", left=len(rows) - looked_at)
                return
            self.work += EACH_JOB
            number = int(self.queue.job_number[row])
            known = self.trials.jobs.get(number)
            every = self.shapes.of(number, int(self.queue.processors[row]))
            size = self._size(row, every[0])
            if not has_room(self.free, size) or known is None or not known.restartable:
                continue
            at, place = int(self.planned.starts[row]), every[self.planned.shapes[row]]
            run_time = place.seconds(int(self.estimates[row]))
            planned = at < FOREVER
            if planned and self.reservations is None:
                self._take(at, run_time, -self._size(row, place))
            self.work += self.steps
            hole = hole_of(self.planned.times, self.planned.free, self.steps, size)
            if planned and self.reservations is not None:
                hole = min(hole, at - self.now)  # the reserved start must not pass during the trial
            trial = self._attempt(row, every[0], known, hole)
            if trial is not None and trial.seconds < min(every[0].seconds(known.requested_time), MAX_DURATION):
                self._take(self.now, trial.seconds, size)
                self.free -= size
                kept = None
                if planned and self.reservations is not None:
                    guaranteed = int(self.reservations[FIRST, row])
                    size_there = tuple(self._size(row, place).tolist())
                    kept = Suspended(at, size_there, run_time, guaranteed, int(self.planned.shapes[row]))

                self.trials.decided(number, trial, kept)
                reason = Speculated(
                    hole=hole if hole <= MAX_DURATION else None, attempt=known.attempts + 1, test_run=trial.test_run
                )
                yield Start(job_number=number, processors=every[0].processors, limit=trial.seconds, reason=reason)
            elif planned and self.reservations is None:
                self._take(at, run_time, self._size(row, place))

    def started(self, row: int) -> Start:
        """Return the start of a job that the plan starts now. A moldable job may be widened into idle processors."""
        number, estimate = int(self.queue.job_number[row]), int(self.estimates[row])
        shape = self.shapes.of(number, int(self.queue.processors[row]))[self.planned.shapes[row]]
        for wider in self.shapes.wider(number, shape):
            if wider.processors - shape.processors > self.free[0] or self.work > PLANNED:
                break
            self._take(self.now, shape.seconds(estimate), -self._size(row, shape))
            hole = hole_of(self.planned.times, self.planned.free, self.steps, self._size(row, wider))
            better = wider if hole >= wider.seconds(estimate) else shape
            self._take(self.now, better.seconds(estimate), self._size(row, better))
            if better is shape:
                break
            self.free[0] -= wider.processors - shape.processors
            shape = wider

        limit = shape.seconds(int(self.queue.requested_time[row]))
        first = FOREVER if self.reservations is None else int(self.reservations[FIRST, row])
        return Start(
            job_number=number,
            processors=shape.processors,
            limit=None if limit >= NEVER else limit,
            reason=Reserved(guaranteed_start=first if first - self.now <= MAX_DURATION else None),
        )

    def _attempt(self, row: int, shape: JobShape, known: TrialJob, hole: int) -> SpeculativeRun | None:
        """Return the trial of a job in a hole of the plan, or None if it gets none."""
        run_time = shape.seconds(int(self.estimates[row]))
        share = 0.0
        if self.rule.speculate == "expected":
            slot = int(self.queue.slot[row])
            if slot != UNKNOWN:
                saved = int(min(int(self.planned.starts[row]) - self.now, NEVER) * self.rule.came_true)
                masses = self.queue.histograms.masses[slot]
                own = shape.own_seconds(min(hole, NEVER)), shape.own_seconds(known.last)
                seconds = worthwhile(own[0], saved, own[1], known.requested_time, masses, EDGES)
                if seconds:
                    return SpeculativeRun(shape.seconds(seconds), test_run=False)
        elif self.rule.speculate != "no":
            share = float(self.rule.speculate)

        return attempt(
            hole,
            run_time,
            known.requested_time,
            self.trials.least(known, run_time, share),
            speculate=share > 0,
            test=self.rule.test_runs and not known.tested,
        )

    def _size(self, row: int, shape: JobShape) -> Integers:
        """Return the amount of each resource that a job takes in this shape."""
        size: Integers = self.sizes[row].copy()
        size[0] = shape.processors
        return size

    def _take(self, start: int, seconds: int, size: Integers) -> None:
        """Subtract `size` from the profile for some seconds; a negative size is added back."""
        times, free = self.planned.times, self.planned.free
        self.work += EACH_STEP * self.steps
        self.steps = take(times, free, self.steps, start, start + seconds, size)
