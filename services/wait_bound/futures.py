"""A bound on the wait from simulated futures: the machine run ahead, judged by what such futures came to before."""

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from pydantic import Field

from shadowtime.services.wait_bound.bound_settings import HistorySettings
from shadowtime.services.wait_bound.bounder import Bounder, Updates
from shadowtime.services.wait_bound.conformal import MIN_WAITS
from shadowtime.services.wait_bound.live_coverage import LiveCoverage
from shadowtime.services.wait_bound.machine_futures import MachineFutures
from shadowtime.services.wait_bound.nearest_waits import NearestWaits
from shadowtime.services.wait_bound.tracked_quantiles import NEAR, TrackedQuantiles
from shadowtime.services.wait_bound.wait_history import WaitHistory, at_rank
from shadowtime.shared.arrays import Floats, FloatTable
from shadowtime.shared.events import (
    Event,
    JobSubmitted,
    JobWithdrawn,
)
from shadowtime.shared.last_answer import LastAnswer
from shadowtime.shared.predictions import Coverage, RunTimePrediction, WaitBound

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99)
"""Probabilities of starting within so long that are told, beside the quantile of the bound."""

LONGEST = 30 * 86_400.0
"""Seconds that stand for a future without a start."""

OF_LAST = 0.3
"""What the last wait of a user counts in the mean of the logarithms of his waits."""


class Kept(Protocol):
    """A part of the state."""

    def snapshot(self) -> Any:
        """Return it as plain values."""
        ...

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        ...


class FutureSettings(HistorySettings):
    """Settings of `FuturesBound`."""

    futures: int = Field(200, ge=10, le=1_000, description="futures through which the machine is run ahead")
    arrivals: bool = Field(True, description="whether jobs of earlier weeks come again in them")


class Asked(NamedTuple):
    """What is known of a job as it is submitted: logarithms of the forecast wait, of its user's, of the quantiles."""

    forecast: float
    user: float
    quantiles: FloatTable | None


class FuturesBound(Bounder):
    """Bound each wait by the waits of the jobs whose simulated futures were most like those of this one.

    The median of its starts in `MachineFutures` says which of the last waits were forecast alike; these and all waits
    are two sources of quantiles, which follow their misses and are mixed by score (`TrackedQuantiles`).

    The cost of the futures, O(8,000) and O(waiting jobs) for each submission, in compiled code.

    References
    ----------
    docs/algorithms.md#bounds-from-futures (Smith 1999, section 3; Gibbs 2024).
    """

    name: ClassVar[str] = "futures"
    Settings = FutureSettings

    def __init__(self, settings: FutureSettings) -> None:
        self._settings = settings
        self._levels = tuple(sorted({*LEVELS, settings.quantile}))
        self._machine = MachineFutures(settings.futures, arrivals=settings.arrivals)
        self._near, self._history = NearestWaits(), WaitHistory(settings.history)
        self._tracked = TrackedQuantiles(self._levels, sources=2)
        self._coverage = LiveCoverage(settings.quantile)
        self._users: dict[int | None, float] = {}
        self._told: dict[int, tuple[float, float, int | None]] = {}
        """Of each waiting job its forecast, its user's waits and its bound."""
        self._foretold: tuple[int, tuple[float, ...]] = (0, ())
        self._asked = LastAnswer(self._ask)

    def foretold(self, x: JobSubmitted, run_time: RunTimePrediction | None) -> None:
        """Take in what is predicted of the job that is asked about next."""
        self._foretold = x.job_number, () if run_time is None else run_time.histogram

    def predict_one(self, x: JobSubmitted) -> tuple[WaitBound, ...]:
        """Return the bound at submission."""
        return self._bounds(self._asked(x), self._settings.quantile, self._settings.confidence)

    def bounds_at(self, x: JobSubmitted, now: int, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bound that a job would have now, in seconds, at any quantile: between levels on a line."""
        return self._bounds(self._ask(x, now), quantile, confidence)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Learn the wait `y` in seconds."""
        self._asked.forget()
        self.updates = Updates()
        log_wait = float(np.log(y + NEAR))
        told = self._told.pop(x.job_number, None)
        if told is not None:
            forecast, user, bound = told
            self._near.add(forecast, user, x.since, y)
            self._tracked.start(x.job_number, y)
            if bound is not None and self._coverage.add(covered=y <= bound):
                self.updates = Updates(coverage=(self._cover(),))
        self._history.add(y)
        before = self._users.get(x.user_id, log_wait)
        self._users[x.user_id] = before + OF_LAST * (log_wait - before)

    def observe(self, event: Event) -> None:
        """Follow the jobs and the machine; notice that time goes on."""
        if isinstance(event, JobSubmitted):
            self._submit(event)
        else:
            self._machine.observe(event)
            if isinstance(event, JobWithdrawn):
                self._tracked.withdraw(event.job_number)
                self._told.pop(event.job_number, None)
        self._tracked.advance(float(event.time))
        self._asked.forget()

    def _submit(self, job: JobSubmitted) -> None:
        asked = self._asked(job)
        bound = None
        if asked.quantiles is not None:
            self._tracked.tell(job.job_number, float(job.since), asked.quantiles)
            bound = int(self._tracked.seconds(asked.quantiles)[self._levels.index(self._settings.quantile)])
        self._told[job.job_number] = asked.forecast, asked.user, bound
        self._machine.submit(job, self._histogram(job))

    def _histogram(self, job: JobSubmitted) -> tuple[float, ...]:
        number, histogram = self._foretold
        return histogram if number == job.job_number else ()

    def _ask(self, job: JobSubmitted, now: int | None = None) -> Asked:
        now = job.time if now is None else now
        user = self._users.get(job.user_id, float(np.log(NEAR)))
        forecast = self._forecast(job, now)
        if len(self._history) < MIN_WAITS or not len(self._near):
            return Asked(forecast, user, None)
        near, count = self._near.near(forecast, user, float(now)), len(self._history)
        ranks = np.ceil(np.array(self._levels) * count - 1e-9).astype(np.int64)
        all_waits = [at_rank([self._history], max(rank, 1)) for rank in ranks.tolist()]
        alike = near[np.maximum(np.ceil(np.array(self._levels) * len(near) - 1e-9).astype(np.int64), 1) - 1]
        return Asked(forecast, user, np.log(np.stack((alike, np.array(all_waits, dtype=np.float64)), axis=1) + NEAR))

    def _forecast(self, job: JobSubmitted, now: int) -> float:
        """Return the logarithm of the median wait in the futures of a job that is submitted now."""
        waits: Floats = np.minimum(self._machine.starts(job, self._histogram(job), now) - float(now), LONGEST)
        return float(np.log(np.median(waits) + NEAR))

    def _bounds(self, asked: Asked, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        told = {"grouping": self.name, "quantile": quantile, "confidence": confidence}
        count = len(self._history)
        if asked.quantiles is None:
            reason = f"not enough history: {count} of {MIN_WAITS} waits"
            return (WaitBound(observations=count, reason=reason, **told),)
        if not self._levels[0] <= quantile <= self._levels[-1]:
            reason = f"quantiles are told from {self._levels[0]:g} to {self._levels[-1]:g}"
            return (WaitBound(observations=count, reason=reason, **told),)
        seconds = self._tracked.seconds(asked.quantiles)
        bound = int(np.interp(quantile, self._levels, seconds))
        within = tuple((level, int(each)) for level, each in zip(self._levels, seconds.tolist(), strict=True))
        return (WaitBound(bound=bound, observations=count, starts_within=within, **told),)

    def _cover(self) -> Coverage:
        low, high = self._coverage.band
        live = {"revealed": self._coverage.revealed, "covered": self._coverage.share, "low": low, "high": high}
        return Coverage(grouping=self.name, queue=None, quantile=self._settings.quantile, **live)

    @property
    def _parts(self) -> tuple[Kept, ...]:
        return self._machine, self._near, self._history, self._tracked, self._coverage

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "parts": [each.snapshot() for each in self._parts],
            "users": list(self._users.items()),
            "told": [[number, *told] for number, told in self._told.items()],
        }

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        for each, saved in zip(self._parts, state["parts"], strict=True):
            each.restore(saved)
        self._users = dict(state["users"])
        self._told = {number: (forecast, user, bound) for number, forecast, user, bound in state["told"]}
        self._asked.forget()
