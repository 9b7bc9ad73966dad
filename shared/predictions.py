"""What the stages add to a job at its submission."""

from typing import Annotated

from pydantic import Field

from shared.message import Count, Frozen, Request, Seconds


class RunTimePrediction(Frozen):
    """What is known about a job's run time when it is submitted.

    Parameters
    ----------
    point
        Expected run time in seconds.
    observations
        Number of ended jobs behind the prediction; says how sure it is.
    """

    point: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    observations: Count


class WalltimeAdjustment(Frozen):
    """A requested time as it would have been, had its owner asked as the record says."""

    adjusted_time: Request
    observations: Count


class WaitBound(Frozen):
    """With `confidence`, at least `quantile` of such jobs wait no longer than `bound` seconds."""

    grouping: str
    quantile: float
    confidence: float
    bound: Seconds | None = None
