"""Scores of predictions at submission, next to a comparison of policies: run times, waits and wait bounds."""

from collections.abc import Sequence

from rich.console import RenderableType

from shadowtime.replayer.comparison import RunPlan, RunResult
from shadowtime.replayer.presentation.policies import forecast_table, wait_bound_table
from shadowtime.replayer.presentation.predictions import prediction_table
from shadowtime.services.catalogue import canonical, configure

POLICY = "easy:forecast=yes,plan=requested,runtime=empirical"
"""EASY that decides by requests and forecasts waits from predicted run times."""


def predictions_plan(plan: RunPlan) -> RunPlan:
    """Return the plan to replay the same jobs under EASY with all predictions: run times, waits and wait bounds."""
    return plan._replace(label=POLICY, configuration=configure(POLICY), wait_bound=canonical("wait-bound", "bmbp"))


def tables(result: RunResult, policies: Sequence[RunResult] = (), *, exact: bool = False) -> Sequence[RenderableType]:
    """Return the tables of prediction scores of one replay, and of other predictors that policies have used.

    With `exact`, times are in seconds.
    """
    by_predictor = {result.plan.configuration.runtime: result}
    for other in policies:
        if other.scores.run_time.predictions:
            by_predictor.setdefault(other.plan.configuration.runtime, other)
    return [
        prediction_table([*by_predictor.values()], exact=exact),
        forecast_table([result], exact=exact),
        wait_bound_table([result], exact=exact, whole=True),
    ]
