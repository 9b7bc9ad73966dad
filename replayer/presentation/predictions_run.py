"""Predictions at submission, scored beside a comparison of policies: run times, waits and bounds on waits."""

from collections.abc import Sequence

from rich.console import RenderableType

from shadowtime.replayer.comparison import RunPlan, RunResult
from shadowtime.replayer.presentation.policies import forecast_table, wait_bound_table
from shadowtime.replayer.presentation.predictions import prediction_table
from shadowtime.services.catalogue import canonical, configure

POLICY = "easy:forecast=yes,plan=requested,runtime=empirical"
"""Decides as EASY does, by requests; its forecasts go by predicted run times."""


def predictions_plan(plan: RunPlan) -> RunPlan:
    """Return the replay of the same jobs under EASY in which everything is predicted that can be."""
    return plan._replace(label=POLICY, configuration=configure(POLICY), wait_bound=canonical("wait-bound", "bmbp"))


def tables(result: RunResult, *, exact: bool = False) -> Sequence[RenderableType]:
    """Return how predictions of one replay fared; with `exact`, times are in seconds."""
    return [
        prediction_table([result], exact=exact),
        forecast_table([result], exact=exact),
        wait_bound_table([result], exact=exact, whole=True),
    ]
