"""Backfilling in a chosen order, with limits on how long this order may hold back a single job."""

import math
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from shadowtime.services.scheduler.kernels import (
    BEFORE_ELDEST,
    FITS,
    Guards,
    HeldResources,
    JobArrays,
    Pass,
    guarded_pass,
)
from shadowtime.services.scheduler.ordering import BypassedWork, OrderedSettings, Ordering, RunTimeMeasures
from shadowtime.services.scheduler.policy import FITS_NOW, GOOD_PREDICTOR, Policy, backfilled, backfills, start
from shadowtime.services.scheduler.settings import unless_default
from shadowtime.services.scheduler.tables import Queue, Running, expected_ends
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.messages import CapacityChanged, ClusterOpened, Event, Start

NO_KEYS: Floats = np.empty(0)
Guard = Annotated[float, Field(ge=0)]


class GuardedSettings(OrderedSettings):
    """Settings of `Guarded`."""

    overtaken: Guard = unless_default(
        math.inf,
        "a job goes first, in order of arrival, once later jobs that started before it have more work than this, in "
        "seconds of the whole machine",
    )
    patience: Guard = unless_default(
        math.inf,
        "seconds after its submission by which the job that has waited longest must fit, even if all other jobs run to "
        "their requests",
    )
    tau: Annotated[float, Field(ge=0, lt=1)] = unless_default(
        0.0,
        "a candidate is planned with the run time that it exceeds with this probability; 0: with its predicted run "
        "time",
    )


def held(now: int, running: Running) -> HeldResources:
    """Return the resources that the running jobs hold, and the ends of these jobs by their requests."""
    return HeldResources(running.sizes, expected_ends(now, running.jobs(on_requests=True)))


def decisions_of(now: int, queue: Queue, planned: Integers, result: Pass) -> list[Start]:
    """Return the starts of a pass. The reason of each start names the job that must not be delayed, if any."""
    starts: list[Start] = []
    due, room = result.eldest
    rows, reasons = result.places.tolist(), result.reasons
    for row, reason in zip(rows, reasons.tolist(), strict=True):
        if reason == FITS:
            starts.append(start(queue, row, FITS_NOW))
        elif reason == BEFORE_ELDEST:
            ends = now + int(queue.requested_time[row])
            starts.append(start(queue, row, backfilled(int(queue.job_number[0]), due, max(int(room[0]), 0), now, ends)))

    if result.head >= 0:
        behind = [row for row, reason in zip(rows, reasons.tolist(), strict=True) if reason > BEFORE_ELDEST]
        times = queue.requested_time if result.strict else planned
        head = int(queue.job_number[result.head])
        shadow_time, extra = result.shadow
        starts += backfills(now, queue, behind, times, head, shadow_time, int(extra[0]))

    return starts


class GuardedPass:
    """A scheduling pass with one configuration: its orders, run times and guards. It keeps caches, but no state.

    If `predicted`, candidates are planned with their predictions. If not, they are planned with their requests.
    """

    def __init__(self, settings: GuardedSettings, *, predicted: bool = True) -> None:
        self.ordering = Ordering(settings)
        self.guards = Guards(settings.threshold, settings.overtaken, settings.patience)
        self.measures = RunTimeMeasures((settings.tau,))
        self.predicted = predicted

    def starts(
        self,
        now: int,
        queue: Queue,
        running: Running,
        free: int,
        machine: int,
        work: Floats,
        promised: float = math.inf,
    ) -> list[Start]:
        """Return the starts of a pass.

        Parameters
        ----------
        machine, work
            Processors of the whole machine; and the work that has overtaken each waiting job, see `guarded_pass`.
        promised
            Patience promised earlier to the job that has waited longest, in seconds. The smaller of this and the
            configured patience applies.
        """
        if free <= 0 or not len(queue):
            return []
        ordering = self.ordering
        planned = self.measures.outlasted(queue)[0] if self.predicted else queue.requested_time
        result = Pass(
            *guarded_pass(
                now,
                running.free(free),
                machine,
                JobArrays(queue.submit_time, queue.sizes, queue.requested_time, planned),
                np.arange(len(queue)),
                ordering.keys(ordering.key, now, queue),
                NO_KEYS if ordering.alike else ordering.keys(ordering.candidate_key, now, queue),
                work,
                held(now, running),
                self.guards._replace(patience=min(self.guards.patience, promised)),
            )
        )
        return decisions_of(now, queue, planned, result)


class Guarded(Policy):
    """Start jobs in a chosen order and backfill behind the first that does not fit, within three guards.

    The guards `threshold` and `overtaken` put jobs first, in order of arrival. A job goes first once it has waited for
    longer than `threshold`, or once more work than `overtaken` has overtaken it. The guard `patience` protects the job
    that has waited longest: by the requests of running jobs, it is planned to start as soon as it fits from `patience`
    seconds after its submission on. A job whose request reaches beyond this start needs processors that are left beside
    the longest-waiting job.

    Running jobs are planned with their requests, candidates with their predictions. Once the head has waited for longer
    than `threshold`, candidates are planned with their requests, too. O(queue log queue + running log running) per
    pass.

    References: docs/ordering.md#guards (ours; for EASY: Lifka 1995).
    """

    name = "guarded"
    predictor = GOOD_PREDICTOR
    Settings = GuardedSettings

    def __init__(self, settings: GuardedSettings) -> None:
        self.settings = settings
        self.one_pass = GuardedPass(settings)
        self.overtaken = BypassedWork()
        self.processors = 0

    def open(self, opened: ClusterOpened) -> None:
        """Record the size of the machine, and seed the random numbers of the `orders` from the run."""
        self.one_pass.ordering.open(opened)
        self.processors = opened.processors

    def observe(self, event: Event) -> None:
        """Apply an event: update the work that overtakes waiting jobs, and the size of the machine."""
        if isinstance(event, CapacityChanged):
            self.processors = event.processors
        self.overtaken.observe(event)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start]:
        """Return the starts of one pass."""
        work = self.overtaken.of(queue, running)
        return self.one_pass.starts(now, queue, running, free, self.processors, work)

    def snapshot(self) -> Any:
        """Return the overtaking work and the size of the machine as plain values."""
        return {"overtaken": self.overtaken.snapshot(), "processors": self.processors}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.overtaken.restore(state["overtaken"])
        self.processors = state["processors"]
