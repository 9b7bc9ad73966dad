"""Settings of policies that can be run ahead.

They are left out of a SPEC where they are not used, so that runs from before they existed go on.
"""

from typing import Literal

from pydantic import Field

from shadowtime.shared.spec import SpecKeys


class ForecastKeys(SpecKeys):
    """Settings of a policy whose waits can be forecast."""

    forecast: bool = Field(
        False,
        description="tell at each submission how long the job will wait: the policy, run ahead on predictions",
        exclude_if=lambda forecast: not forecast,
    )


class PlanKeys(ForecastKeys):
    """Settings of a policy that decides by run times."""

    plan: Literal["predicted", "requested"] = Field(
        "predicted",
        description="run times that it decides by; forecasts let jobs run as predicted either way",
        exclude_if=lambda plan: plan == "predicted",
    )
