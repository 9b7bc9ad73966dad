"""What the stages add to a job at its submission."""

import math
from typing import Annotated

from pydantic import Field

from shared.message import Count, Frozen, Request, Seconds
from shared.run_time_bins import BINS, Masses, mean_run_time
from shared.walltime_accuracy import AdjustmentClass

Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

DIGITS = 6
"""Decimals to which a published probability is rounded: a log of 200,000 jobs carries many."""


class RunTimePrediction(Frozen):
    """What is known about a job's run time when it is submitted.

    Parameters
    ----------
    point
        Expected run time in seconds.
    observations
        Number of ended jobs behind the prediction; says how sure it is.
    histogram
        Probability of each bin of `shared.run_time_bins`, from bin 0 on, zeros at the end left out; empty from a
        predictor that knows a point only. It is about the job's own length: the request does not bound it.
    """

    point: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    observations: Count
    histogram: Annotated[tuple[Probability, ...], Field(max_length=BINS)] = ()

    @classmethod
    def of(cls, masses: Masses, requested_time: int | None, observations: int) -> "RunTimePrediction":
        """Return the prediction that a distribution over bins makes for a job with this request.

        The point is the mean run time of such a job, ended at its request.

        >>> import numpy as np
        >>> RunTimePrediction.of(np.array([0.0, 0.0, 1.0, 0.0]), 3600, 5).histogram
        (0.0, 0.0, 1.0)
        """
        limit = math.inf if requested_time is None else float(requested_time)
        rounded = masses.round(DIGITS)
        return cls(
            point=max(mean_run_time(rounded, limit), 1.0),
            observations=observations,
            histogram=tuple(rounded[: rounded.nonzero()[0][-1] + 1].tolist()),
        )


class WalltimeAdjustment(Frozen):
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
    key: str | None = None
    window: str | None = None
    percentile: Annotated[int, Field(ge=1, le=100)] | None = None
    outcome: AdjustmentClass | None = None


class WaitBound(Frozen):
    """With `confidence`, at least `quantile` of such jobs wait no longer than `bound` seconds."""

    grouping: str
    quantile: float
    confidence: float
    bound: Seconds | None = None
