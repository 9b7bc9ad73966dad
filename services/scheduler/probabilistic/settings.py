"""Settings of probabilistic backfilling."""

import math
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from shadowtime.services.scheduler.ordering import BY_PRIORITY, OrderedSettings, Weight, require_forecast
from shadowtime.services.scheduler.probabilistic.outcomes import MAX_FOLLOWED
from shadowtime.services.scheduler.settings import FORECAST, Forecast, price_of_forecast, unless_default
from shadowtime.services.scheduler.work_limits import WALKED
from shadowtime.shared.spec import Price


class ProbabilisticSettings(OrderedSettings):
    """Settings of `Probabilistic`."""

    tau: float = Field(0.05, gt=0, le=1, description="a candidate starts if it delays the head with less than this")
    criterion: Literal["exact", "paper", "gain"] = Field(
        "exact",
        description="compare tau with the exact probability, with the paper's bound on it from below, or with the "
        "slowdown that the head is expected to lose at most for each unit that the candidate gains",
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

    def price(self) -> Price:
        """Return the price of passes, of their walks over possible ends, of followed candidates and of a forecast."""
        walks = Price(memory=50_000_000, steps=WALKED)
        followed = Price() if self.recalibrate == "no" else Price(memory=600 * MAX_FOLLOWED, steps=400_000_000)
        return super().price().plus(walks, followed, price_of_forecast(self.forecast))

    @field_validator("forecast")
    @classmethod
    def _in_order(cls, forecast: Forecast, info: ValidationInfo) -> Forecast:
        require_forecast(forecast, BY_PRIORITY, info)
        return forecast
