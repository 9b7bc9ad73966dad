"""JSON schema of the comparison of a cluster and its shadow."""

from typing import Annotated

from pydantic import Field

from shadowtime.shared.messages import Finite, FrozenModel

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ConfidenceInterval(FrozenModel):
    """A figure and the bounds of its 95 % confidence interval. The bounds are None if there are too few data."""

    mean: Finite
    low: Finite | None
    high: Finite | None


class Pair(FrozenModel):
    """A figure of the real cluster and of the shadow; None if there is none yet."""

    real: Finite | None
    shadow: Finite | None


class Started(FrozenModel):
    """Jobs that start sooner in the shadow than on the cluster, or later: their share, and mean difference in seconds.

    `quantiles` has the 25, 50, 75 and 95 % quantiles of the difference over these jobs, within 1 %. They exist only in
    the result of all jobs.
    """

    share: Share
    mean: Finite | None
    quantiles: tuple[Finite, ...] | None


class ClassResult(FrozenModel):
    """Waits and slowdowns of the jobs of a shape, or of all. Times in seconds; differences are shadow minus real."""

    shape: str
    jobs: int
    wait: Pair
    median_wait: Pair
    longest_wait: Pair
    slowdown: Pair
    wait_difference: ConfidenceInterval | None
    wait_change: ConfidenceInterval | None
    slowdown_difference: ConfidenceInterval | None
    sooner: Started
    later: Started


class UserFares(FrozenModel):
    """Waits of a user's jobs in seconds. `user` is None if unknown. `others` marks the sums of all other users.

    `work` is in processor-seconds. `sooner` and `later` are shares of the jobs.
    """

    user: int | None
    others: bool
    jobs: int
    work: int
    wait: Pair
    longest_wait: Pair
    sooner: Share
    later: Share


class Real(FrozenModel):
    """The second since which a difference is real, and whether the shadow is better; both are None before that.

    `evidence` is the capital of the bets as a multiple of the first capital. A difference is real at 20.
    """

    since: int | None
    shorter: bool | None
    evidence: Share


class Waits(FrozenModel):
    """Number of jobs that wait at the horizon, and the longest of their waits so far, in seconds."""

    jobs: int
    longest: int | None


class Comparison(FrozenModel):
    """A shadow compared with the real cluster, on the jobs from `first_day` until before `until`. Times in seconds."""

    horizon: int | None
    first_day: int | None
    until: int | None
    days: int
    withdrawn: int
    open_jobs: int
    real_waiting: Waits
    shadow_waiting: Waits
    all: ClassResult | None
    classes: tuple[ClassResult, ...]
    users: tuple[UserFares, ...]
    utilization: Pair
    utilization_difference: ConfidenceInterval | None
    wait_real: Real
    slowdown_real: Real
    by_predictions: bool = False
    """Whether the shadow predicts unknown run times, so that its waits may be half or double the true ones."""
