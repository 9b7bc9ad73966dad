"""The results of a comparison as JSON, as `--json` gives them and the report reads them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan, RunResult
from shadowtime.replayer.logs import columns_replayed, lacks_of, overlaps
from shadowtime.services.catalogue import spelled_out
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote


def drift_rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return one row per result of which something was predicted, with its episodes; times in seconds of the log."""
    return [
        {"policy": result.plan.label, "runtime": result.plan.configuration.runtime} | bound.model_dump()
        for result in results
        if (bound := result.scores.drifts) is not None
    ]


# The policy with which all others are compared.

PREFERRED = "easy"
"""Policy of most machines, and the baseline of most papers."""


def baseline_of(policies: Sequence[str], wanted: str | None = None) -> str:
    """Return the one that is wanted; if none is, EASY where it is among the policies, else the first.

    Raises
    ------
    SettingsError
        If the one that is wanted is not among them.

    Examples
    --------
    >>> baseline_of(["fcfs", "easy", "lwf"]), baseline_of(["lwf", "wfp"]), baseline_of(["fcfs", "easy"], "fcfs")
    ('easy', 'lwf', 'fcfs')
    """
    if wanted is None:
        return PREFERRED if PREFERRED in policies else policies[0]
    if wanted not in policies:
        raise SettingsError(f"--baseline {quote(wanted)}: not among the policies {', '.join(policies)}")
    return wanted


def as_json(
    results: Sequence[RunResult],
    rewritten: Mapping[str, str] | None = None,
    predicted: RunResult | None = None,
    baseline: str | None = None,
) -> dict[str, Any]:
    """Return the results of one trace as `--json` gives them; times in seconds, shares in 0 to 1.

    `rewritten` tells what was done to the trace or to the way it was replayed before a plan was made. `told` is the
    replay in which everything was predicted, where there is one, `baseline` the policy to compare the others with.
    """
    plan = results[0].plan
    workload = plan.workload
    schedules = results if plan.obeyed else results[:1]  # the recorded one is the same in every pass
    return {
        "trace": workload.name,
        "cluster": plan.cluster,
        "processors": workload.processors,
        "jobs": len(workload),
        "skipped": workload.skipped,
        "aligned": workload.aligned,
        **(_oddities(plan) if workload.whole else {}),
        "settings": {
            "mode": plan.mode,
            "obeyed": plan.obeyed,
            "baseline": baseline_of([result.plan.label for result in results], baseline),
            **(rewritten or {}),
            "wait_bound": plan.wait_bound,
            "seed": plan.seed,
            "capacity": [[change.time, change.processors] for change in plan.capacity],
            "restartable": plan.traits.restartable,
            "moldable": plan.traits.moldable,
            "speedup": None if plan.traits.speedup is None else plan.traits.speedup.model_dump(),
        },
        "policies": [_policy_row(result) for result in schedules],
        "requests_as_run_times": requests_as_run_times(plan),
        "run_time_predictions": list(map(_run_time_row, results)),
        "walltime_adjustments": [
            {"scheme": result.plan.configuration.adjustment} | result.scores.adjustment.model_dump()
            for result in results
        ],
        "wait_bounds": [row for result in schedules for row in wait_bound_rows(result)],
        "wait_forecasts": _forecast_rows(results),
        "told_at_submission": None
        if predicted is None
        else {
            "run_time_predictions": [_run_time_row(predicted)],
            "wait_bounds": wait_bound_rows(predicted),
            "wait_forecasts": _forecast_rows([predicted]),
        },
    } | {
        name: rows
        for name, rows in (
            ("start_distributions", start_rows(results)),
            ("cut_probabilities", cut_rows(results)),
            ("expected_starts", expected_rows(results)),
            ("drifts", drift_rows(results)),
        )
        if rows
    }


def _run_time_row(result: RunResult) -> dict[str, Any]:
    return {
        "policy": result.plan.label,
        "predictor": result.plan.configuration.runtime,
    } | result.scores.run_time.model_dump()


def _forecast_rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    return [
        {"policy": result.plan.label, "runtime": result.plan.configuration.runtime}
        | result.scores.wait_forecast.model_dump()
        | {"configuration": str(spelled_out(result.plan.configuration))}
        for result in results
        if result.scores.wait_forecast
    ]


def start_rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return one row per result and distribution of the wait; none where no quantiles were forecast."""
    return [
        {"policy": result.plan.label, "runtime": result.plan.configuration.runtime} | entry.model_dump()
        for result in results
        for entry in result.scores.starts or ()
    ]


def cut_rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return how probabilities of being cut at the request fared, one row per result that told of starts as well."""
    return [
        {"policy": result.plan.label, "runtime": result.plan.configuration.runtime} | result.scores.cuts.model_dump()
        for result in results
        if result.scores.cuts and result.scores.starts
    ]


def expected_rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return one row per result and queue, the cluster as a whole first; none where the site expected nothing."""
    return [
        {"policy": result.plan.label, "runtime": result.plan.configuration.runtime}
        | {"queue": "all" if bound.queue is None else bound.queue}
        | bound.model_dump(exclude={"queue"})
        for result in results
        for bound in result.scores.expected_starts or ()
    ]


def _policy_row(result: RunResult) -> dict[str, Any]:
    plan, calibration = result.plan, result.scores.calibration
    return (
        {
            "policy": plan.label,
            "runtime": plan.configuration.runtime,
            "adjustment": plan.configuration.adjustment,
        }
        | result.scores.policy.model_dump(exclude={"jobs"})
        | {
            "elapsed_seconds": round(result.elapsed_seconds, 3),
            "cpu_seconds": round(result.cpu_seconds, 3),
            "calibration": calibration.model_dump() if calibration else None,
            "configuration": str(spelled_out(plan.configuration)),
        }
        | _portfolio(result)
    )


def _portfolio(result: RunResult) -> dict[str, Any]:
    """Return what a policy that moves between several configurations says of them; nothing of another."""
    standings = result.scores.portfolio
    return {} if standings is None else {"portfolio": standings.model_dump()}


def _oddities(plan: RunPlan) -> dict[str, Any]:
    """Return what the log does not tell, and where more processors were in use than there are."""
    columns = columns_replayed(plan.workload)
    return {
        "lacks": [lack._asdict() for lack in lacks_of(columns)],
        "overlaps": []
        if plan.obeyed
        else [overlap._asdict() for overlap in overlaps(columns, plan.workload.processors)],
    }


def requests_as_run_times(plan: RunPlan) -> dict[str, float]:
    """Return how far off requests are as predictions of run times: what a predictor must beat; times in seconds.

    Of jobs that ran, and had a limit.
    """
    jobs = error = ran = 0
    for block in plan.workload.blocks():
        columns = block.columns
        known = (columns["run_time"] >= 0) & (columns["requested_time"] < MAX_DURATION)
        requested, run_time = columns["requested_time"][known], columns["run_time"][known]
        run_time = np.minimum(run_time, requested) if plan.obeyed else run_time
        jobs, ran = jobs + len(run_time), ran + int(run_time.sum())
        error += int(np.abs(requested - run_time).sum())

    return {"mean_absolute_error": error / max(jobs, 1), "mean_run_time": ran / max(jobs, 1)}


def wait_bound_rows(result: RunResult) -> list[dict[str, Any]]:
    """Return one row per queue and grouping, the cluster as a whole first; times in seconds.

    `coverage_low` and `coverage_high` are a 95 % interval of the coverage, of the cluster as a whole.
    """
    scores, seconds = result.scores.wait_bounds, result.wait_bound_seconds
    plain = {(score.queue, score.quantile): score.over_rms for score in scores if score.grouping == "plain"}
    rows = []
    for score in scores:
        over_rms = plain.get((score.queue, score.quantile))
        interval = result.coverage.get(score.grouping) if score.queue is None else None
        rows.append(
            {
                "queue": "all" if score.queue is None else score.queue,
                "grouping": score.grouping,
                "quantile": score.quantile,
                "confidence": score.confidence,
                "predictions": score.predictions,
                "coverage": score.coverage,
                "coverage_low": interval.low if interval else None,
                "coverage_high": interval.high if interval else None,
                "over_rms": score.over_rms,
                "ratio_to_plain": over_rms / score.over_rms if over_rms is not None and score.over_rms else None,
                "seconds": None if seconds is None else round(seconds, 3),
                "without": score.without,
                "windows": score.windows,
                "windows_within": score.windows_within,
                "policy": result.plan.label,
            }
        )

    return rows
