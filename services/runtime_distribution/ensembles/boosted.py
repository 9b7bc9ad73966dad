"""Boosted trees over features of a job and of similar jobs. They start from the predictions of other predictors."""

from typing import Any, Final, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from shadowtime.services.runtime_distribution.ensembles.experts import ExpertsSettings, limit
from shadowtime.services.runtime_distribution.ensembles.fine_prediction import fine_prediction
from shadowtime.services.runtime_distribution.ensembles.outcomes import outcome, scale
from shadowtime.services.runtime_distribution.ensembles.recalibration import PitRecalibration
from shadowtime.services.runtime_distribution.ensembles.rows import ASKED, WIDTH, JobRows, KnownAtSubmission
from shadowtime.services.runtime_distribution.ensembles.within_bins import spread, transformed_within
from shadowtime.services.runtime_distribution.history import UNKNOWN, RememberedJob, remembered
from shadowtime.services.runtime_distribution.revisable import RunTimeSettings
from shadowtime.services.runtime_distribution.templates import TemplatesSettings
from shadowtime.shared.distributions import (
    NOT_INSTALLED,
    Fit,
    Growth,
    OutcomeRows,
    Regrowth,
    Rows,
    asked,
    bin_of,
    is_installed,
    packed_numbers,
    packed_rows,
    reachable,
    tree_scores,
    unpacked_numbers,
    unpacked_rows,
)
from shadowtime.shared.kernels import Floats, FloatTable, Integers
from shadowtime.shared.messages import Event, JobEnded, JobStarted, JobSubmitted, JobWithdrawn, RunTimePrediction
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import LastValue, Predictor

# Parameters of LightGBM for the trees of `boosted`, in addition to those of `shared.distributions.boosted_trees`.

POINT: Final[dict[str, Any]] = {
    "objective": "regression_l1",
    "learning_rate": 0.06,
    "min_data_in_leaf": 100,
    "min_sum_hessian_in_leaf": 1e-9,
}
DISTRIBUTION: Final[dict[str, Any]] = {
    "objective": "multiclass",
    "learning_rate": 0.1,
    "min_data_in_leaf": 100,
    "lambda_l2": 100.0,
}


FEWEST = 300
"""Fewest ended jobs on which trees are grown."""


MAX_FOLLOWED = 5_000
"""Maximum number of jobs in the system whose rows are stored. Trees do not learn from jobs submitted beyond this
number."""

UNSURE = 0.02
"""Share of the experts' distribution in a prediction."""

LEAST = 1e-3
"""Smallest probability of an outcome from which trees start; smaller ones are raised to it."""


class BoostedSettings(RunTimeSettings):
    """Settings of `Boosted`."""

    history: int = Field(20_000, ge=500, le=50_000, description="number of last ended jobs on which trees are grown")
    days: int = Field(7, ge=1, le=365, description="days of the log after which trees are grown anew")
    trees: int = Field(150, ge=1, le=500, description="number of trees for the run time")
    rounds: int = Field(40, ge=1, le=100, description="number of trees for each outcome: a bin, or the request")

    def price(self) -> Price:
        """Return the price of experts and templates, of the rows, and of growing trees on them."""
        others = ExpertsSettings().price().plus(TemplatesSettings(history=self.history).price())
        return others.plus(Price(100_000_000 + 3_000 * self.history, 1_000 * self.history, 15_000 * self.history))

    @model_validator(mode="after")
    def _can_be_grown(self) -> "BoostedSettings":
        if not is_installed():
            raise ValueError(NOT_INSTALLED)
        return self


class Followed(NamedTuple):
    """A job in the system, and its prediction at submission."""

    job: RememberedJob
    row: Rows | None = None
    """Input row of the trees. None if no job had ended, or beyond `MAX_FOLLOWED`."""
    outcomes: Floats | None = None
    """Fine masses (`within_bins`) before recalibration, or None if there were no trees yet."""


class Boosted(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict the run time and its distribution by gradient-boosted trees.

    The trees are grown on the rows of ended jobs at submission, which include the predictions of `experts` and
    `templates`. They are regrown every `days` days of the log, from `FEWEST` jobs on, and more often at first. Each
    event grows some of the new trees. The new trees replace the old ones once all of them are grown. Before the first
    trees, `experts` make the prediction.

    The point is the mean of two points: that of `templates`, and that of trees that minimise the absolute error in
    seconds. The distribution starts as that of the experts. Trees for each outcome, an end in a bin or at the request,
    adjust the distribution. Then the distribution is spread within the bins like the user's run times, and
    recalibrated.

    Memory is bounded by `history` and by the jobs in the system. An event is O(1), and while trees are grown
    O(`shared.distributions.boosted_trees.CELLS`). A prediction is O(trees · leaves).

    >>> boosted = Boosted(BoostedSettings(history=500, trees=20, rounds=5))
    >>> for number in range(400):
    ...     user, time = number % 2, 1000 * number
    ...     job = JobSubmitted(time=time, job_number=number, requested_processors=1, requested_time=900, user_id=user)
    ...     boosted.observe(job)
    ...     boosted.observe(JobStarted(time=time, job_number=number, processors=1))
    ...     boosted.learn_one(job, 60 if user else 600)
    ...     boosted.observe(JobEnded(time=time + 600, job_number=number, run_time=60 if user else 600))
    >>> prediction = boosted.predict_one(job)
    >>> 60 <= prediction.point < 300, prediction.at_request < 0.01
    (True, True)

    References: docs/algorithms.md#boosted-trees (Friedman 2001; Ke 2017; Lucchese 2015).
    """

    name = "boosted"
    Settings = BoostedSettings

    def __init__(self, settings: BoostedSettings) -> None:
        self._settings = settings
        self._rows = JobRows(settings.history)
        self._followed: dict[int, Followed] = {}
        self._ended = OutcomeRows(settings.history, WIDTH, outcomes=2)
        self._recalibration = PitRecalibration()
        self._growth = Regrowth(settings.days, FEWEST, self._begin_growth)
        self._point = self._histogram = (np.zeros((0, 4)), np.zeros(0, np.int64))
        self._classes = np.zeros(0, np.int64)  # outcomes among the jobs on which trees were grown
        self._new_classes = self._classes  # outcomes for the trees that are being grown
        self._ask()
        self._masses = LastValue(self._masses_of)

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the prediction, or None before any job has ended."""
        known = self._rows.known(x)
        if known is None or not self._growth.grown:
            return self._rows.experts.predict_one(x)
        point = float(tree_scores(self._point_asked, 1, known.row.astype(np.float64))[0]) * scale(x.requested_time)
        return fine_prediction(
            self._recalibration.moved(self._masses(known)),
            x,
            min(self._ended.count, self._settings.history),
            point if known.similar is None else (point + known.similar) / 2,
        )

    def _masses_of(self, known: KnownAtSubmission) -> Floats:
        """Return the fine masses (`within_bins`) of trees and experts, before recalibration."""
        numbers = known.row.astype(np.float64)
        started = numbers[ASKED:]
        scores = tree_scores(self._histogram_asked, len(self._classes), numbers) + _start(started[self._classes])
        chances = np.exp(scores - scores.max())
        outcomes = UNSURE * started
        outcomes[self._classes] += (1 - UNSURE) * chances / chances.sum()
        outcomes_within: Floats = spread(reachable(outcomes / outcomes.sum(), bin_of(known.limit)), known.parts)
        return outcomes_within

    def observe(self, event: Event) -> None:
        """Store the row of a job at its submission, track the job, and grow some trees when they are due."""
        self._follow(event)
        self._rows.observe(event)
        if (trees := self._growth.step()) is not None:
            self._use(trees)

    def _follow(self, event: Event) -> None:
        if isinstance(event, JobSubmitted):
            self._followed[event.job_number] = new = self._new(event)
            self._rows.groups.submitted(new.job, event.time)
        elif isinstance(event, JobStarted | JobWithdrawn | JobEnded):
            followed = self._followed.get(event.job_number)
            if followed is None:
                return
            if isinstance(event, JobStarted):
                self._rows.groups.started(followed.job, event.time)
            elif isinstance(event, JobWithdrawn):
                self._rows.groups.withdrawn(followed.job)
                del self._followed[event.job_number]
            else:
                self._rows.groups.left(followed.job, event.time)
                if event.requeued:
                    self._rows.groups.submitted(followed.job, event.time)
                else:
                    del self._followed[event.job_number]

                self._growth.begin_if_due(event.time, self._ended.count)

    def _new(self, x: JobSubmitted) -> Followed:
        job, known = remembered(x), self._rows.known(x)
        if known is None or len(self._followed) >= MAX_FOLLOWED:
            return Followed(job)
        return Followed(job, known.row, self._masses(known) if self._growth.grown else None)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Record the run time `y` in seconds with the job's row at submission, and update the recalibration."""
        self._rows.learn(x, y)
        followed = self._followed.get(x.job_number)
        if followed is None or followed.row is None:
            return
        self._ended.add(followed.row, y, UNKNOWN if x.requested_time is None else x.requested_time)
        if followed.outcomes is not None:
            self._recalibration.learn(*transformed_within(followed.outcomes, y, limit(x)))

    def _begin_growth(self, count: int, steps: int) -> Growth:
        """Return new trees, grown by `steps` steps so far, on the last `history` of the first `count` ended jobs."""
        rows, outcomes = self._ended.in_order(count)
        asked_of, started = np.ascontiguousarray(rows[:, :ASKED]), rows[:, ASKED:]
        scales = np.array([scale(run_time) for run_time in outcomes[:, 1].tolist()])
        shares = outcomes[:, 0] / scales
        fits = [Fit(shares, self._settings.trees, POINT, weights=scales / scales.mean())]
        classes, labels = np.unique([outcome(*row) for row in outcomes.tolist()], return_inverse=True)
        if len(classes) > 1:
            start = _start(started[:, classes].astype(np.float64))
            settings = {"num_class": len(classes), **DISTRIBUTION}
            fits.append(Fit(labels.astype(np.float64), self._settings.rounds, settings, start=start))
        self._new_classes = classes
        return Growth(asked_of, fits, steps)

    def _use(self, trees: list[tuple[FloatTable, Integers]]) -> None:
        self._classes = self._new_classes
        nothing_to_tell_apart = np.array([[-1.0, 0.0, 0.0, 0.0]]), np.zeros(1, np.int64)
        self._point, self._histogram = [*trees, nothing_to_tell_apart][:2]
        self._ask()
        self._masses.forget()

    def _ask(self) -> None:
        self._point_asked, self._histogram_asked = asked(*self._point), asked(*self._histogram)

    def snapshot(self) -> Any:
        """Return the trees, the rows on which they are regrown, and the state of groups and jobs in the system."""
        return {
            **self._rows.snapshot(),
            "followed": [
                [
                    *(number, list(entry.job), None if entry.row is None else packed_rows(entry.row)),
                    None if entry.outcomes is None else packed_numbers(entry.outcomes),
                ]
                for number, entry in self._followed.items()
            ],
            "ended": self._ended.snapshot(),
            "recalibration": self._recalibration.snapshot(),
            **self._growth.snapshot(),
            "trees": [packed_numbers(numbers) for numbers in (*self._point, *self._histogram)],
            "classes": self._classes.tolist(),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._rows.restore(state)
        self._followed = {
            number: Followed(
                RememberedJob(*job),
                None if row is None else unpacked_rows(row, WIDTH)[0],
                None if masses is None else unpacked_numbers(masses),
            )
            for number, job, row, masses in state["followed"]
        }
        self._ended.restore(state["ended"])
        self._recalibration.restore(state["recalibration"])
        nodes, roots, classes_nodes, classes_roots = map(unpacked_numbers, state["trees"])
        self._point, self._histogram = (nodes.reshape(-1, 4), roots), (classes_nodes.reshape(-1, 4), classes_roots)
        self._classes = np.array(state["classes"], np.int64)
        self._ask()
        self._growth.restore(state)


def _start(outcomes: Floats | FloatTable) -> Any:
    """Return the scores from which trees start: the logarithm of each outcome's mass, counted as at least `LEAST`."""
    return np.log(np.maximum(outcomes, LEAST))
