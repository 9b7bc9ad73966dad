"""Settings of conservative backfilling: orders, guarantees, speculation, shapes."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from shadowtime.services.scheduler.adaptation import Mode
from shadowtime.services.scheduler.order_settings import Drawn, OrderedSettings, one_order

WHEN = ("no", "expected")


def _share(value: object) -> object:
    if value in WHEN:
        return value
    try:
        share = float(str(value))
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError("expected a share above 0 and at most 1, expected, or no")
    return share


class ConservativeSettings(OrderedSettings):
    """Settings of `Conservative`."""

    order: Drawn = Field("BF", description="another name for `queue`, of six of the orders; BF: as they came")
    guarantees: bool = Field(True, description="a job never starts later than first planned; no: all is planned anew")
    speculate: Annotated[float | Literal["no", "expected"], BeforeValidator(_share)] = Field(
        "no",
        description="run jobs on trial in holes that last for this share of their estimate, or where the wait that is "
        "expected to be saved exceeds the work that is expected to be wasted, by their run-time distributions",
    )
    test_runs: bool = Field(
        False,
        description="jobs that request over 3 hours are run for 5 to 15 minutes, once, where they cannot be "
        "speculated on",
    )
    shape: Mode = Field(
        "requested",
        description="moldable jobs run on half or a quarter of the processors, or on what lets them end first: "
        "greedy of requested, half and double size, greedy-narrow of requested, half and, up to 3 hours, a quarter",
    )
    widen: bool = Field(
        False, description="moldable jobs that start are doubled in size while processors are left in the plan"
    )
    plan: Literal["predicted", "requested"] = Field(
        "predicted", description="run times that jobs are planned for and put in order by"
    )
    weight: float = Field(
        0.0, ge=0, le=1e6, description="of the delay in seconds, which counts against what jobs are sorted by"
    )

    @field_validator("order")
    @classmethod
    def _once(cls, order: str, info: ValidationInfo) -> str:
        if order != "BF":
            one_order("queue", info)
        return order
