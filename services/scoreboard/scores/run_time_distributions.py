"""Scores of run-time distributions: their sharpness and their calibration.

All scores are about the time for which a job occupies the machine.

The input is the probability of each outcome, as in `shared.distributions.outcomes`. The probabilities add up to 1. The
last outcome is an atom at the limit. The outcome of bin 0 is an atom at one second. Within each other bin, the
logarithm of the time is uniform; the bin of the limit ends at the limit. If the prediction has quantiles, the logarithm
is uniform between them. The log score ignores the quantiles.

References: docs/algorithms.md#errors-of-run-times (Gneiting 2007, sections 4.1 and 4.2; Czado 2009, section 2.1: PIT
with atoms).
"""

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, Final

import numpy as np

from shadowtime.services.scoreboard.batch import Batched
from shadowtime.shared.distributions import (
    count_transform,
    occupied_time,
    outcome_of,
    pieces,
    predicted_outcomes,
    transformed_in,
)
from shadowtime.shared.kernels import Floats, FloatTable, kernel
from shadowtime.shared.messages import DIGITS, RunTimePrediction

MIN_MASS: Final = 10.0**-DIGITS
"""Least mass in the log score, instead of zero: the last digit of a published probability (13.8 nats)."""

PIT_BINS: Final = 10


@kernel
def log_score(outcomes: Floats, run_time: float, limit: float) -> float:
    """Return -ln of the probability of the outcome, in nats: an end in the bin of `run_time`, or at the limit.

    A probability below `MIN_MASS` counts as `MIN_MASS`.

    >>> round(log_score(np.array([0.0, 0.0, 0.25, 0.75]), 3.0, 4.0), 4)
    1.3863
    """
    return -math.log(max(outcomes[outcome_of(run_time, limit)], MIN_MASS))


@kernel
def _squared(height: float, slope: float, low: float, begin: float, end: float) -> float:
    """Return the integral of (height + slope · ln(t / low))² over t from `begin` to `end`."""
    at_begin = height + slope * math.log(begin / low)
    at_end = height + slope * math.log(end / low)
    return (
        end * (at_end**2 - 2.0 * slope * at_end + 2.0 * slope**2)
        - begin * (at_begin**2 - 2.0 * slope * at_begin + 2.0 * slope**2)
    )  # fmt: skip


@kernel
def crps(pieces: FloatTable, outcomes: Floats, run_time: float, limit: float) -> float:
    """Return the continuous ranked probability score in seconds: ∫ (F(t) - [t >= run time])² dt, F censored at `limit`.

    It is the absolute error, generalised to distributions. A row of `pieces` has the ends of a piece in seconds, and
    its probability. Within a piece, ln t is uniform, so the integral has a closed form. O(pieces).

    >>> whole = np.array([[1.0, 1.8, 0.0], [1.8, 3.24, 1.0]])
    >>> round(crps(whole[:1], np.array([1.0, 0.0, 0.0]), 1.8, 1.8), 4)
    0.8
    >>> round(crps(whole, np.array([0.0, 0.0, 1.0, 0.0]), 1.8, 3.24), 4)
    0.4112
    """
    time = occupied_time(run_time, limit)
    reached, score = outcomes[0], 0.0
    for k in range(len(pieces)):
        low, high, mass = pieces[k]
        if reached >= 1.0 and low >= time:
            break
        if low < high:
            slope = mass / math.log(high / low)
            turn = min(max(time, low), high)
            score += _squared(reached, slope, low, low, turn) + _squared(reached - 1.0, slope, low, turn, high)

        reached += mass

    return score


@kernel
def pit_shares(pieces: FloatTable, outcomes: Floats, run_time: float, limit: float) -> Floats:
    """Return a job's shares of the histogram of the probability integral transform F(run time); shape (PIT_BINS,).

    The shares add up to 1. A job counts in one bin, but at an atom it spreads evenly over the jump of F. Over many jobs
    of a calibrated predictor all bins are equal.

    >>> pit_shares(np.array([[2.0, 4.0, 0.8]]), np.array([0.2, 0.0, 0.0, 0.8, 0.0]), 1.0, 4.0).tolist()[:3]
    [0.5, 0.5, 0.0]
    """
    begin, end = transformed_in(pieces, outcomes, run_time, limit)
    shares = np.zeros(PIT_BINS)
    count_transform(shares, begin, end)
    return shares


LIMIT, RUN_TIME, AT_REQUEST, HISTOGRAM, QUANTILES = range(5)
"""Columns of an ended job: seconds, seconds, a probability (-1 if not predicted), and the lengths of both sequences."""


@kernel
def add_jobs(jobs: FloatTable, histograms: Floats, quantiles: Floats, sums: Floats) -> FloatTable:
    """Add jobs, one after another, to `sums` in place. O(jobs). The columns of `jobs` are those above.

    `histograms` and `quantiles` have the numbers of all jobs, job by job. `sums` are those of `log_score`, `crps` and
    `pit_shares`, shape (2 + PIT_BINS,). Return the first and the last of the job's `pit_shares`, and the probability of
    an end at the limit, shape (jobs, 3).
    """
    scored, bins, levels = np.empty((len(jobs), 3)), 0, 0
    for job in range(len(jobs)):
        limit, run_time, at_request = jobs[job, LIMIT], jobs[job, RUN_TIME], jobs[job, AT_REQUEST]
        histogram = histograms[bins : bins + int(jobs[job, HISTOGRAM])]
        bins += int(jobs[job, HISTOGRAM])
        outcomes = predicted_outcomes(histogram, limit, at_request)
        within = pieces(outcomes, quantiles[levels : levels + int(jobs[job, QUANTILES])], limit)
        levels += int(jobs[job, QUANTILES])
        shares = pit_shares(within, outcomes, run_time, limit)
        sums[0] += log_score(outcomes, run_time, limit)
        sums[1] += crps(within, outcomes, run_time, limit)
        sums[2:] += shares
        scored[job, 0], scored[job, 1], scored[job, 2] = shares[0], shares[-1], outcomes[-1]

    return scored


Scored = Callable[[float, float, float], None]
"""Gets the first and the last of a job's `pit_shares`, and the probability of an end at its limit."""


class RunTimeDistributionScores(Batched):
    """Running sums over the ended jobs that had a predicted histogram; memory is constant.

    >>> scores = RunTimeDistributionScores()
    >>> example = RunTimePrediction(point=3.0, observations=9, histogram=(0.0, 0.0, 0.5, 0.5))
    >>> scores.add(example, requested_time=3600, run_time=3)
    >>> round(scores.summary()["log_score"], 4)
    0.6931
    """

    def __init__(self) -> None:
        super().__init__()
        self.jobs = 0
        self.log_score = 0.0
        self.crps = 0.0
        self.pit = [0.0] * PIT_BINS

    def add(
        self,
        prediction: RunTimePrediction,
        requested_time: int | None,
        run_time: int,
        scored: Scored | None = None,
    ) -> None:
        """Add a prediction and the actual run time in seconds. A histogram without mass is not added.

        A request of None means no limit. `scored` is called when the batch of the job is added.
        """
        if any(prediction.histogram):
            self._keep((prediction, math.inf if requested_time is None else float(requested_time), run_time, scored))

    def _take_in(self, rows: list[tuple[Any, ...]]) -> None:
        predictions: list[RunTimePrediction] = [row[0] for row in rows]
        histograms = [prediction.histogram for prediction in predictions]
        quantiles = [prediction.quantiles or () for prediction in predictions]
        jobs = np.empty((len(rows), QUANTILES + 1))
        jobs[:, LIMIT] = [row[1] for row in rows]
        jobs[:, RUN_TIME] = [row[2] for row in rows]
        jobs[:, AT_REQUEST] = [prediction.kernel_at_request for prediction in predictions]
        jobs[:, HISTOGRAM], jobs[:, QUANTILES] = list(map(len, histograms)), list(map(len, quantiles))
        sums = np.array([self.log_score, self.crps, *self.pit])
        masses, seconds = (np.fromiter(chain.from_iterable(parts), np.float64) for parts in (histograms, quantiles))
        outcomes = add_jobs(jobs, masses, seconds, sums)
        self.jobs += len(rows)
        self.log_score, self.crps, *self.pit = sums.tolist()
        for row, outcome in zip(rows, outcomes.tolist(), strict=True):
            if row[3] is not None:
                row[3](*outcome)

    def summary(self) -> dict[str, Any]:
        """Return the fields of `RunTimeScores` that follow from these sums."""
        self.fold()
        jobs = self.jobs
        return {
            "log_score": self.log_score / jobs if jobs else None,
            "crps": self.crps / jobs if jobs else None,
            "pit": tuple(share / jobs for share in self.pit) if jobs else (),
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return self._sums() | {"pit": self.pit.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(state)
        self.pit = list(state["pit"])
