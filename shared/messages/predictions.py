"""Predictions that the stages add to a job at its submission."""

import math
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from shadowtime.shared.bounds import MAX_DURATION, MAX_QUANTILES
from shadowtime.shared.distributions import BINS, LEVELS, Masses, mean_run_time, outcome_masses, told_outcomes
from shadowtime.shared.kernels import Floats
from shadowtime.shared.messages.base import AtMost, Count, FrozenModel, Name, Reasons, Request, Seconds, Whole

# How near a requested time came to the run time, as made or as adjusted.

AdjustmentClass = Literal["none", "over", "under", "bad"]

BAD_GAP = 1800
"""Seconds; a job that runs this much longer than adjusted is badly under-estimated (Tang 2013, section 4.2.2)."""


def accuracy(run_time: int, estimate: int) -> float:
    """Return the smaller over the larger of run time and estimate, in 0 to 1 (Tang 2013, equation 3).

    >>> accuracy(1800, 3600), accuracy(3600, 2880)
    (0.5, 0.8)
    """
    return min(run_time, estimate) / max(run_time, estimate, 1)


def adjustment_class(run_time: int, requested_time: int, adjusted_time: int) -> AdjustmentClass:
    """Return what an adjustment turned out to be: none, an over-, under- or bad under-estimate.

    Times in seconds. A gap of exactly 30 minutes is bad (docs/algorithms.md#classes-of-adjustments).

    >>> [adjustment_class(3600, 7200, value) for value in (7200, 5000, 3000)], adjustment_class(6900, 7200, 3600)
    (['none', 'over', 'under'], 'bad')
    """
    if adjusted_time == requested_time:
        return "none"
    gap = run_time - adjusted_time
    if gap <= 0:
        return "over"
    return "under" if gap < BAD_GAP else "bad"


Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Time = Annotated[float, Field(ge=0, le=MAX_DURATION, allow_inf_nan=False)]

DIGITS = 6
"""Decimals to which a published probability is rounded: a log of 200,000 jobs carries many."""

OFF = 0.01
"""Tolerance of the sum of probabilities around 1: more than rounding takes away."""


def _adding_up(histogram: tuple[float, ...]) -> tuple[float, ...]:
    total = sum(histogram)
    if total and abs(total - 1) > OFF:
        raise ValueError(f"probabilities that add up to {total:g}")
    return histogram


def _all_ascending(quantiles: tuple[float, ...]) -> tuple[float, ...]:
    if len(quantiles) != len(LEVELS):
        raise ValueError(f"{len(quantiles)} quantiles, not {len(LEVELS)}")
    if any(low > high for low, high in pairwise(quantiles)):
        raise ValueError("quantiles that do not ascend")
    return quantiles


Histogram = Annotated[tuple[Probability, ...], AtMost(BINS), AfterValidator(_adding_up)]
"""Probability of each bin of `shared.distributions.histogram`, adding up to 1; empty or all 0 if nothing is known."""


def published(masses: Masses) -> tuple[float, ...]:
    """Return a distribution over bins as a message has it: rounded, without zeros at its end.

    >>> import numpy as np
    >>> published(np.array([0.0, 1 / 3, 2 / 3, 0.0]))
    (0.0, 0.333333, 0.666667)
    """
    rounded: list[float] = masses.round(DIGITS).tolist()
    while not rounded[-1]:
        rounded.pop()
    return tuple(rounded)


class RunTimePrediction(FrozenModel):
    """The prediction of a job's run time at its submission.

    Parameters
    ----------
    point
        Expected run time in seconds.
    observations
        Number of ended jobs behind the prediction; says how sure it is.
    histogram
        Probability of each bin between `RunTimeBinEdges` (`EDGES` in shared/distributions/histogram.py), from bin 0 on,
        zeros at the end left out; empty from a predictor that knows a point only. It is about the job's own length:
        the request does not bound it.
    interval
        Seconds within which the predictor expects the run time, where it can say; the request does not bound it either.
    at_request
        Probability that the job comes to its request, from a predictor that tells that apart from an end shortly before
        it, which bins cannot: all else in the bin of the request and above it ends before. None where the histogram
        alone tells.
    quantiles
        Seconds, ascending, within which the job ends with probability 0.05, 0.1, … 0.95, ended at its request; from a
        predictor that knows how run times lie within a bin (shared/distributions/outcomes.py). None where the
        histogram alone tells.
    state
        Number of the hidden state that the predictor believes in most, where it believes in any.
    """

    point: Time
    observations: Count
    histogram: Histogram = ()
    interval: tuple[Time, Time] | None = None
    at_request: Probability | None = None
    quantiles: Annotated[tuple[Time, ...], AtMost(len(LEVELS)), AfterValidator(_all_ascending)] | None = None
    state: Count | None = None

    @classmethod
    def of(
        cls, masses: Masses, requested_time: int | None, observations: int, state: int | None = None
    ) -> "RunTimePrediction":
        """Return the prediction that a distribution over bins makes for a job with this request.

        The point is the mean run time of such a job, ended at its request.

        >>> import numpy as np
        >>> RunTimePrediction.of(np.array([0.0, 0.0, 1.0, 0.0]), 3600, 5).histogram
        (0.0, 0.0, 1.0)
        """
        limit, histogram = math.inf if requested_time is None else float(requested_time), published(masses)
        return cls(
            point=min(max(mean_run_time(np.array(histogram), limit), 1.0), float(MAX_DURATION)),
            observations=observations,
            histogram=histogram,
            state=state,
        )

    def outcomes(self, limit: float) -> Floats:
        """Return the probability of each outcome of a job with this request, in seconds (`distributions/outcomes.py`).

        Shape (bin of the limit + 2,), adding up to 1; the limit is infinity where there is no request. The histogram
        must have mass.

        >>> example = RunTimePrediction(point=3.0, observations=1, histogram=(0.0, 0.5, 0.5), at_request=0.1)
        >>> example.outcomes(3.0).round(9).tolist()
        [0.0, 0.5, 0.4, 0.1]
        """
        masses = np.array(self.histogram)
        masses /= masses.sum()
        return (
            outcome_masses(masses, limit) if self.at_request is None else told_outcomes(masses, limit, self.at_request)
        )


class WalltimeAdjustment(FrozenModel):
    """A requested time as it would have been, had its owner asked as the record says.

    Parameters
    ----------
    adjusted_time
        Seconds, at most the request; the request itself where the record says too little.
    observations
        Number of ended jobs behind it.
    key, window, percentile
        What those jobs have in common with this one, how far back they ended, and the percentile of their run times'
        shares of their requests that was taken; None where the record says too little.
    outcome
        What the adjustment turned out to be, once the job has ended: none, an over-, under- or bad under-estimate.
    """

    adjusted_time: Request
    observations: Count
    key: Name | None = None
    window: Name | None = None
    percentile: Annotated[int, Field(ge=1, le=100)] | None = None
    outcome: AdjustmentClass | None = None


class WaitBound(FrozenModel):
    """With `confidence`, at least a share `quantile` of such jobs wait no longer than `bound`.

    Parameters
    ----------
    grouping
        How jobs are put together: plain, static, nodes, rtime, rnprod; or ensemble, conformal.
    queue
        The queue whose jobs are behind it; None for all of the cluster.
    quantile, confidence
        In 0 to 1; a conformal bound has no confidence of its own, and bears that of the others.
    bound
        Seconds; None where there is none, with the reason.
    observations
        Number of waits behind it.
    starts_within
        For each of some quantiles, the seconds within which the job starts with that probability, at this confidence;
        only from the ensemble.
    """

    grouping: Name
    queue: Whole | None = None
    quantile: Annotated[float, Field(gt=0, lt=1)]
    confidence: Annotated[float, Field(gt=0, lt=1)]
    bound: Seconds | None = None
    observations: Count = 0
    reason: Reasons | None = None
    starts_within: Annotated[tuple[tuple[Probability, Seconds], ...], AtMost(MAX_QUANTILES)] = ()


class WaitForecast(FrozenModel):
    """How long a job will wait, told at its submission by the scheduler that will start it.

    Parameters
    ----------
    wait
        Seconds, if nothing else arrives and all jobs run as predicted; None where there is no telling.
    reason
        Why there is none.
    starts_within
        For each of some probabilities, the seconds within which the job starts with that, if nothing else arrives and
        run times are distributed as predicted; None where it is not asked for, empty where there is no telling.
    """

    wait: Seconds | None = None
    reason: Reasons | None = None
    starts_within: Annotated[tuple[tuple[Probability, Seconds], ...], AtMost(MAX_QUANTILES)] | None = None


class Coverage(FrozenModel):
    """How many of the last revealed waits were within their bounds, told when a job starts.

    Parameters
    ----------
    grouping, queue, quantile
        As of the bounds.
    revealed
        Waits that were counted, at most the last 1,000.
    covered
        Share of them that were within their bounds.
    low, high
        The band in which that share is expected to lie.
    """

    grouping: Name
    queue: Whole | None = None
    quantile: Probability
    revealed: Count
    covered: Probability
    low: Probability
    high: Probability


class ChangePoint(FrozenModel):
    """Too many waits in a row were longer than their bounds: the history before them was let go.

    Parameters
    ----------
    grouping, queue
        As of the bounds.
    lowest, highest
        The values of the grouping's variable that the group spans; None where it has no such end.
    misses
        Waits in a row beyond their bounds.
    kept
        Waits that are left.
    """

    grouping: Name
    queue: Whole | None = None
    lowest: Whole | None = None
    highest: Whole | None = None
    misses: Count
    kept: Count
