"""The scores of runs as a table: one row per policy, or predictor, and cluster."""

from collections.abc import Sequence
from typing import Any

from shadowtime.replayer.comparison import Result
from shadowtime.services.catalogue import spelled_out


def result_columns(results: Sequence[Result]) -> dict[str, list[Any]]:
    """Return the columns of the table; times in seconds, shares in 0 to 1, None where there is nothing to say."""
    rows = [result_row(result) for result in results]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def result_row(result: Result) -> dict[str, Any]:
    """Return the scores of a run as one row; those of predictions have their names before them."""
    plan, scores = result.plan, result.scores
    predictions = {
        "run_time": scores.run_time.model_dump(exclude={"jobs", "pit"}),
        "adjustment": scores.adjustment.model_dump(),
        "wait_forecast": scores.wait_forecast.model_dump() if scores.wait_forecast else {},
    }
    return {
        "cluster": plan.cluster,
        "trace": plan.workload.name,
        "processors": plan.workload.processors,
        "mode": plan.mode,
        "seed": plan.seed,
        "policy": plan.label,
        "configuration": str(spelled_out(plan.configuration)),
        **scores.policy.model_dump(),
        **{f"{kind}_{name}": value for kind, of_kind in predictions.items() for name, value in of_kind.items()},
        "elapsed_seconds": result.elapsed_seconds,
        "cpu_seconds": result.cpu_seconds,
    }
