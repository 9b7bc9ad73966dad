"""EASY backfilling: one reservation, for the first job that does not fit."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shadowtime.services.scheduler.forecasting import Forecaster, PassByPass, SampledFutures, forecaster_of
from shadowtime.services.scheduler.ordering import (
    BY_PRIORITY,
    CANDIDATES,
    QUEUE,
    CandidatesName,
    InOrder,
    OrderedPlanSettings,
    OrderedSettings,
    Ordering,
    OrderName,
    Weight,
)
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, backfills, start
from shadowtime.services.scheduler.settings import ForecastSettings, PlanSettings, PolicySettings, unless_default
from shadowtime.services.scheduler.tables import (
    SIZE,
    Queue,
    Running,
    RunningTable,
    WaitingTable,
    columns_of,
    expected_ends,
)
from shadowtime.shared.kernels import Integers, easy_pass, kernel
from shadowtime.shared.messages import ClusterOpened, Start


@kernel
def pass_as_submitted(
    now: int, free: int, waiting: WaitingTable, running: RunningTable
) -> tuple[int, int, int, Integers]:
    """Return the result of `easy_pass` for the jobs in two tables, in order of submission and by processors only.

    The call passes two tables instead of ten arrays. Passing one array to a kernel costs as much as a short pass.
    """
    count, of_running = waiting.jobs, columns_of(running)
    sizes, run_times = waiting.table[SIZE][:count].reshape((count, 1)), waiting.table[waiting.planned][:count]
    held, ends = of_running.sizes, expected_ends(now, of_running)
    return easy_pass(now, np.array([free]), sizes, run_times, run_times[:0], held, ends)


class EasySettings(OrderedPlanSettings):
    """Settings of `Easy`."""

    FORECAST_ORDERS = BY_PRIORITY
    weight: Weight = 0.0


class Easy(InOrder, Policy):
    """Start jobs from the front of the queue while they fit, then candidates that do not delay the blocked head.

    The head is the first job in the order of the queue that does not fit. A candidate behind the head may start if it
    fits now and meets one of two conditions. It ends by the head's shadow time, or it takes no more than the extra
    amount of each resource. Queue and candidates may be in any of the `orders`. O(queue log queue + running log
    running) per pass.

    References: docs/algorithms.md#easy (Lifka 1995), docs/ordering.md.
    """

    name = "easy"
    Settings: ClassVar[type[PolicySettings]] = EasySettings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.on_requests = isinstance(settings, PlanSettings) and settings.plan == "requested"
        self.ordering = Ordering(
            settings if isinstance(settings, OrderedSettings) else OrderedSettings(),
            on_requests=self.on_requests,
            weight=settings.weight if isinstance(settings, EasySettings) else 0.0,
        )
        of = type(self)
        self.own_order = of.order is not Easy.order
        """Whether a subclass ranks the candidates itself."""
        self.own_rows = of.rows is not Easy.rows
        """Whether a subclass defines the order of the queue itself."""
        self.in_turn = self.ordering.as_submitted and self.ordering.alike and not self.own_order and not self.own_rows

    def open(self, opened: ClusterOpened) -> None:
        """Seed the random numbers of the `orders` from the run's seed and cluster."""
        self.ordering.open(opened)

    def forecaster(self) -> Forecaster | None:
        """Return the forecaster of waits, which simulates pass by pass; None unless the key `forecast` asks for one."""
        asked = self.settings.forecast if isinstance(self.settings, ForecastSettings) else False
        return forecaster_of(asked, PassByPass(self, steady=self.ordering.steady), self.futures())

    def futures(self) -> SampledFutures | None:
        """Return the forward simulation through sampled futures; None unless the queue is by arrival or priority."""
        if not isinstance(self.settings, OrderedPlanSettings) or not self.settings.can_forecast:
            return None
        return SampledFutures(PassByPass(self, steady=self.ordering.steady), self.ordering.chance)

    def order(self, now: int, queue: Queue) -> Integers:
        """Return the rank of each waiting job as a candidate, an array in the order of the queue's rows.

        An override is called at each pass for which the smallest job fits. Ranks are whole numbers, and the smallest is
        tried first. The head of the queue depends on `rows`, not on ranks.

        >>> class LongestFirst(Easy):
        ...     name = "longest-first"
        ...     def order(self, now, queue):
        ...         return np.argsort(np.argsort(-queue.predicted_time, kind="stable"), kind="stable")
        """
        if self.ordering.alike and self.ordering.as_submitted:
            return np.arange(len(queue))
        return self.ordering.ranks(now, queue)

    def rows(self, now: int, queue: Queue) -> Integers | None:
        """Return the rows of the queue in the order in which they are served; None stands for order of submission."""
        return None if self.ordering.as_submitted else self.ordering.rows(now, queue)

    def served(self, now: int, queue: Queue, idle: Integers) -> Integers:
        """Return the rows of the queue in the order of service, from `rows`."""
        rows = self.rows(now, queue)
        return np.arange(len(queue)) if rows is None else rows

    def named_order(self) -> str:
        """Return the name of the order of the queue: the policy's own name if a subclass overrides `rows`."""
        return self.name if self.own_rows else super().named_order()

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start]:
        """Return the starts of one pass: heads that fit, then backfilled candidates."""
        if not len(queue) or free < queue.least:  # the common case
            return []
        run_times = queue.requested_time if self.on_requests else queue.predicted_time
        served: Sequence[int] = range(len(queue))
        if self.in_turn and queue.by_processors:
            by = self.on_requests
            heads, shadow_time, extra, accepted = pass_as_submitted(
                now, free, queue.packed(on_requests=by), running.packed(on_requests=by)
            )
            if not heads and not len(accepted):
                return []
            return self._decided(now, queue, served, run_times, heads, shadow_time, extra, accepted)

        jobs = running.jobs(on_requests=self.on_requests)
        held = jobs.sizes, expected_ends(now, jobs)
        idle, sizes, rows = running.free(free), queue.sizes, self.rows(now, queue)
        if rows is None:
            order = self.order(now, queue)
            heads, shadow_time, extra, accepted = easy_pass(now, idle, sizes, run_times, order, *held)
        else:
            served = rows.tolist()
            alike = self.ordering.alike and not self.own_order
            order = np.arange(len(queue)) if alike else self.order(now, queue)[rows]
            in_turn = sizes[rows], run_times[rows]
            heads, shadow_time, extra, accepted = easy_pass(now, idle, *in_turn, order, *held)

        return self._decided(now, queue, served, run_times, heads, shadow_time, extra, accepted)

    @staticmethod
    def _decided(
        now: int,
        queue: Queue,
        served: Sequence[int],
        run_times: Integers,
        heads: int,
        shadow_time: int,
        extra: int,
        accepted: Integers,
    ) -> list[Start]:
        starts: list[Start] = [start(queue, row, FITS_NOW) for row in served[:heads]]
        if len(accepted):
            head = int(queue.job_number[served[heads]])
            ahead = [served[place] for place in accepted.tolist()]
            starts += backfills(now, queue, ahead, run_times, head, shadow_time, extra)
        return starts


class EasySjbfSettings(OrderedPlanSettings):
    """Settings of `EasySjbf`."""

    FORECAST_ORDERS = BY_PRIORITY
    candidates: CandidatesName = unless_default("spf", CANDIDATES)


class EasySjbf(Easy):
    """EASY that tries its candidates shortest first, by predicted run time (shortest job backfilled first).

    An alias of `easy:candidates=spf`.

    References: docs/algorithms.md#easy (Tsafrir 2007, section 5).
    """

    name = "easy-sjbf"
    Settings = EasySjbfSettings


class WfpSettings(OrderedSettings):
    """Settings of `Wfp`."""

    queue: OrderName = unless_default("wfp3", QUEUE)


class Wfp(Easy):
    """EASY over a queue that is sorted anew at each pass: long waits, short run times and large sizes first.

    An alias of `easy:queue=wfp3`.

    References: docs/algorithms.md#wfp (Tang 2013, section 6.1, equation 5).
    """

    name = "wfp"
    Settings = WfpSettings
