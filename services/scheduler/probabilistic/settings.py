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

    tau: float = Field(0.05, gt=0, le=1, description="a candidate starts if its measure (criterion) is below this")
    criterion: Literal["exact", "paper", "gain"] = Field(
        "exact",
        description="measure that must be below tau: the exact probability of a delay (exact), or the paper's lower "
        "bound on it (paper). With `gain`, it is the head's greatest expected cost over the candidate's expected "
        "gain, both as slowdowns.",
    )
    accept_easy_safe: bool = Field(
        False,
        description="candidates that EASY with requested times would start are started without cost to the budget",
    )
    budget: float = Field(
        1.0,
        ge=0,
        le=1,
        description="maximum probability of a delay for one head, over all passes; once it is spent, plain EASY "
        "decides",
    )
    patience: Annotated[float, Field(ge=0)] = Field(
        math.inf,
        description="factor on the longest wait so far; the product is the longest allowed wait. No start may delay a "
        "head beyond the end of this wait or its promised start, whichever is later. Candidates that have waited for "
        "half of the longest allowed wait are tried first.",
    )
    points: int = Field(1, ge=1, le=16, description="instants in each bin at which a job may end; the paper has one")
    mass: Literal["truncate", "censor"] = Field(
        "truncate",
        description="probability above the request is dropped (truncate), or counts as an end at the request (censor)",
    )
    recalibrate: Literal["no", "stated", "yes"] = Field(
        "no",
        description="recalibrate the delay probability by the outcomes of earlier candidates: report it beside the "
        "raw one (stated), or also decide by it (yes)",
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
