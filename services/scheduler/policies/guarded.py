"""Backfilling in an order that is limited in what it may do to one job."""

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
from shadowtime.services.scheduler.limits import MAX_STARTS
from shadowtime.services.scheduler.ordering import BypassedWork, OrderedSettings, Ordering, RunTimeMeasures
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, backfilled, backfills, start
from shadowtime.services.scheduler.settings import unless_default
from shadowtime.services.scheduler.tables import Queue, Running, expected_ends
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.messages import CapacityChanged, ClusterOpened, CutShort, Event, Start

NO_KEYS: Floats = np.empty(0)
Guard = Annotated[float, Field(ge=0)]


class GuardedSettings(OrderedSettings):
    """Settings of `Guarded`."""

    overtaken: Guard = unless_default(
        math.inf,
        "seconds of the whole machine that later jobs may be given before a waiting one; then it goes first, in order "
        "of arrival",
    )
    patience: Guard = unless_default(
        math.inf,
        "seconds after its submission at which the job that has waited longest finds room, should all others run to "
        "their requests",
    )
    tau: Annotated[float, Field(ge=0, lt=1)] = unless_default(
        0.0,
        "a candidate is taken to run for what it outlasts with this probability, by its predicted distribution; 0: for "
        "what is predicted",
    )


def held(now: int, running: Running) -> HeldResources:
    """Return what the running jobs hold, until their requests end it."""
    return HeldResources(running.sizes, expected_ends(now, running.jobs(on_requests=True)))


def decisions_of(now: int, queue: Queue, planned: Integers, result: Pass) -> list[Start | CutShort]:
    """Return the starts of a pass, each with what it must not delay."""
    starts: list[Start | CutShort] = []
    due, room = result.eldest
    rows, reasons = result.places.tolist(), result.reasons
    for row, reason in zip(rows[:MAX_STARTS], reasons.tolist(), strict=False):
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
        ahead = behind[: MAX_STARTS - len(starts)]
        starts += backfills(now, queue, ahead, times, head, shadow_time, int(extra[0]))

    if len(rows) > MAX_STARTS:
        starts = [*starts[:MAX_STARTS], CutShort(by="starts", left=len(rows) - MAX_STARTS)]
    return starts


class GuardedPass:
    """A pass of one configuration: what it sorts by, plans with and guards. It holds nothing but what saves work.

    Parameters
    ----------
    predicted
        Whether candidates are taken to run for what is predicted, and not to their requests.
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
    ) -> list[Start | CutShort]:
        """Return the starts of a pass.

        Parameters
        ----------
        machine, work
            All processors, and the rest as of `guarded_pass`.
        promised
            The patience that the job that has waited longest was promised before, in seconds; the least holds.
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
    """Start jobs in an order, backfill behind the first that does not fit, within three guards of each waiting job.

    A job that has waited for longer than `threshold`, or has been overtaken by more work than `overtaken`, goes first,
    in order of arrival. Running jobs are taken to run to their requests, candidates for as long as is predicted; to
    their requests, too, once the head has waited for longer than `threshold`. What would run on at the time when the
    job that has waited longest must find room, `patience` after its submission, starts on processors that are left
    beside it then, or not at all. O(queue log queue + running log running) per pass.

    References
    ----------
    docs/ordering.md#guards (ours; of EASY: Lifka 1995).
    """

    name = "guarded"
    Settings = GuardedSettings

    def __init__(self, settings: GuardedSettings) -> None:
        self.settings = settings
        self.one_pass = GuardedPass(settings)
        self.overtaken = BypassedWork()
        self.processors = 0

    def open(self, opened: ClusterOpened) -> None:
        """Take note of the run: draws of chance are its own, and how large the machine is."""
        self.one_pass.ordering.open(opened)
        self.processors = opened.processors

    def observe(self, event: Event) -> None:
        """Notice who overtakes whom, and how large the machine is."""
        if isinstance(event, CapacityChanged):
            self.processors = event.processors
        self.overtaken.observe(event)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start | CutShort]:
        """Return the starts of one pass."""
        work = self.overtaken.of(queue, running)
        return self.one_pass.starts(now, queue, running, free, self.processors, work)

    def snapshot(self) -> Any:
        """Return by how much work who has been overtaken, and the size of the machine."""
        return {"overtaken": self.overtaken.snapshot(), "processors": self.processors}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.overtaken.restore(state["overtaken"])
        self.processors = state["processors"]
