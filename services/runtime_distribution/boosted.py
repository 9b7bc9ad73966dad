"""Boosted trees over what is known of a job and of jobs like it, grown anew as the log goes on."""

import math
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from shadowtime.services.runtime_distribution.boosted_trees import Rows, grown, is_installed, said
from shadowtime.services.runtime_distribution.job_features import FEATURES, JobGroups
from shadowtime.services.runtime_distribution.remembered_jobs import UNKNOWN, RememberedJob, as_predicted, remembered
from shadowtime.services.runtime_distribution.request_outcomes import bin_masses, outcome, scale
from shadowtime.shared.arrays import IntegerTable
from shadowtime.shared.events import Event, JobEnded, JobStarted, JobSubmitted, JobWithdrawn
from shadowtime.shared.formatting import DAY
from shadowtime.shared.packed_table import packed, packed_numbers, unpacked, unpacked_numbers
from shadowtime.shared.predictions import RunTimePrediction, published
from shadowtime.shared.predictor import Predictor
from shadowtime.shared.run_time_bins import BINS
from shadowtime.shared.spec import SpecSettings

FEWEST = 300
"""Ended jobs without which no tree is grown."""

EARLY = 5_000
"""Ended jobs up to which trees are also grown anew whenever there are half as many again."""

MAX_FOLLOWED = 5_000
"""Jobs in the system of which is kept what was known at their submission; from those beyond no tree learns."""

UNSURE = 0.02
"""Share of everybody's outcomes in a distribution."""

POINT: dict[str, Any] = {
    "objective": "regression_l1",
    "learning_rate": 0.06,
    "min_data_in_leaf": 100,
    "min_sum_hessian_in_leaf": 1e-9,
}
DISTRIBUTION: dict[str, Any] = {
    "objective": "multiclass",
    "learning_rate": 0.1,
    "min_data_in_leaf": 50,
    "lambda_l2": 1.0,
}


class BoostedSettings(SpecSettings):
    """Settings of `Boosted`."""

    history: int = Field(20_000, ge=500, le=50_000, description="ended jobs that trees are grown on, the last ones")
    days: int = Field(14, ge=1, le=365, description="days of the log after which trees are grown anew")
    trees: int = Field(150, ge=1, le=500, description="trees that say the run time")
    rounds: int = Field(40, ge=1, le=100, description="trees for each outcome that say the histogram")

    @model_validator(mode="after")
    def _can_be_grown(self) -> "BoostedSettings":
        if not is_installed():
            raise ValueError("it takes LightGBM, which is not installed: pip install 'shadowtime[boosted]'")
        return self


class Followed(NamedTuple):
    """A job in the system: as it was submitted, and its features then (None beyond `MAX_FOLLOWED`)."""

    job: RememberedJob
    row: Rows | None


class Boosted(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict the median run time, and its distribution, by gradient-boosted trees.

    The trees are grown on what was known of each ended job as it was submitted: every `days` of the log, from
    `FEWEST` jobs on, and more often at first; until then nothing is predicted. The point is by trees for the least
    absolute error in seconds, the histogram by trees for each outcome: an end in a bin, or at the request.

    Memory is bounded by `history` and by the jobs in the system. An event is O(1), a prediction O(trees · depth).

    Examples
    --------
    >>> boosted = Boosted(BoostedSettings(history=500, trees=20, rounds=5))
    >>> for number in range(400):
    ...     user, time = number % 2, 1000 * number
    ...     job = JobSubmitted(time=time, job_number=number, requested_processors=1, requested_time=900, user_id=user)
    ...     boosted.observe(job)
    ...     boosted.observe(JobStarted(time=time, job_number=number, processors=1))
    ...     boosted.learn_one(job, 60 if user else 600)
    ...     boosted.observe(JobEnded(time=time + 600, job_number=number, run_time=60 if user else 600))
    >>> prediction = boosted.predict_one(job)
    >>> 60 <= prediction.point < 300, prediction.observations
    (True, 400)

    References
    ----------
    docs/algorithms.md#boosted-trees (Friedman 2001; Ke 2017).
    """

    name = "boosted"
    Settings = BoostedSettings

    def __init__(self, settings: BoostedSettings) -> None:
        self._settings = settings
        self._groups = JobGroups(settings.history)
        self._followed: dict[int, Followed] = {}
        self._rows = np.zeros((0, FEATURES), np.float32)  # a ring, from `_ended` mod history on once it is full
        self._outcomes = np.zeros((0, 2), np.int64)  # run time and request in seconds of each
        self._ended = self._grown = 0  # jobs learned, and as trees were last grown
        self._period = 0
        self._point = self._histogram = (np.zeros((0, 4)), np.zeros(0, np.int64))
        self._classes = np.zeros(0, np.int64)  # outcomes that trees know
        self._frequencies = np.zeros(0)

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the prediction, or None before trees have been grown."""
        if not self._grown:
            return None
        job = remembered(x)
        row = self._groups.features(job, x.time).astype(np.float32).astype(np.float64)
        limit = math.inf if x.requested_time is None else float(x.requested_time)
        point = float(said(*self._point, 1, row)[0]) * scale(job.requested_time)
        scores = said(*self._histogram, len(self._classes), row)
        chances = np.exp(scores - scores.max())
        outcomes = np.zeros(BINS + 1)
        outcomes[self._classes] = (1 - UNSURE) * chances / chances.sum() + UNSURE * self._frequencies
        return RunTimePrediction(
            point=as_predicted(point, x),
            observations=min(self._ended, self._settings.history),
            histogram=published(bin_masses(outcomes, limit)),
        )

    def observe(self, event: Event) -> None:
        """Keep what is known of a job at its submission, follow it, and grow trees when it is time."""
        if isinstance(event, JobSubmitted):
            job = remembered(event)
            row = self._groups.features(job, event.time).astype(np.float32)
            self._followed[event.job_number] = Followed(job, row if len(self._followed) < MAX_FOLLOWED else None)
            self._groups.submitted(job, event.time)
        elif isinstance(event, JobStarted | JobWithdrawn | JobEnded):
            known = self._followed.get(event.job_number)
            if known is None:
                return
            if isinstance(event, JobStarted):
                self._groups.started(known.job, event.time)
            elif isinstance(event, JobWithdrawn):
                self._groups.withdrawn(known.job)
                del self._followed[event.job_number]
            else:
                self._groups.left(known.job, event.time)
                if event.requeued:
                    self._groups.submitted(known.job, event.time)
                else:
                    del self._followed[event.job_number]
                self._grow_if_due(event.time)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Remember the run time `y` in seconds, with what was known of the job as it was submitted."""
        self._groups.learn(remembered(x), y)
        known = self._followed.get(x.job_number)
        if known is None or known.row is None:
            return
        at = self._ended % self._settings.history
        if at == len(self._rows):
            more = min(max(at, 1_000), self._settings.history - at)
            self._rows = np.concatenate((self._rows, np.zeros((more, FEATURES), np.float32)))
            self._outcomes = np.concatenate((self._outcomes, np.zeros((more, 2), np.int64)))
        self._rows[at] = known.row
        self._outcomes[at] = y, UNKNOWN if x.requested_time is None else x.requested_time
        self._ended += 1

    def _grow_if_due(self, time: int) -> None:
        """Grow trees anew once a period of the log has passed, or while there are few jobs with half as many again."""
        period, new = time // (self._settings.days * DAY), self._ended - self._grown
        early = self._ended < EARLY and new >= self._grown / 2
        if self._ended >= FEWEST and (early or (period != self._period and new > 0)):
            self._grow()
            self._period, self._grown = period, self._ended

    def _remembered(self) -> tuple[Rows, IntegerTable]:
        """Return features and outcomes of the jobs, oldest first."""
        order = np.arange(max(0, self._ended - self._settings.history), self._ended) % self._settings.history
        return self._rows[order], self._outcomes[order]

    def _grow(self) -> None:
        rows, outcomes = self._remembered()
        run_times, requests = outcomes.T
        scales = np.array([scale(each) for each in requests.tolist()])
        self._point = grown(rows, run_times / scales, self._settings.trees, scales / scales.mean(), **POINT)
        labels = [outcome(*each) for each in outcomes.tolist()]
        self._classes, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
        self._frequencies = counts / len(labels)
        if len(self._classes) == 1:  # nothing to tell apart
            self._histogram = np.array([[-1.0, 0.0, 0.0, 0.0]]), np.zeros(1, np.int64)
        else:
            self._histogram = grown(
                rows, inverse.astype(np.float64), self._settings.rounds, num_class=len(counts), **DISTRIBUTION
            )

    def snapshot(self) -> Any:
        """Return the trees, what they are to be grown on next, and what is known of groups and jobs in the system."""
        rows, outcomes = self._remembered()
        return {
            "groups": self._groups.snapshot(),
            "followed": [
                [number, list(each.job), None if each.row is None else packed(each.row.tobytes())]
                for number, each in self._followed.items()
            ],
            "rows": packed(rows.astype("<f4").tobytes()),
            "outcomes": packed_numbers(outcomes),
            "counts": [self._ended, self._grown, self._period],
            "trees": [packed_numbers(each) for each in (*self._point, *self._histogram)],
            "classes": self._classes.tolist(),
            "frequencies": self._frequencies.tolist(),
        }

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self._groups.restore(state["groups"])
        self._followed = {
            number: Followed(RememberedJob(*job), None if row is None else _unpacked_rows(row)[0])
            for number, job, row in state["followed"]
        }
        self._ended, self._grown, self._period = state["counts"]
        rows, outcomes = _unpacked_rows(state["rows"]), unpacked_numbers(state["outcomes"]).reshape(-1, 2)
        first = self._ended % len(rows) if self._ended > len(rows) else 0  # where the oldest of a full ring lies
        self._rows, self._outcomes = np.roll(rows, first, axis=0), np.roll(outcomes, first, axis=0)
        nodes, roots, classes_nodes, classes_roots = map(unpacked_numbers, state["trees"])
        self._point, self._histogram = (nodes.reshape(-1, 4), roots), (classes_nodes.reshape(-1, 4), classes_roots)
        self._classes = np.array(state["classes"], np.int64)
        self._frequencies = np.array(state["frequencies"], np.float64)


def _unpacked_rows(text: str) -> Rows:
    return np.frombuffer(unpacked(text), "<f4").reshape(-1, FEATURES).astype(np.float32)
