"""Conservative backfilling: every waiting job has a place in the plan, in one of several orders."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import Field

from services.scheduler.expected_end import Column, expected_ends
from services.scheduler.job_table import Queue, Running
from services.scheduler.orders import Order, ranked
from services.scheduler.policy import Policy, start
from services.scheduler.profile import FOREVER, begin, earliest, merged, take
from services.scheduler.speculation import attempt, hole_of, planned_profile
from services.scheduler.trials import Suspended, Trials
from shared.chance import key_of
from shared.events import (
    CapacityChanged,
    ClusterOpened,
    Event,
    JobEnded,
    JobStarted,
    Start,
)
from shared.kernel import kernel
from shared.plan_reasons import Reserved, Speculated
from shared.spec import SpecKeys

UNPLANNED = -1


@kernel(
    "int64[::1](int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], boolean, boolean)"
)
def plan(
    now: int,
    idle: int,
    running_processors: Column,
    running_ends: Column,
    processors: Column,
    run_times: Column,
    promised: Column,
    order: Column,
    compress: bool,
    keep: bool,
) -> Column:
    """Return when each waiting job starts by the plan, in seconds. O(jobs * (jobs + running jobs)).

    Jobs with a promise keep it, earliest first; one whose promise cannot be kept (a running job has outlived what was
    expected of it, or the machine has shrunk) is planned anew. With `compress` each then moves to the earliest time at
    which it fits, in order; that is never later. Then jobs without a promise are planned, in order, each at the
    earliest time at which it disturbs none before it.

    Parameters
    ----------
    processors, run_times, promised, order
        Of each waiting job: processors, expected run time, promised start or `UNPLANNED`; rows in order of planning.
    keep
        Whether promises are kept at all. If not, what cannot start now is not planned further once no processor that
        is free now is left: nothing of the plan outlasts the pass.
    """
    waiting = len(processors)
    times = np.empty(2 * waiting + len(running_ends) + 2, dtype=np.int64)
    free = np.empty_like(times)
    steps = begin(times, free, now, idle, running_processors, running_ends)
    starts = np.full(waiting, UNPLANNED)
    if keep:
        for job in np.argsort(promised, kind="mergesort"):
            at = promised[job]
            if at < now:
                continue
            fits = True
            for step in range(steps):
                later = times[step + 1] if step + 1 < steps else FOREVER
                if later > at and times[step] < at + run_times[job] and free[step] < processors[job]:
                    fits = False
                    break
            if fits:
                starts[job] = at
                steps = take(times, free, steps, at, at + run_times[job], processors[job])
        if compress:
            for job in order:
                at = starts[job]
                if at > now:
                    steps = take(times, free, steps, at, at + run_times[job], -processors[job])
                    starts[job] = earliest(times, free, steps, processors[job], run_times[job], at)
                    steps = take(times, free, steps, starts[job], starts[job] + run_times[job], processors[job])
                    steps = merged(times, free, steps)
    left = free[0]
    for job in order:
        if starts[job] != UNPLANNED:
            continue
        if not keep and left <= 0:
            break
        at = earliest(times, free, steps, processors[job], run_times[job], FOREVER)
        starts[job] = at
        if at < FOREVER:
            steps = take(times, free, steps, at, at + run_times[job], processors[job])
        if at == now:
            left -= processors[job]
    return starts


class ConservativeKeys(SpecKeys):
    """Settings of `Conservative`."""

    order: Order = Field(
        "BF",
        description="in which waiting jobs are planned: as they came, by priority, by random number, shortest first, "
        "or one of the middle two over the estimated run time",
    )
    guarantees: bool = Field(True, description="a job never starts later than first planned; no: all is planned anew")
    speculate: float = Field(
        0.0,
        ge=0,
        le=1,
        description="share of its estimate for which a hole must last for a job to be run in it on trial; 0: never",
    )
    test_runs: bool = Field(
        False, description="jobs of over 3 hours are run for 5 to 15 minutes, once, where they cannot be speculated on"
    )
    weight: float = Field(0.0, ge=0, le=1e6, description="of the delay in seconds, added to what jobs are sorted by")


class Conservative(Policy):
    """Plan every waiting job; with guarantees, at the earliest time that disturbs no job planned before it.

    On arrival a job gets the earliest start at which it fits, and keeps it; when a job ends, every waiting job,
    in order, may move to an earlier start. Without guarantees the whole queue is planned anew at
    every pass. O(queue * (queue + running)) for each pass.

    References
    ----------
    Perković, Keleher: Randomization, speculation, and adaptation in batch schedulers, SC 2000 (P1), sections 2 to 5.
    """

    name = "conservative"
    Keys = ConservativeKeys

    def __init__(self, keys: ConservativeKeys) -> None:
        self.keys = keys
        self.chance = 0
        self.passes = 0
        self.starts: dict[int, int] = {}
        """Planned start of each waiting job that has one."""
        self.guaranteed: dict[int, int] = {}
        """And the start that it was first promised."""
        self.freed = False
        """Whether processors have come free since the last pass."""
        self.trials = Trials()

    def open(self, opened: ClusterOpened) -> None:
        """Take note of the run: draws of chance are its own."""
        self.chance = key_of(opened.seed, opened.cluster)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start]:
        """Return the starts of one pass, in order of planning; then the trials in the holes that are left."""
        if not len(queue):
            self.freed = False
            return []
        self.passes += 1
        keep = self.keys.guarantees
        if not keep and free <= 0:
            return []
        order = ranked(now, queue, self.keys.order, self.keys.weight, self.chance, self.passes)
        ends = expected_ends(
            now,
            running.start_time,
            running.predicted_time,
            running.adjusted_time,
            running.requested_time,
            running.corrections,
        )
        ends = self.trials.cut_short(running, ends)
        processors, run_times, numbers = queue.processors, queue.predicted_time, queue.job_number.tolist()
        promised = np.array([self.starts.get(number, UNPLANNED) for number in numbers], dtype=np.int64)
        if self.trials.suspended:  # places that are kept, of jobs that do not wait now
            kept = np.array(list(self.trials.suspended.values()), dtype=np.int64).T
            promised = np.concatenate((promised, kept[0]))
            processors, run_times = np.concatenate((processors, kept[1])), np.concatenate((run_times, kept[2]))
        starts = plan(now, free, running.processors, ends, processors, run_times, promised, order, self.freed, keep)
        if keep:
            planned = zip(numbers, starts[: len(numbers)].tolist(), strict=True)
            self.starts = {number: at for number, at in planned if at < FOREVER}
            for number, at in self.starts.items():
                self.guaranteed.setdefault(number, at)
        self.freed = False
        rows = order[starts[order] == now]
        decisions = [
            start(queue, row, Reserved(guaranteed_start=self._guaranteed(numbers[row]))) for row in rows.tolist()
        ]
        free -= int(processors[rows].sum())
        if free > 0 and (self.keys.speculate or self.keys.test_runs):
            profile = planned_profile(
                now,
                free + int(processors[rows].sum()),
                running.processors,
                ends,
                processors,
                run_times,
                starts,
                2 * len(numbers),
            )
            decisions += self._trials(queue, order[starts[order] > now], starts, free, profile)
        return decisions

    def _trials(
        self, queue: Queue, rows: Column, starts: Column, free: int, profile: tuple[Column, Column, int]
    ) -> Iterator[Start]:
        """Yield the trials of waiting jobs in the holes of the plan, in order."""
        times, steps_free, steps = profile
        now = int(times[0])
        for row in rows.tolist():
            number, size, run_time = (
                int(queue.job_number[row]),
                int(queue.processors[row]),
                int(queue.predicted_time[row]),
            )
            known = self.trials.jobs.get(number)
            if size > free or known is None or not known.restartable:
                continue
            at, keep = int(starts[row]), self.keys.guarantees
            if not keep and at < FOREVER:  # nothing is promised: its own place is no obstacle
                steps = take(times, steps_free, steps, at, at + run_time, -size)
            hole = hole_of(times, steps_free, steps, size)
            trial = attempt(
                hole,
                run_time,
                self.trials.least(number, run_time, self.keys.speculate),
                speculate=self.keys.speculate > 0,
                test=self.keys.test_runs and not known.tested,
            )
            if trial is not None and trial.seconds < known.requested_time:
                steps = take(times, steps_free, steps, now, now + trial.seconds, size)
                free -= size
                self.trials.decided(number, trial, Suspended(at, size, run_time) if keep and at < FOREVER else None)
                yield Start(
                    job_number=number,
                    processors=size,
                    limit=trial.seconds,
                    reason=Speculated(
                        hole=hole if hole < FOREVER else None, attempt=known.attempts + 1, test_run=trial.test_run
                    ),
                )
            elif not keep and at < FOREVER:
                steps = take(times, steps_free, steps, at, at + run_time, size)

    def _guaranteed(self, number: int) -> int | None:
        return self.guaranteed.get(number) if self.keys.guarantees else None

    def observe(self, event: Event) -> None:
        """Notice processors that come free; forget what was planned of a job that has started."""
        self.trials.observe(event)
        if isinstance(event, JobStarted):
            self.starts.pop(event.job_number, None)
            if event.job_number not in self.trials.limits:
                self.guaranteed.pop(event.job_number, None)
        elif isinstance(event, JobEnded):
            place = self.trials.suspended.pop(event.job_number, None)
            self.freed = True
            if event.requeued and place is not None:
                self.starts[event.job_number] = place.start
            elif not event.requeued:
                self.guaranteed.pop(event.job_number, None)
        elif isinstance(event, CapacityChanged):
            self.freed = True

    def snapshot(self) -> Any:
        """Return the plan, and what was noticed since it was made."""
        tables = {name: list(getattr(self, name).items()) for name in ("starts", "guaranteed")}
        return {**tables, "passes": self.passes, "freed": self.freed, "trials": self.trials.snapshot()}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.starts, self.guaranteed = dict(state["starts"]), dict(state["guaranteed"])
        self.passes, self.freed = state["passes"], state["freed"]
        self.trials.restore(state["trials"])
