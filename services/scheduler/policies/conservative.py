"""Conservative backfilling: every waiting job has a reservation. The order and the shapes of jobs are settings."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from shadowtime.services.scheduler.kernels import (
    COLUMNS,
    FIRST,
    NUMBER,
    SHAPE,
    STARTS,
    SUBMIT,
    UNPLANNED,
    PlannedStarts,
    carried,
    plan,
    settled,
)
from shadowtime.services.scheduler.ordering import OrderedSettings, Ordering
from shadowtime.services.scheduler.policies.idle_processors import IdleProcessors, TrialRule
from shadowtime.services.scheduler.policies.shapes import Mode, Shapes
from shadowtime.services.scheduler.policies.trial_runs import Suspended, Trials
from shadowtime.services.scheduler.policy import Policy
from shadowtime.services.scheduler.tables import Queue, Running, expected_ends
from shadowtime.services.scheduler.work_limits import PLANNED
from shadowtime.shared.bounds import MAX_LIVE_JOBS
from shadowtime.shared.kernels import IntegerCube, Integers, IntegerTable
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterOpened,
    CutShort,
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSuspended,
    JobWithdrawn,
    Start,
    moment,
)
from shadowtime.shared.spec import Price

# Settings of conservative backfilling: orders, guarantees, speculation, shapes.

WHEN = ("no", "expected")


def _share(value: object) -> object:
    if value in WHEN:
        return value
    try:
        share = float(str(value))
    except ValueError:
        share = 0.0

    if not 0 < share <= 1:
        raise ValueError("expected 'no', 'expected', or a number above 0 and at most 1")
    return share


class ConservativeSettings(OrderedSettings):
    """Settings of `Conservative`."""

    guarantees: bool = Field(
        True,
        description="a job starts no later than first planned, unless a running job outlasts its planned run time or "
        "the machine shrinks; no: each pass plans all jobs anew",
    )
    speculate: Annotated[float | Literal["no", "expected"], BeforeValidator(_share)] = Field(
        "no",
        description="run jobs on trial in holes of the plan. With a number, the hole must last for at least this "
        "share of the planned run time. With `expected`, the expected saved wait must exceed the expected wasted work.",
    )
    test_runs: bool = Field(
        False,
        description="jobs that request over 3 hours get one test run of 5 to 15 minutes if they cannot run "
        "speculatively",
    )
    shape: Mode = Field(
        "requested",
        description="moldable jobs run on half or a quarter of the processors, or on the size with the earliest end. "
        "`greedy` chooses among the requested, half and double size. `greedy-narrow` chooses among the requested, half "
        "and quarter size, if the request is at most 3 hours.",
    )
    widen: bool = Field(
        False, description="moldable jobs that start are doubled in size while processors are left in the plan"
    )
    plan: Literal["predicted", "requested"] = Field(
        "predicted", description="run times by which jobs are planned and put in order"
    )
    weight: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="weight of the wait in seconds; the weighted wait is subtracted from the sort key",
    )

    def price(self) -> Price:
        """Return the price of passes, of plans over the availability profile, of moves and of trials."""
        return super().price().plus(Price(memory=100 * MAX_LIVE_JOBS, steps=3 * PLANNED))


class Conservative(Policy):
    """Plan every waiting job at the earliest time that delays no job planned before it.

    With guarantees, a job gets on arrival the earliest start at which it fits, and keeps this start. When a job ends,
    every waiting job may move to an earlier start, in order. Without guarantees, each pass plans the whole queue anew.
    Two more phases use the processors that the plan leaves idle: trials of waiting jobs, then the widening of jobs that
    start.

    O(queue * (queue + running)) for each pass, but at most some multiple of `work_limits.PLANNED` steps. Beyond this
    limit, new jobs wait without a reservation. If there are too many reservations to check, those with the latest
    starts are lost.

    References: docs/algorithms.md#conservative-backfilling (Perković 2000, sections 2 to 7).
    """

    name = "conservative"
    Settings = ConservativeSettings

    def __init__(self, settings: ConservativeSettings) -> None:
        self.settings = settings
        self.on_requests = settings.plan == "requested"
        self.starts_only = settings.shape == "requested"
        self.ordering = Ordering(settings, on_requests=self.on_requests, weight=settings.weight)
        self.reservations: IntegerTable = np.empty((COLUMNS, 0), dtype=np.int64)
        """Reservations of the jobs that waited at the last pass, shape (`COLUMNS`, jobs)."""
        self.returned: dict[int, Suspended] = {}
        """Reservations of requeued jobs whose trials ended since the last pass, by job number."""
        self.freed = False
        """Whether processors may have become free since the last pass: then jobs may move to earlier starts."""
        self.foreseen, self.waited = 0, 0
        """Sums over jobs that were first planned to wait: wait by the first plan and actual wait, in seconds."""
        self.trials = Trials()
        self.tries = settings.speculate != "no" or settings.test_runs
        self.shapes = Shapes(settings.shape, widen=settings.widen)

    def open(self, opened: ClusterOpened) -> None:
        """Seed the random numbers of the `orders` from the run's seed and cluster."""
        self.ordering.open(opened)

    def served(self, now: int, queue: Queue, idle: Integers) -> Integers:
        """Return the rows of the queue in the order in which they are planned."""
        return self.ordering.in_turn(now, queue, idle)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start | CutShort]:
        """Return the starts in order of planning, the trials in holes of the plan, and a `CutShort` if work is left."""
        if not len(queue):
            self.freed = False
            return []
        keep = self.settings.guarantees
        if not keep and free <= 0:
            return []
        estimates = queue.requested_time if self.on_requests else queue.predicted_time
        idle = running.free(free)
        order = self.ordering.in_turn(now, queue, idle)
        sizes, run_times = map(np.ascontiguousarray, self.shapes.columns(queue.job_number, queue.sizes, estimates))
        self.reservations = self._carried(queue)
        planned = self._planned(now, running, idle, sizes, run_times, order)
        rows, later, held = settled(now, self.reservations, planned.starts, planned.shapes, order, sizes)
        self.freed = False
        phases = IdleProcessors(
            queue,
            estimates,
            planned,
            self.reservations if keep else None,
            idle - held,
            self.shapes,
            self.trials,
            TrialRule(
                self.settings.speculate,
                min(self.waited / self.foreseen, 1.0) if self.foreseen else 1.0,
                self.settings.test_runs,
            ),
        )
        trials = list(phases.tried(later))
        starts: list[Start | CutShort] = [phases.started(row) for row in rows.tolist()]
        if planned.left:
            trials.append(CutShort(by="depth", left=planned.left))
        return starts + trials

    def _carried(self, queue: Queue) -> IntegerTable:
        reservations = carried(self.reservations, queue.job_number, queue.submit_time)
        for number, place in self.returned.items():
            row = reservations[NUMBER] == number
            reservations[STARTS, row], reservations[FIRST, row] = place.start, place.guaranteed
            reservations[SHAPE, row] = place.shape
        self.returned.clear()
        return reservations

    def _planned(
        self, now: int, running: Running, idle: Integers, sizes: IntegerCube, run_times: IntegerTable, order: Integers
    ) -> PlannedStarts:
        """Return the plan. With guarantees, the reservations of jobs on trial are kept in it and do not move."""
        ends = self.trials.cut_short(running, expected_ends(now, running.jobs(on_requests=self.on_requests)))
        starts, shapes = self.reservations[STARTS], self.reservations[SHAPE]
        if not self.settings.guarantees:
            starts = shapes = np.zeros(len(order), dtype=np.int64)
        elif self.trials.suspended:
            places = self.trials.suspended.values()
            kept = np.array([[place.start, 0, place.run_time, *place.size] for place in places], dtype=np.int64).T
            starts, shapes = np.concatenate((starts, kept[0])), np.concatenate((shapes, kept[1]))
            none = np.zeros((len(sizes), kept.shape[1]), dtype=np.int64)
            sizes = np.hstack((sizes, np.repeat(none[:, :, np.newaxis], len(idle), axis=2)))
            run_times = np.hstack((run_times, none))
            sizes[0, len(order) :], run_times[0, len(order) :] = kept[3:].T, kept[2]

        return PlannedStarts(
            *plan(
                now,
                idle,
                running.sizes,
                ends,
                sizes,
                run_times,
                starts,
                shapes,
                order,
                self.freed,
                self.settings.guarantees,
                PLANNED,
            )
        )

    def note_revisions(self) -> None:
        """Let jobs move to earlier starts at the next pass: a job ahead may be expected to end sooner now."""
        self.freed = True

    def observe(self, event: Event) -> None:
        """Apply an event: record that processors became free, and drop the reservation of a job that left the queue."""
        self.shapes.observe(event)
        if self.tries:
            self.trials.observe(event)
        if isinstance(event, JobWithdrawn):
            self.reservations[STARTS, self.reservations[NUMBER] == event.job_number] = UNPLANNED
            self.freed = True
        elif isinstance(event, JobStarted):
            for row in np.flatnonzero(self.reservations[NUMBER] == event.job_number):
                submit_time, first = self.reservations[SUBMIT, row], self.reservations[FIRST, row]
                if first > submit_time and event.job_number not in self.trials.limits:
                    self.foreseen += int(first - submit_time)
                    self.waited += moment(event) - int(submit_time)
                self.reservations[STARTS, row] = UNPLANNED
        elif isinstance(event, JobEnded):
            self.freed = True
            place = self.trials.suspended.pop(event.job_number, None)
            if event.requeued and place is not None:
                self.returned[event.job_number] = place
        elif isinstance(event, CapacityChanged | JobChanged | JobSuspended | JobResumed):
            self.freed = True

    def snapshot(self) -> Any:
        """Return the plan, and the state recorded since it was made, as plain values."""
        return {
            "places": self.reservations.tolist(),
            "returned": [[number, *place] for number, place in self.returned.items()],
            "freed": self.freed,
            "foreseen": self.foreseen,
            "waited": self.waited,
            "trials": self.trials.snapshot(),
            "shapes": self.shapes.snapshot(),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.reservations = np.array(state["places"], dtype=np.int64).reshape(COLUMNS, -1)
        self.returned = {number: Suspended(*place) for number, *place in state["returned"]}
        self.freed, self.foreseen, self.waited = state["freed"], state["foreseen"], state["waited"]
        self.trials.restore(state["trials"])
        self.shapes.restore(state["shapes"])
