"""Backfilling by the probability of delaying the head."""

from typing import Any

from shadowtime.services.scheduler.forecasting import (
    Forecaster,
    SampledFutures,
    easy_ahead,
    easy_futures,
    forecaster_of,
)
from shadowtime.services.scheduler.ordering import InOrder, Ordering
from shadowtime.services.scheduler.policy import GOOD_PREDICTOR, Output, Policy, start_heads
from shadowtime.services.scheduler.probabilistic.backfill_pass import BackfillPass
from shadowtime.services.scheduler.probabilistic.head_guard import ALWAYS, HeadGuard
from shadowtime.services.scheduler.probabilistic.pass_state import PassState
from shadowtime.services.scheduler.probabilistic.recalibration import DelayRecalibration
from shadowtime.services.scheduler.probabilistic.settings import ProbabilisticSettings
from shadowtime.services.scheduler.tables import Queue, Running, front
from shadowtime.shared.messages import (
    ClusterOpened,
    Event,
    SchedulingPoint,
)


class Probabilistic(InOrder, Policy):
    """Start the head while it fits, then candidates that delay the blocked head with a probability below `tau`.

    The probability follows from the predicted run times of the candidate and of the running jobs. Requests limit these
    run times, or adjusted requests if the settings say so. Safe candidates, promises and deadlines depend on the
    requests themselves. Without predictions, the starts equal those of EASY, for any `tau` and for either probability.
    Jobs that a pass has started count as running for later candidates.

    O(candidates * terminations + terminations * log(jobs) * processors) for each job that starts. A running job has
    about ten terminations. A pass of more than `work_limits.WALKED` steps or `work_limits.WEIGHED` candidates goes on
    as plain EASY.

    References: docs/algorithms.md#probabilistic-backfilling (Nissimov 2007, section 4). Budget and patience:
    docs/algorithms.md#guards-of-the-head.
    """

    name = "probabilistic"
    predictor = GOOD_PREDICTOR
    Settings = ProbabilisticSettings

    def __init__(self, settings: ProbabilisticSettings) -> None:
        self.settings = settings
        self.heads = HeadGuard()
        self.ordering = Ordering(settings, weight=settings.weight)
        self.obeyed = ALWAYS.obeys  # whether decisions take effect
        self.recalibration = None if settings.recalibrate == "no" else DelayRecalibration()

    def open(self, opened: ClusterOpened) -> None:
        """Seed the random numbers of the `orders` from the run, and record whether decisions take effect."""
        self.ordering.open(opened)
        self.obeyed = opened.obeys

    def forecaster(self) -> Forecaster | None:
        """Return the forecaster of waits, EASY in the order of this queue; None unless `forecast` asks for one."""
        return forecaster_of(self.settings.forecast, easy_ahead(self.settings.queue), self.futures())

    def futures(self) -> SampledFutures | None:
        """Return the sampled futures of EASY in this policy's order; None for an order that cannot be forecast."""
        return easy_futures(self.settings.queue, self.ordering.chance)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Output]:
        """Return the decisions of one pass: heads that fit, then candidates with their evaluations."""
        if self.recalibration is not None:
            self.recalibration.learn_until(now)
        if free <= 0 or not len(queue) or (free < queue.least and self.ordering.as_submitted):
            return []  # most passes end here, so they should be cheap

        # Start the heads that fit.
        idle, sizes = running.free(free), queue.sizes
        order = self.ordering.rows(now, queue)
        heads, candidates = front(idle, sizes, order)
        starts: list[Output] = [*start_heads(queue, order[:heads].tolist())]
        if heads == len(queue):
            return starts

        # Backfill behind the first job that does not fit.
        head_row = int(order[heads])
        if not self.ordering.as_submitted:
            self.heads.follow(int(queue.job_number[head_row]), overtaken=heads > 0)
        if not len(candidates):
            return starts
        busy = PassState(now, queue, running)
        if heads:
            idle = idle - sizes[order[:heads]].sum(axis=0)
            busy.add(order[:heads])
        obeyed = self.recalibration is None or self.obeyed(now)
        behind = BackfillPass(
            self.settings, self.heads, self.ordering, self.recalibration, obeyed, busy, head_row, idle
        )
        return starts + behind.run(candidates)

    def observe(self, event: Event) -> None:
        """Apply an event to the guards of the head and to the recalibration."""
        if type(event) is SchedulingPoint:
            return
        self.heads.observe(event)
        if self.recalibration is not None:
            self.recalibration.observe(event)

    def snapshot(self) -> Any:
        """Return the states of the guards and of the recalibration as plain values."""
        learned = {} if self.recalibration is None else {"recalibration": self.recalibration.snapshot()}
        return self.heads.snapshot() | learned

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.heads.restore(state)
        if self.recalibration is not None:
            self.recalibration.restore(state["recalibration"])
