"""Settings of all adjustment schemes."""

from typing import Literal

from pydantic import Field

from shadowtime.shared.spec import SpecSettings


class AdjustmentSettings(SpecSettings):
    """Settings of every scheme that adjusts."""

    threshold: float = Field(0.5, ge=0, le=1, description="no request is cut below this share of itself; 0: no limit")
    minimum: int = Field(10, ge=1, le=10_000, description="fewest ended jobs of a key for an adjustment")
    rank: Literal["nearest", "cobalt"] = Field(
        "nearest",
        description="position of a percentile among sorted ratios: nearest rank, or the index of the Cobalt scheduler",
    )
