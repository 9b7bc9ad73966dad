"""Predictions that the stages add to a job at its submission."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from shadowtime.shared.bounds import MAX_BOUNDS, MAX_DURATION, MAX_QUANTILES
from shadowtime.shared.distributions import BINS, LEVELS, Masses, predicted_outcomes, rounded_mean
from shadowtime.shared.kernels import Floats
from shadowtime.shared.messages.base import (
    AtMost,
    Count,
    FrozenModel,
    Name,
    Reasons,
    Request,
    Seconds,
    Whole,
    construct_unchecked,
)

# The accuracy of requested times, as submitted and as adjusted.

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
    """Return the class of an adjustment: none, an over-, under- or bad under-estimate.

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
"""Decimals to which a published probability is rounded, because a log of 200,000 jobs contains many."""

OFF = 0.01
"""Tolerance of the sum of probabilities around 1: more than the error of rounding."""


def _adding_up(histogram: tuple[float, ...]) -> tuple[float, ...]:
    total = sum(histogram)
    if total and abs(total - 1) > OFF:
        raise ValueError(f"the probabilities add up to {total:g}, not 1")
    return histogram


def _all_ascending(quantiles: tuple[float, ...]) -> tuple[float, ...]:
    if len(quantiles) != len(LEVELS):
        raise ValueError(f"{len(quantiles)} quantiles, expected {len(LEVELS)}")
    if any(low > high for low, high in pairwise(quantiles)):
        raise ValueError("the quantiles are not in ascending order")
    return quantiles


Histogram = Annotated[tuple[Probability, ...], AtMost(BINS), AfterValidator(_adding_up)]
"""Probability of each bin of `shared.distributions.histogram`, adding up to 1; empty or all 0 if nothing is known."""


def published(masses: Masses) -> tuple[float, ...]:
    """Return a distribution over bins in the form of a message: rounded, without zeros at its end.

    >>> import numpy as np
    >>> published(np.array([0.0, 1 / 3, 2 / 3, 0.0]))
    (0.0, 0.333333, 0.666667)
    >>> published(np.zeros(3))
    ()
    """
    return _published(masses, math.inf)[0]


def _published(masses: Masses, limit: float) -> tuple[tuple[float, ...], float]:
    """Return the published form of a distribution, and the mean run time by it of jobs that request `limit` seconds."""
    rounded = np.empty(len(masses))
    count, mean = rounded_mean(masses, DIGITS, limit, rounded)
    return tuple(rounded[:count].tolist()), mean


class RunTimePrediction(FrozenModel):
    """The prediction of a job's run time at its submission.

    Parameters
    ----------
    point
        Expected run time in seconds.
    observations
        Number of ended jobs behind the prediction. It shows how reliable the prediction is.
    histogram
        Probability of each bin between `RunTimeBinEdges` (`EDGES` in shared/distributions/histogram.py), from bin 0 on,
        zeros at the end left out. Empty from a predictor that predicts a point only. It describes the job's own run
        time: the request does not bound it.
    interval
        Interval in which the predictor expects the run time, in seconds; None if it has none. The request does not
        bound it either.
    at_request
        Probability that the job reaches its request. Bins cannot distinguish this from an end shortly before the
        request; some predictors can. If this is given, all other mass in and above the bin of the request is an end
        before the request. None if the prediction is only the histogram.
    quantiles
        Seconds, ascending, within which the job ends with probability 0.05, 0.1, … 0.95, if it is cut at its request.
        They come from a predictor that knows the distribution of run times within a bin
        (shared/distributions/outcomes.py). None if the prediction is only the histogram.
    state
        Number of the most probable hidden state, from a predictor that has hidden states.
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
        """Return the prediction that a distribution over bins makes for a job with this request, in seconds.

        The point is the mean run time of such a job, ended at its request; None means no request.

        Raise `ValueError` if the masses do not add up to about 1.

        >>> import numpy as np
        >>> RunTimePrediction.of(np.array([0.0, 0.0, 1.0, 0.0]), 3600, 5).histogram
        (0.0, 0.0, 1.0)
        """
        histogram, mean = _published(masses, math.inf if requested_time is None else float(requested_time))
        if not mean >= 0.0:
            raise ValueError("the masses of a prediction are all 0, or not numbers")
        return construct_unchecked(
            cls,
            point=min(max(mean, 1.0), float(MAX_DURATION)),
            observations=observations,
            histogram=_adding_up(histogram),
            state=state,
        )

    def within_request(self, requested_time: int | None) -> "RunTimePrediction":
        """Return the prediction with a point from 1 s to the request.

        >>> RunTimePrediction(point=7200, observations=1).within_request(600).point
        600.0
        """
        point = max(1.0, self.point if requested_time is None else min(self.point, float(requested_time)))
        return self if point == self.point else self.model_copy(update={"point": point})

    @property
    def kernel_at_request(self) -> float:
        """`at_request` as kernels get it: -1 if the prediction is only the histogram."""
        return -1.0 if self.at_request is None else self.at_request

    def outcomes(self, limit: float) -> Floats:
        """Return the probability of each outcome of a job that requests `limit` seconds (`distributions/outcomes.py`).

        Shape (bin of the limit + 2,), adding up to 1. The limit is infinity if there is no request. The histogram must
        have mass.

        >>> example = RunTimePrediction(point=3.0, observations=1, histogram=(0.0, 0.5, 0.5), at_request=0.1)
        >>> example.outcomes(3.0).round(9).tolist()
        [0.0, 0.5, 0.4, 0.1]
        """
        outcomes: Floats = predicted_outcomes(np.array(self.histogram), limit, self.kernel_at_request)
        return outcomes


class RunTimeRevision(FrozenModel):
    """The prediction of a waiting or running job, made anew from what has been learned since its last prediction.

    Parameters
    ----------
    job_number
        The job.
    point
        Expected total run time in seconds, given the time that the job has run so far.
    histogram
        As in `RunTimePrediction`, not conditioned on the time that the job has run. Empty from a predictor that
        predicts a point only.
    """

    job_number: Count
    point: Time
    histogram: Histogram = ()


class WalltimeAdjustment(FrozenModel):
    """A requested time, adjusted by the history of ended jobs.

    Parameters
    ----------
    adjusted_time
        Seconds, at most the request; the request itself if there is too little history.
    observations
        Number of ended jobs behind it.
    key, window, percentile
        The attributes that those jobs share with this one, the period in which they ended, and the chosen percentile of
        their ratios of run time to request. None if there is too little history.
    outcome
        The class of the adjustment, once the job has ended: none, an over-, under- or bad under-estimate.
    """

    adjusted_time: Request
    observations: Count
    key: Name | None = None
    window: Name | None = None
    percentile: Annotated[int, Field(ge=1, le=100)] | None = None
    outcome: AdjustmentClass | None = None

    def within_request(self, requested_time: int | None) -> "WalltimeAdjustment":
        """Return the adjustment with a time of at most the request.

        >>> WalltimeAdjustment(adjusted_time=7200, observations=1).within_request(600).adjusted_time
        600
        """
        if requested_time is None or self.adjusted_time <= requested_time:
            return self
        return self.model_copy(update={"adjusted_time": requested_time})


Side = Literal["upper", "lower", "both"]
"""Side from which a quantile of waits is bounded."""


WITHOUT_CONFIDENCE = ("conformal", "futures")
"""Groupings whose bounds are estimates of the quantile, corrected by their own misses."""


class WaitBound(FrozenModel):
    """With `confidence`, at least a share `quantile` of the jobs of a group wait no longer than `bound`.

    Where waits are bounded from below, at most a share `quantile` of these jobs wait no longer than `lower`. With both,
    the quantile lies between the two with `confidence`.

    Parameters
    ----------
    grouping
        The grouping of jobs: plain, static, nodes, rtime, rnprod; or ensemble, conformal, futures.
    queue
        The queue that the waits are taken from; None for the whole cluster.
    quantile, confidence
        In 0 to 1. A conformal or futures bound has no confidence. Its field has the confidence that was asked for.
    bound
        Seconds. None if there is no bound; `reason` then says why. Also None if waits are bounded only from below.
    lower
        Seconds; None if waits are not bounded from below, or `reason` says why there is none.
    side
        `lower` or `both` where waits are bounded from below; None for an upper bound.
    observations
        Number of waits behind it.
    young
        True while few waits are known in a run that follows a cluster. The bound is wider then, because it also counts
        jobs that still wait, and stated bounds that did not hold.
    starts_within
        For each of some quantiles, the seconds within which the job starts with that probability: from the ensemble at
        this confidence, from futures without one.
    """

    grouping: Name
    queue: Whole | None = None
    quantile: Annotated[float, Field(gt=0, lt=1)]
    confidence: Annotated[float, Field(gt=0, lt=1)]
    bound: Seconds | None = None
    lower: Seconds | None = None
    side: Side | None = None
    observations: Count = 0
    reason: Reasons | None = None
    young: Literal[True] | None = None
    starts_within: Annotated[tuple[tuple[Probability, Seconds], ...], AtMost(MAX_QUANTILES)] = ()


def bound_to_show(bounds: Iterable[tuple[str, int | None, int | None]]) -> int | None:
    """Return the place of the one bound to show if only one is shown: the ensemble's, else the first of the cluster.

    The lowest of several bounds would be wrong: it holds less often than each of them.

    Parameters
    ----------
    bounds
        For each bound its grouping, its queue and its seconds, as in `WaitBound`.

    Returns
    -------
    int or None
        None if no grouping has a bound over the whole cluster.

    Examples
    --------
    >>> bound_to_show([("plain", None, 7200), ("ensemble", 1, 60), ("ensemble", None, 9000)])
    2
    """
    first = None
    for place, (grouping, queue, bound) in enumerate(bounds):
        if queue is None and bound is not None:
            if grouping == "ensemble":
                return place
            first = place if first is None else first

    return first


class WaitForecast(FrozenModel):
    """A forecast of a job's wait, made at its submission by the scheduler that will start it.

    Parameters
    ----------
    wait
        Seconds, if nothing else arrives and all jobs run as predicted; None if there is no forecast.
    reason
        The reason why there is none.
    starts_within
        For each of some probabilities, the seconds within which the job starts with this probability, if nothing else
        arrives and run times are distributed as predicted. None if these are not requested, empty if there is no
        forecast.
    """

    wait: Seconds | None = None
    reason: Reasons | None = None
    starts_within: Annotated[tuple[tuple[Probability, Seconds], ...], AtMost(MAX_QUANTILES)] | None = None


class Coverage(FrozenModel):
    """The share of the last known waits that were within their bounds, reported when a job starts.

    Parameters
    ----------
    grouping, queue, quantile
        Those of the bounds.
    revealed
        Number of known waits that were counted, at most the last 1,000.
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


class WaitRanges(FrozenModel):
    """The ranges into which a grouping divides jobs by their processors, reported when ranges are cut anew.

    Parameters
    ----------
    grouping, queue
        As in `WaitBound`. The grouping `static` has the fixed ranges of the setting `ends`, the grouping `nodes` has
        ranges that are computed from the waits.
    ends
        Upper end of each range but the last, ascending.
    waits
        Number of waits that each range remembers.
    """

    grouping: Name
    queue: Whole | None = None
    ends: Annotated[tuple[Whole, ...], AtMost(MAX_BOUNDS)] = ()
    waits: Annotated[tuple[Count, ...], AtMost(MAX_BOUNDS)]


class ChangePoint(FrozenModel):
    """Too many waits in a row were longer than their bounds, so older waits were dropped from the history.

    Parameters
    ----------
    grouping, queue
        Those of the bounds.
    lowest, highest
        The range of the grouping's variable that the group covers; None where the range has no limit.
    misses
        Number of waits in a row beyond their bounds.
    kept
        Number of waits that remain in the history.
    """

    grouping: Name
    queue: Whole | None = None
    lowest: Whole | None = None
    highest: Whole | None = None
    misses: Count
    kept: Count
