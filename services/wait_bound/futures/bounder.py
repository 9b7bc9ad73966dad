"""A bound on the wait from simulated futures of the machine, calibrated by the waits of jobs with similar futures."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from shadowtime.services.wait_bound.bounder import (
    MAX_QUEUES,
    Bounder,
    IssuedBounds,
    Updates,
    beyond_queues,
    scopes_of,
)
from shadowtime.services.wait_bound.futures.calibration import JudgedFutures, levels
from shadowtime.services.wait_bound.futures.queue_features import OF_QUEUE
from shadowtime.services.wait_bound.futures.recent_waits import OF_WAITS, NearestWaits, RecentWaits
from shadowtime.services.wait_bound.futures.simulation import STEPS, MachineFutures
from shadowtime.services.wait_bound.futures.wait_trees import WaitTrees
from shadowtime.services.wait_bound.settings import HistorySettings
from shadowtime.shared.distributions import NOT_INSTALLED, Rows, is_installed
from shadowtime.shared.kernels import Floats
from shadowtime.shared.messages import (
    Event,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    RunTimePrediction,
    RunTimeRevision,
    WaitBound,
)
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import LastValue
from shadowtime.shared.statistics import NEAR

LONGEST = 30 * 86_400.0
"""Maximum wait in seconds in any future, also used if the job does not start in a future."""

OF_LAST = 0.3
"""Weight of a user's last wait in the mean of the logarithms of their waits."""


AHEAD = (0.1, 0.5, 0.9)
"""Quantiles of the simulated waits that are features of trees."""

WIDTH = OF_QUEUE + OF_WAITS + len(AHEAD) + 1
"""Number of features of trees. The last one is the mean logarithm of the user's waits."""


class FutureSettings(HistorySettings):
    """Settings of `FuturesBound`."""

    futures: int = Field(200, ge=10, le=1_000, description="number of simulated futures of the machine")
    arrivals: bool = Field(False, description="whether jobs of earlier weeks arrive again in the futures")
    trees: bool = Field(False, description="whether trees grown on the state of the queue also predict quantiles")
    days: int = Field(14, ge=1, le=365, description="days of the log after which trees are grown anew")

    def price(self) -> Price:
        """Return the price of the simulated machine, of the waits by queue, and of trees on their features."""
        waits = MAX_QUEUES * self.history * 100
        trees = 1_500 * self.history if self.trees else 0
        return Price(memory=120_000_000 + waits + trees, steps=STEPS * self.futures + 15_000 * self.history)

    @model_validator(mode="after")
    def _can_be_grown(self) -> "FutureSettings":
        if self.trees and not is_installed():
            raise ValueError(f"trees=yes: {NOT_INSTALLED}")
        return self


class SubmittedForecast(NamedTuple):
    """Known facts about a job at submission. Logarithms are of waits + `NEAR`, in seconds."""

    forecast: float
    """Logarithm of the median wait in the futures."""
    user: float
    """Mean logarithm of the user's waits."""
    alike: Floats
    """Waits of jobs with similar forecasts, in seconds, ascending."""
    row: Rows | None = None
    """Features of the job; None without trees."""
    trees: Floats | None = None
    """Logarithms of the quantiles of the trees; None before trees are grown."""


class FuturesBound(Bounder):
    """Bound each wait by the waits of the earlier jobs with the most similar simulated futures.

    The forecast is the median wait in `MachineFutures`. It selects the past waits with similar forecasts. These waits
    are one source of quantiles, all waits are another, and `WaitTrees` are an optional third. The quantiles follow
    their misses and are mixed by score (`TrackedQuantiles`), for the cluster and for each of the first `MAX_QUEUES`
    queues.

    A submission costs the simulation of the futures, plus O(8,000) and O(waiting jobs), all in compiled code.

    References: docs/algorithms.md#bounds-from-futures (Smith 1999, section 3; Gibbs 2024).
    """

    name: ClassVar[str] = "futures"
    Settings = FutureSettings

    def __init__(self, settings: FutureSettings) -> None:
        self._settings = settings
        self.machine = MachineFutures(settings.futures, arrivals=settings.arrivals)
        """State of the machine from which futures begin."""
        self._near = NearestWaits()
        self._recent = RecentWaits()
        self._trees = WaitTrees(levels(settings), WIDTH, settings.history, settings.days) if settings.trees else None
        self._cluster = self._judged(None)
        self._queues: dict[int, JudgedFutures] = {}
        self._users: dict[int | None, float] = {}
        self._forecasts: dict[int, tuple[float, float]] = {}
        """Forecast and mean of the user's waits for each waiting job, both as logarithms."""
        self._prediction: tuple[int, tuple[float, ...]] = (0, ())
        self._asked = LastValue(self._ask)

    def note_prediction(self, x: JobSubmitted, run_time: RunTimePrediction | None) -> None:
        """Record the predicted run time of the job whose bounds are asked for next."""
        self._prediction = x.job_number, () if run_time is None else run_time.histogram

    def note_revisions(self, revisions: Sequence[RunTimeRevision]) -> None:
        """Record the distributions of jobs in the system that were predicted anew."""
        for revision in revisions:
            self.machine.jobs.revise(revision.job_number, revision.histogram)

    def predict_one(self, x: JobSubmitted) -> tuple[WaitBound, ...]:
        """Return the bounds at submission, that of the cluster first."""
        return self._bounds(x, self._asked(x), self._settings.quantile, self._settings.confidence)

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have now, interpolated between levels; the same for any `confidence`."""
        return self._bounds(x, self._ask(x, now), quantile, confidence)

    def issued(self, grouping: str, queue: int | None) -> IssuedBounds | None:
        """Return the bounds of the waiting jobs of a queue, or of the cluster; None if the queue has no own bounds."""
        scope = self._cluster if queue is None else self._queues.get(queue)
        return None if scope is None else scope.issued()

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Learn the wait `y` in seconds."""
        self._asked.forget()
        forecast = self._forecasts.pop(x.job_number, None)
        if forecast is not None:
            self._near.add(*forecast, submitted=x.since, wait=y)
        self.updates = Updates(tuple(update for scope in self._scopes(x) for update in scope.learn(x.job_number, y)))
        log_wait = float(np.log(y + NEAR))
        if self._trees is not None:
            self._trees.learn(x.job_number, y)
            self._recent.learn(x, log_wait)
        before = self._users.get(x.user_id, log_wait)
        self._users[x.user_id] = before + OF_LAST * (log_wait - before)

    def observe(self, event: Event) -> None:
        """Track the jobs and the machine, and advance the time."""
        if isinstance(event, JobSubmitted):
            asked = self._asked(event)
            self._forecasts[event.job_number] = asked.forecast, asked.user
            for scope in self._scopes(event):
                scope.submit(event, scope.quantiles(asked.alike, asked.trees))
                if scope.queue is not None:
                    self._queues[scope.queue] = scope

            self.machine.submit(event, self._histogram(event))
            if self._trees is not None and asked.row is not None:
                self._trees.submit(event.job_number, asked.row)
                self._recent.came(event)
        else:
            self.machine.observe(event)

        for scope in (self._cluster, *self._queues.values()):
            if isinstance(event, JobWithdrawn):
                scope.withdraw(event.job_number)
            scope.advance(event.time)

        if isinstance(event, JobWithdrawn):
            self._forecasts.pop(event.job_number, None)
        if self._trees is not None:
            if isinstance(event, JobWithdrawn):
                self._trees.withdraw(event.job_number)
            elif isinstance(event, JobStarted):
                self._trees.grow_if_due(event.time)
            self._trees.grow()

        self._asked.forget()

    def _judged(self, queue: int | None) -> JudgedFutures:
        return JudgedFutures(queue, self._settings, sources=2 if self._trees is None else 3)

    def _scopes(self, x: JobSubmitted) -> list[JudgedFutures]:
        return scopes_of(x, self._cluster, self._queues, self._judged)

    def _histogram(self, job: JobSubmitted) -> tuple[float, ...]:
        number, histogram = self._prediction
        return histogram if number == job.job_number else ()

    def _ask(self, job: JobSubmitted, now: int | None = None) -> SubmittedForecast:
        now = job.time if now is None else now
        user = self._users.get(job.user_id, float(np.log(NEAR)))
        waits: Floats = np.minimum(self.machine.starts(job, self._histogram(job), now) - float(now), LONGEST)
        forecast = float(np.log(np.median(waits) + NEAR))
        asked = SubmittedForecast(forecast, user, self._near.near(forecast, user, float(now)))
        if self._trees is None:
            return asked
        of_queue = self.machine.features(job, self._histogram(job), now)
        ahead = np.log(np.quantile(waits, AHEAD) + NEAR)
        row = np.concatenate((of_queue, self._recent.features(job, now), ahead, [user])).astype(np.float32)
        return asked._replace(row=row, trees=self._trees.quantiles(row))

    def _bounds(
        self, job: JobSubmitted, asked: SubmittedForecast, quantile: float, confidence: float
    ) -> tuple[WaitBound, ...]:
        scopes = self._scopes(job)
        messages = [scope.message(scope.quantiles(asked.alike, asked.trees), quantile, confidence) for scope in scopes]
        return (*messages, *beyond_queues(job, scopes, quantile, confidence, [self.name]))

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "machine": self.machine.snapshot(),
            "near": self._near.snapshot(),
            "cluster": self._cluster.snapshot(),
            "queues": [[queue, bounds_of_queue.snapshot()] for queue, bounds_of_queue in self._queues.items()],
            "users": list(self._users.items()),
            "told": [[number, *forecast] for number, forecast in self._forecasts.items()],
            "trees": None if self._trees is None else [self._trees.snapshot(), self._recent.snapshot()],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.machine.restore(state["machine"])
        self._near.restore(state["near"])
        self._cluster.restore(state["cluster"])
        self._queues = {queue: self._judged(queue) for queue, _ in state["queues"]}
        for queue, saved in state["queues"]:
            self._queues[queue].restore(saved)
        self._users = dict(state["users"])
        self._forecasts = {number: (forecast, user) for number, forecast, user in state["told"]}
        if self._trees is not None:
            trees, recent = state["trees"]
            self._trees.restore(trees)
            self._recent.restore(recent)

        self._asked.forget()
