"""Settings that policies share: their use of predictions and adjusted requests, and wait forecasts.

To stay short, a SPEC omits settings with default values.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from shadowtime.services.scheduler.work_limits import AHEAD, FUTURES
from shadowtime.shared.bounds import MAX_LIVE_JOBS
from shadowtime.shared.spec import Price, SpecSettings


def unless_default(default: Any, description: str) -> Any:
    """Return a pydantic field that a SPEC spells out only if its value differs from `default`."""
    return Field(default, description=description, exclude_if=lambda value: value == default)


class PolicySettings(SpecSettings):
    """Settings of every policy: the uses of adjusted requests, and the corrections of outlived predictions.

    The regular scheme of Tang 2013 turns on `adjust_queue`, `adjust_candidates` and `running`. The selective scheme
    leaves `running` off (docs/algorithms.md#uses-of-an-adjusted-request). The settings have no effect on jobs without
    adjusted requests or predictions, and some have none on the decisions of some policies.

    Parameters
    ----------
    adjust_queue
        Whether orders by run time use adjusted requests, for the queue and for candidates.
    adjust_candidates
        Whether a waiting job is planned to run for at most its adjusted request. A job that starts keeps that plan
        until the next pass.
    running
        Whether a running job is planned to run for at most its adjusted request. `tables.expected_end` defines the
        expected end of a job that has outlived its adjusted request.
    distribution
        The use of adjusted requests in a policy that weighs run-time distributions. `limit`: the adjusted request
        replaces the request as the upper end of a distribution. For waiting jobs this needs `adjust_candidates`, for
        running jobs `running`. `prior`: the adjusted request reweighs the distribution (`tables.enqueue.reweighted`).
        `ignore`: the adjusted request has no effect.
    fallback
        The corrections of an outlived prediction: see `tables.expected_end`.
    """

    adjust_queue: bool = unless_default(True, "orders by run time use adjusted requests")
    adjust_candidates: bool = unless_default(True, "a waiting job is planned to run for at most its adjusted request")
    running: bool = unless_default(
        False,
        "a running job is planned to run for at most its adjusted request; after that, each pass expects five more "
        "minutes",
    )
    distribution: Literal["limit", "prior", "ignore"] = unless_default(
        "limit",
        "adjusted requests limit the run-time distributions (limit), reweigh them (prior), or have no effect on them "
        "(ignore)",
    )
    fallback: Literal["request", "incremental"] = unless_default(
        "request",
        "a job that has outlived its prediction is planned to run to its request, or to the next correction of EASY++ "
        "(incremental)",
    )

    def price(self) -> Price:
        """Return the price of sorting and walking through all jobs in a pass."""
        return Price(memory=400 * MAX_LIVE_JOBS, steps=4_000 * MAX_LIVE_JOBS)


QUANTILES = ("sampled", "calibrated")
"""Kinds of forecast that also have quantiles."""


def _as_asked(value: object) -> object:
    return value if value in QUANTILES else _yes_or_no(value, "expected yes, no, sampled or calibrated")


def _wait_alone(value: object) -> object:
    if value in QUANTILES:
        raise ValueError("this policy cannot forecast quantiles; forecast=yes forecasts the wait alone")
    return _yes_or_no(value, "expected yes or no")


def _yes_or_no(value: object, expected: str) -> bool:
    if isinstance(value, bool):
        return value
    if value not in ("yes", "no"):
        raise ValueError(expected)
    return value == "yes"


Forecast = Annotated[bool | Literal["sampled", "calibrated"], BeforeValidator(_as_asked)]
"""Whether waits are forecast. `sampled` adds quantiles from many futures; `calibrated` corrects them by outcomes."""

ALONE = "forecast the wait of each job at its submission: {what} is run ahead on predicted run times"
"""Description of the key `forecast` of a policy that cannot forecast quantiles."""

FORECAST = (
    f"{ALONE}. `sampled` adds quantiles, from 200 futures with run times drawn from the predicted distributions. "
    "`calibrated` also corrects these quantiles by the outcomes of earlier forecasts."
)
"""Description of the key `forecast`."""


def price_of_forecast(forecast: Forecast) -> Price:
    """Return the price of a forecast at each submission."""
    if not forecast:
        return Price()
    return Price(memory=30_000_000, steps=FUTURES if forecast in QUANTILES else AHEAD)


class ForecastSettings(PolicySettings):
    """Settings of a policy whose waits can be forecast, but not their quantiles."""

    forecast: Annotated[bool, BeforeValidator(_wait_alone)] = unless_default(False, ALONE.format(what="the policy"))

    def price(self) -> Price:
        """Return the price of passes and of a forecast."""
        return super().price().plus(price_of_forecast(self.forecast))


class PlanSettings(ForecastSettings):
    """Settings of a policy whose decisions depend on run times."""

    plan: Literal["predicted", "requested"] = unless_default(
        "predicted", "run times by which the policy decides; forecasts always let jobs run as predicted"
    )
