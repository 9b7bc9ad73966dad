"""The comparison of a cluster and its shadow, as JSON has it."""

from typing import Annotated

from pydantic import Field

from shadowtime.shared.messages import Finite, Frozen

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Between(Frozen):
    """A figure and the bounds between which it lies with 95 % confidence; none where too little is known."""

    mean: Finite
    low: Finite | None
    high: Finite | None


class Both(Frozen):
    """A figure of the real cluster and of the shadow; None before there is one."""

    real: Finite | None
    shadow: Finite | None


class Started(Frozen):
    """Jobs that start sooner in the shadow than really, or later: their share, and by how many seconds.

    `quantiles` has those of 25, 50, 75 and 95 % of these jobs, within 1 %; they are told of all jobs only.
    """

    share: Share
    mean: Finite | None
    quantiles: tuple[Finite, ...] | None


class Fares(Frozen):
    """How the jobs of a class fare in both; times in seconds, differences are shadow less real."""

    shape: str
    jobs: int
    wait: Both
    median_wait: Both
    longest_wait: Both
    slowdown: Both
    wait_difference: Between | None
    wait_change: Between | None
    slowdown_difference: Between | None
    sooner: Started
    later: Started


class UserFares(Frozen):
    """How a user's jobs fare; `user` is None for nobody known, and `others` for all users that are not told apart."""

    user: int | None
    others: bool
    jobs: int
    work: int
    wait: Both
    longest_wait: Both
    sooner: Share
    later: Share


class Real(Frozen):
    """Since when a difference is real, in seconds, None if it is not yet; whether the shadow is the better one.

    `evidence` is how often the capital of the bets on it has been won, of 20 times that it takes.
    """

    since: int | None
    shorter: bool | None
    evidence: Share


class Waits(Frozen):
    """Jobs that wait at the horizon, and how long the one has that has for longest, in seconds."""

    jobs: int
    longest: int | None


class Comparison(Frozen):
    """A shadow beside the real cluster, of the jobs of the days from `first_day` to before `until`, in seconds."""

    horizon: int | None
    first_day: int | None
    until: int | None
    days: int
    withdrawn: int
    open_jobs: int
    real_waiting: Waits
    shadow_waiting: Waits
    all: Fares | None
    classes: tuple[Fares, ...]
    users: tuple[UserFares, ...]
    utilization: Both
    utilization_difference: Between | None
    wait_real: Real
    slowdown_real: Real
