"""All-reserve backfilling: every job that cannot start gets a reservation, planned anew at each pass."""

from pydantic import ValidationInfo, field_validator

from shadowtime.services.scheduler.forecasting import (
    Forecaster,
    PassByPass,
    Placed,
    Reserving,
    SampledFutures,
    as_submitted,
    forecaster_of,
)
from shadowtime.services.scheduler.kernels import reserve_pass
from shadowtime.services.scheduler.ordering import AS_QUEUE, OrderedPlanSettings, Ordering
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, start
from shadowtime.services.scheduler.settings import Forecast
from shadowtime.services.scheduler.tables import Queue, Running
from shadowtime.services.scheduler.work_limits import PLANNED
from shadowtime.shared.bounds import MAX_LIVE_JOBS
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import ClusterOpened, CutShort, Reserved, Start
from shadowtime.shared.spec import Price

RESERVED = Reserved()


class AllReserveSettings(OrderedPlanSettings):
    """Settings of `AllReserve`."""

    def price(self) -> Price:
        """Return the price of passes and of plans over the availability profile."""
        return super().price().plus(Price(memory=100 * MAX_LIVE_JOBS, steps=PLANNED))

    @field_validator("forecast")
    @classmethod
    def _all_as_submitted(cls, forecast: Forecast, info: ValidationInfo) -> Forecast:
        candidates = info.data.get("candidates", AS_QUEUE)
        if forecast and candidates != AS_QUEUE:
            raise ValueError(f"a forecast needs candidates={AS_QUEUE}; found candidates={candidates}")
        return forecast


class AllReserve(Policy):
    """Start every job whose start does not delay the reservation of a job ahead of it.

    Each pass plans the whole queue anew, in order of arrival or in another of the `orders`. A reservation only prevents
    later jobs from delaying its job, which may start sooner. O(queue * (queue + running)) per pass, but at most
    `work_limits.PLANNED` steps. Beyond this limit, the pass tries no further jobs.

    References: docs/algorithms.md#all-reserve (Smith 1999, section 2.1.4), docs/ordering.md.
    """

    name = "all-reserve"
    Settings = AllReserveSettings

    def __init__(self, settings: AllReserveSettings) -> None:
        self.settings = settings
        self.on_requests = settings.plan == "requested"
        self.ordering = Ordering(settings, on_requests=self.on_requests)

    def open(self, opened: ClusterOpened) -> None:
        """Seed the random numbers of the `orders` from the run's seed and cluster."""
        self.ordering.open(opened)

    def forecaster(self) -> Forecaster | None:
        """Return the forecaster of waits if the key `forecast` asks for one, else None."""
        ahead = Reserving(Placed(as_submitted, in_turn=False), PassByPass(self, reserve=True))
        return forecaster_of(self.settings.forecast, ahead, self.futures())

    def futures(self) -> SampledFutures | None:
        """Return the forward simulation through sampled futures; None unless jobs are served in order of arrival."""
        if not self.settings.can_forecast or self.settings.candidates != AS_QUEUE:
            return None
        return SampledFutures(PassByPass(self, reserve=True), self.ordering.chance)

    def order(self, now: int, queue: Queue) -> Integers:
        """Return the position of each waiting job in order of arrival, for forward simulations. Passes use `served`."""
        return as_submitted(queue)

    def rows(self, now: int, queue: Queue) -> None:
        """Return None: a forward simulation serves jobs in order of submission."""

    def served(self, now: int, queue: Queue, idle: Integers) -> Integers:
        """Return the rows of the queue in the order in which they are planned."""
        return self.ordering.in_turn(now, queue, idle)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start | CutShort]:
        """Return the starts of one pass, in the order of planning, then a `CutShort` if the limit was reached."""
        if free <= 0 or not len(queue):
            return []
        idle = running.free(free)
        in_turn = self.served(now, queue, idle)
        run_times = queue.requested_time if self.on_requests else queue.predicted_time
        rows, planned, _ = reserve_pass(
            now,
            idle,
            queue.sizes[in_turn],
            run_times[in_turn],
            running.jobs(on_requests=self.on_requests),
            PLANNED,
        )
        starts: list[Start | CutShort] = [
            start(queue, int(in_turn[turn]), FITS_NOW if turn == at else RESERVED)
            for at, turn in enumerate(rows.tolist())
        ]
        if planned < len(queue):
            starts.append(CutShort(by="depth", left=len(queue) - planned))
        return starts
