"""The comparison of a cluster and its shadow, as JSON has it."""

from typing import Annotated

from pydantic import Field

from shadowtime.shared.messages import Finite, FrozenModel

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ConfidenceInterval(FrozenModel):
    """A figure and the bounds between which it lies with 95 % confidence; none where too little is known."""

    mean: Finite
    low: Finite | None
    high: Finite | None


class Pair(FrozenModel):
    """A figure of the real cluster and of the shadow; None before there is one."""

    real: Finite | None
    shadow: Finite | None


class Started(FrozenModel):
    """Jobs that start sooner in the shadow than really, or later: their share, and by how many seconds.

    `quantiles` has those of 25, 50, 75 and 95 % of these jobs, within 1 %; they are told of all jobs only.
    """

    share: Share
    mean: Finite | None
    quantiles: tuple[Finite, ...] | None


class ClassResult(FrozenModel):
    """How the jobs of a class fare in both; times in seconds, differences are shadow less real."""

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
    """How a user's jobs fare; `user` is None for nobody known, and `others` for all users that are not told apart."""

    user: int | None
    others: bool
    jobs: int
    work: int
    wait: Pair
    longest_wait: Pair
    sooner: Share
    later: Share


class Real(FrozenModel):
    """Since when a difference is real, in seconds, None if it is not yet; whether the shadow is the better one.

    `evidence` is how often the capital of the bets on it has been won, of 20 times that it takes.
    """

    since: int | None
    shorter: bool | None
    evidence: Share


class Waits(FrozenModel):
    """Jobs that wait at the horizon, and how long the one has that has for longest, in seconds."""

    jobs: int
    longest: int | None


class Comparison(FrozenModel):
    """A shadow beside the real cluster, of the jobs of the days from `first_day` to before `until`, in seconds."""

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
