"""Settings of bounds on waits."""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from shadowtime.services.wait_bound.binomial import minimum_history
from shadowtime.shared.spec import Price, SpecSettings

MAX_WAITS = 400_000
"""Maximum number of waits that all queues and the cluster together remember in one grouping.

Each of them remembers at most `history` waits. If this exceeds the maximum, all remember a half or a quarter of
`history`. With a `history` of 20,000, it is a half for 20 to 39 queues, and a quarter from 40 queues on.
"""


class HistorySettings(SpecSettings):
    """Settings of all bounds."""

    quantile: float = Field(
        0.95, ge=0.01, le=0.999, description="share of jobs that is to wait no longer than the bound"
    )
    confidence: float = Field(
        0.95,
        ge=0.01,
        le=0.999,
        description="probability that at least the share `quantile` of jobs waits no longer than the bound",
    )
    history: int = Field(20_000, ge=100, le=50_000, description="waits that are remembered, in each queue and group")

    @field_validator("history")
    @classmethod
    def _long_enough(cls, history: int, info: ValidationInfo) -> int:
        if {"quantile", "confidence"} <= info.data.keys():
            quantile, confidence = info.data["quantile"], info.data["confidence"]
            need = minimum_history(quantile, confidence)
            if history < need:
                raise ValueError(f"quantile={quantile} and confidence={confidence} need at least {need} waits")
        return history


class BoundSettings(HistorySettings):
    """Settings of `BmbpBounds`."""

    gamma: float = Field(
        0.05,
        gt=0,
        le=1,
        description="share of its error by which the level of the conformal bound moves with the first scored job",
    )
    publish: Literal["all", "plain", "static", "nodes", "rtime", "rnprod", "ensemble", "conformal"] = Field(
        "all",
        description="all bounds, or one: of all jobs (plain), by fixed ranges of processors (static), by ranges of "
        "processors (nodes), requested time (rtime) or their product (rnprod) that follow the waits, by the best of "
        "these five (ensemble), or by a level that follows its own misses (conformal)",
    )

    def price(self) -> Price:
        """Return the price of the waits that the cluster and all queues remember in each grouping."""
        waits = max(MAX_WAITS, self.history)
        return Price(memory=500 * waits + 65 * 50_000, steps=5_000 * self.history + 200_000_000)
