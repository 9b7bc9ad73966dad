"""EASY backfilling: one reservation, for the first job that does not fit."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from shadowtime.services.scheduler.easy_pass import easy_pass
from shadowtime.services.scheduler.forecast import Forecaster
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.limits import MAX_STARTS
from shadowtime.services.scheduler.orders import CandidateWeight, Order, ranked
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, backfills, start
from shadowtime.services.scheduler.policy_settings import PlanSettings, PolicySettings
from shadowtime.services.scheduler.run_passes import PassByPass
from shadowtime.shared.arrays import Integers
from shadowtime.shared.chance import key_of
from shadowtime.shared.decisions import CutShort, Start
from shadowtime.shared.events import ClusterOpened


class EasySettings(PlanSettings):
    """Settings of `Easy`."""

    order: Order = Field(
        "BF",
        description="in which candidates are tried: as they came, by priority, by random number, shortest first, or "
        "one of the middle two over the estimated run time",
        exclude_if=lambda order: order == "BF",
    )
    weight: CandidateWeight = 0.0


class Easy(Policy):
    """Start the head of the queue while it fits; then start what does not delay the first job that does not.

    A candidate may start if it fits now and either ends by the head's shadow time or takes no more than the extra
    processors. O(queue log queue + running log running) per pass.

    References
    ----------
    docs/algorithms.md#easy (Lifka 1995).
    """

    name = "easy"
    Settings: ClassVar[type[PolicySettings]] = EasySettings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.on_requests = isinstance(settings, PlanSettings) and settings.plan == "requested"
        self.steady = not isinstance(settings, EasySettings) or (settings.order[0] != "R" and not settings.weight)
        """Whether candidates never change places as time passes."""
        self.chance = 0

    def open(self, opened: ClusterOpened) -> None:
        """Take note of the run: draws of chance are its own."""
        self.chance = key_of(opened.seed, opened.cluster)

    def forecaster(self) -> Forecaster | None:
        """Return what runs this policy ahead, pass by pass, where the key `forecast` asks for it."""
        return Forecaster(PassByPass(self, steady=self.steady)) if self.settings.forecast else None

    def order(self, now: int, queue: Queue) -> Integers:
        """Return the rank of each waiting job as a candidate."""
        if self.settings.order == "BF":
            return np.arange(len(queue))
        rank = np.empty(len(queue), dtype=np.int64)
        times = self.order_times(queue)
        rank[ranked(now, queue, times, self.settings.order, self.settings.weight, self.chance)] = np.arange(len(queue))
        return rank

    def order_times(self, queue: Queue) -> Integers:
        """Return the run times in seconds that order the queue."""
        return queue.order_request if self.on_requests else queue.order_time

    def rows(self, now: int, queue: Queue) -> Integers | None:
        """Return the rows of the queue in the order in which all are served, candidates too; None: as submitted."""
        return None

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> Sequence[Start | CutShort]:
        """Return the starts of one pass: heads that fit, then backfilled candidates."""
        if free <= 0 or not len(queue):
            return []
        run_times = queue.requested_time if self.on_requests else queue.predicted_time
        jobs = running.jobs(on_requests=self.on_requests)
        rows = self.rows(now, queue)
        served: Sequence[int] = range(len(queue))
        if rows is None:
            order = self.order(now, queue)
            heads, shadow_time, extra, accepted = easy_pass(now, free, queue.processors, run_times, order, jobs)
        else:
            served, order = rows.tolist(), np.arange(len(queue))
            in_turn = queue.processors[rows], run_times[rows]
            heads, shadow_time, extra, accepted = easy_pass(now, free, *in_turn, order, jobs)
        starts: list[Start | CutShort] = [start(queue, row, FITS_NOW) for row in served[: min(heads, MAX_STARTS)]]
        allowed = MAX_STARTS - len(starts)
        if len(accepted):
            head = int(queue.job_number[served[heads]])
            ahead = [served[place] for place in accepted[:allowed].tolist()]
            starts += backfills(now, queue, ahead, run_times, head, shadow_time, extra)
        if heads + len(accepted) > MAX_STARTS:
            starts.append(CutShort(by="starts", left=heads + len(accepted) - MAX_STARTS))
        return starts


class EasySjbf(Easy):
    """EASY that tries its candidates shortest first, by predicted run time (shortest job backfilled first).

    References
    ----------
    docs/algorithms.md#easy (Tsafrir 2007, section 5).
    """

    name = "easy-sjbf"
    Settings = PlanSettings

    def order(self, now: int, queue: Queue) -> Integers:
        """Return the run times that order the queue."""
        return self.order_times(queue)
