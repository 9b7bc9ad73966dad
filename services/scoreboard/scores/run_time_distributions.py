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
from typing import Any, Final

import numpy as np

from shadowtime.shared.distributions import (
    NO_QUANTILES,
    count_transform,
    occupied_time,
    outcome_of,
    pieces,
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


@kernel
def score(outcomes: Floats, quantiles: Floats, run_time: float, limit: float) -> tuple[float, float, Floats]:
    """Return `log_score`, `crps` and `pit_shares` of a job. `quantiles` are as for `pieces`."""
    within = pieces(outcomes, quantiles, limit)
    shares = pit_shares(within, outcomes, run_time, limit)
    return log_score(outcomes, run_time, limit), crps(within, outcomes, run_time, limit), shares


class RunTimeDistributionScores:
    """Running sums over the ended jobs that had a predicted histogram; memory is constant.

    >>> scores = RunTimeDistributionScores()
    >>> example = RunTimePrediction(point=3.0, observations=9, histogram=(0.0, 0.0, 0.5, 0.5))
    >>> pit = scores.add(example, requested_time=3600, run_time=3)
    >>> round(scores.summary()["log_score"], 4)
    0.6931
    """

    def __init__(self) -> None:
        self.jobs = 0
        self.log_score = 0.0
        self.crps = 0.0
        self.pit = [0.0] * PIT_BINS

    def add(
        self, prediction: RunTimePrediction, requested_time: int | None, run_time: int, outcomes: Floats | None = None
    ) -> list[float] | None:
        """Add a prediction and the actual run time in seconds. Return the job's `pit_shares`.

        A histogram without mass is not added, and None is returned. A request of None means no limit. `outcomes` are
        the prediction's outcomes with this limit, if the caller has them already.
        """
        if outcomes is None and not any(prediction.histogram):
            return None
        limit = math.inf if requested_time is None else float(requested_time)
        if outcomes is None:
            outcomes = prediction.outcomes(limit)
        quantiles = NO_QUANTILES if prediction.quantiles is None else np.array(prediction.quantiles)
        self.jobs += 1
        in_nats, in_seconds, of_transform = score(outcomes, quantiles, run_time, limit)
        self.log_score += in_nats
        self.crps += in_seconds
        shares: list[float] = of_transform.tolist()
        self.pit = [total + share for total, share in zip(self.pit, shares, strict=True)]
        return shares

    def summary(self) -> dict[str, Any]:
        """Return the fields of `RunTimeScores` that follow from these sums."""
        jobs = self.jobs
        return {
            "log_score": self.log_score / jobs if jobs else None,
            "crps": self.crps / jobs if jobs else None,
            "pit": tuple(share / jobs for share in self.pit) if jobs else (),
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return vars(self) | {"pit": self.pit.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(state)
        self.pit = list(state["pit"])
