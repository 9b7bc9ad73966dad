"""How far predictions of a job failed, each in 0 to 1, as what drifts is found by: docs/algorithms.md#drift."""

from collections.abc import Sequence
from typing import Final

from shadowtime.services.scoreboard.coverage import BoundKind
from shadowtime.services.scoreboard.drift import Statistic
from shadowtime.shared.drifts import HALF, LONGER, OFF, OUTSIDE, SHORTER, TOO_SHORT, TWICE
from shadowtime.shared.predictions import RunTimePrediction
from shadowtime.shared.walltime_accuracy import adjustment_class

TENTH: Final = 0.1
"""The share of jobs that end in the first, and in the last, tenth of their predicted distributions, if these hold."""

IN_THE_LAST: Final = Statistic("run_time", LONGER, TENTH)
IN_THE_FIRST: Final = Statistic("run_time", SHORTER, TENTH)
IN_EITHER: Final = Statistic("run_time", OUTSIDE, 2 * TENTH)
TWICE_AS_LONG: Final = Statistic("run_time", TWICE, 0.0)
HALF_AS_LONG: Final = Statistic("run_time", HALF, 0.0)
BADLY_ADJUSTED: Final = Statistic("adjustment", TOO_SHORT, 0.0)
BADLY_FORECAST: Final = Statistic("forecast", OFF, 0.0)

Outcome = tuple[Statistic, float]


def of_run_time(told: RunTimePrediction, pit: Sequence[float] | None, run_time: int) -> list[Outcome]:
    """Return how a prediction failed, by the tenths of its probability integral transform and by its point.

    Nothing of one that rests on no job: it is a guess.

    >>> told = RunTimePrediction(point=100.0, observations=3)
    >>> [(statistic.what, failed) for statistic, failed in of_run_time(told, None, 300)]
    [('twice', 1.0), ('half', 0.0)]
    """
    if not told.observations:
        return []
    failed = [(TWICE_AS_LONG, float(run_time > 2 * told.point)), (HALF_AS_LONG, float(2 * run_time < told.point))]
    if pit is not None:
        failed += [(IN_THE_LAST, pit[-1]), (IN_THE_FIRST, pit[0]), (IN_EITHER, min(pit[0] + pit[-1], 1.0))]
    return failed


def of_adjustment(run_time: int, requested_time: int, adjusted_time: int) -> list[Outcome]:
    """Return whether an adjusted request was too short by half an hour or more; nothing of one left as it was."""
    found = adjustment_class(run_time, requested_time, adjusted_time)
    return [] if found == "none" else [(BADLY_ADJUSTED, float(found == "bad"))]


def of_forecast(forecast: int, wait: int) -> Outcome:
    """Return how far off a forecast was: its error over the sum of forecast and wait, in seconds.

    >>> of_forecast(100, 100)[1], of_forecast(0, 60)[1], of_forecast(30, 10)[1]
    (0.0, 1.0, 0.5)
    """
    return BADLY_FORECAST, abs(forecast - wait) / max(forecast + wait, 1)


def of_bound(kind: BoundKind, *, missed: bool) -> Outcome:
    """Return whether a bound was missed; of its quantile so many may be."""
    return Statistic("wait_bound", kind.grouping, round(1.0 - kind.quantile, 9)), float(missed)
