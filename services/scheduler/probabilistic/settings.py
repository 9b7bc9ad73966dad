"""Settings of backfilling by probability."""

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from shadowtime.services.scheduler.ordering import BY_PRIORITY, OrderedSettings, Weight, one_order, require_foretold
from shadowtime.services.scheduler.settings import FORECAST, Forecast, unless_default

CALLED = {"sjbf": "1/L", "expected": "1/L"}
"""Orders of candidates by what the key `order` calls them."""

SYNONYMS = {"BF": "fcfs", "1/L": "expected"}
"""What other policies call orders of ours."""


class ProbabilisticSettings(OrderedSettings):
    """Settings of `Probabilistic`."""

    tau: float = Field(0.05, gt=0, le=1, description="a candidate starts if it delays the head with less than this")
    criterion: Literal["exact", "paper", "gain"] = Field(
        "exact",
        description="compare tau with the exact probability, with the paper's bound on it from below, or with the "
        "slowdown that the head is expected to lose at most for each unit that the candidate gains",
    )
    order: Annotated[
        Literal["fcfs", "sjbf", "expected", "P", "R", "P/L", "R/L"],
        BeforeValidator(lambda order: SYNONYMS.get(order, order)),
    ] = Field(
        "fcfs",
        description="another name for `candidates`: fcfs (also BF), as the queue; sjbf, spf by request; expected (also "
        "1/L), spf by prediction; or one of four more of the orders",
    )
    accept_easy_safe: bool = Field(
        False, description="yes: whatever plain EASY would start on the requests starts, at no cost to the budget"
    )
    budget: float = Field(
        1.0, ge=0, le=1, description="the probability of having been delayed that one head is put to; then plain EASY"
    )
    patience: Annotated[float, Field(ge=0)] = Field(
        math.inf,
        description="no start puts a head at risk of waiting longer than this many times the longest wait so far, or "
        "than it was first promised; candidates that have waited for half as long are tried before all others",
    )
    points: int = Field(1, ge=1, le=16, description="instants in each bin at which a job may end; the paper has one")
    mass: Literal["truncate", "censor"] = Field(
        "truncate", description="what a prediction has above the request is left out, or happens at the request"
    )
    recalibrate: Literal["no", "stated", "yes"] = Field(
        "no",
        description="mend the probability of delay by what came of earlier candidates: state it so beside the raw one, "
        "which decides (stated), or decide by it too (yes)",
    )
    weight: Weight = 0.0
    forecast: Forecast = unless_default(False, FORECAST.format(what="EASY in this order of the queue"))

    @field_validator("forecast")
    @classmethod
    def _in_order(cls, forecast: Forecast, info: ValidationInfo) -> Forecast:
        require_foretold(forecast, BY_PRIORITY, info)
        return forecast

    @field_validator("order")
    @classmethod
    def _once(cls, order: str, info: ValidationInfo) -> str:
        if order != "fcfs":
            one_order("candidates", info)
        return order
