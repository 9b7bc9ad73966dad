"""The results of a comparison as a JSON document, for `--json` and for the report."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan, RunResult
from shadowtime.replayer.logs import columns_of_workload, lacks_of, overlaps
from shadowtime.services.catalogue import spelled_out
from shadowtime.services.scheduler import POLICIES
from shadowtime.services.scoreboard import LOWER
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote
from shadowtime.shared.spec import parse

# The baseline: the policy with which all others are compared.

PREFERRED = "easy"
"""Default baseline: the policy of most machines, and the baseline of most papers."""


def baseline_of(policies: Sequence[str], wanted: str | None = None) -> str:
    """Return the baseline policy: `wanted` unless it is None, else EASY if it is among the policies, else the first.

    Raise `SettingsError` if `wanted` is not among the policies.

    Examples
    --------
    >>> baseline_of(["fcfs", "easy", "lwf"]), baseline_of(["lwf", "wfp"]), baseline_of(["fcfs", "easy"], "fcfs")
    ('easy', 'lwf', 'fcfs')
    """
    if wanted is None:
        return PREFERRED if PREFERRED in policies else policies[0]
    if wanted not in policies:
        raise SettingsError(
            f"--baseline {quote(wanted)}: not among the policies {', '.join(policies)}; replay it, too, with --policy"
        )
    return wanted


_BY_REQUESTS = re.compile(r"[(,]plan=requested[,)]")


def plans_with(rows: Iterable[tuple[str, str, str, str]]) -> str:
    """Return in words which run times policies plan with, from the name, SPEC, predictor and adjustment of each.

    FCFS is left out: it plans nothing. A plug-in may plan with something else, so it is only given the times. The text
    is empty if no policy plans.

    >>> plans_with([("easy", "easy", "requested", "none"), ("mine", "easy(weight=1)", "hmm(states=2)", "auto")])
    'easy plans with requests; mine plans with predictions (hmm), adjusted (auto)'
    >>> plans_with([("a", "fcfs(forecast=yes)", "hmm", "none"), ("b", "easy(plan=requested)", "hmm", "none")])
    'b plans with requests'
    """
    names: dict[str, list[str]] = {}
    for name, policy, *specs in rows:
        predictor, adjustment = (parse(spec).name for spec in specs)
        asked = predictor == "requested" or _BY_REQUESTS.search(policy)
        times = "requests" if asked else f"predictions ({predictor})"
        of = policy.partition("(")[0]
        ours = getattr(POLICIES.classes.data.get(of), "__module__", "").startswith("shadowtime.")
        verb = "plan{s} with" if ours else "{is} given"
        if of != "fcfs":
            uses = times if adjustment == "none" else f"{times}, adjusted ({adjustment})"
            names.setdefault(f"{verb} {uses}", []).append(name)
    return "; ".join(
        f"{', '.join(those)} {uses.format(s='s' * (len(those) == 1), **{'is': 'is' if len(those) == 1 else 'are'})}"
        for uses, those in names.items()
    )


def as_json(
    results: Sequence[RunResult],
    rewritten: Mapping[str, str] | None = None,
    predicted: RunResult | None = None,
    baseline: str | None = None,
) -> dict[str, Any]:
    """Return the results of one trace as the `--json` document. Times are in seconds, shares from 0 to 1.

    `rewritten` has settings that changed the trace or its replay before the plans were made. `predicted` is the
    separate replay with all predictions, if there is one. `baseline` is the policy to compare the others with.
    """
    plan = results[0].plan
    workload = plan.workload
    schedules = results if plan.obeyed else results[:1]  # a recorded schedule is the same in every run
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
            (
                "start_distributions",
                [_run(result) | start.model_dump() for result in results for start in result.scores.starts or ()],
            ),
            (
                "cut_probabilities",
                [
                    _run(result) | result.scores.cuts.model_dump()
                    for result in results
                    if result.scores.cuts and result.scores.starts
                ],
            ),
            ("expected_starts", expected_rows(results)),
            (
                "drifts",
                [
                    _run(result) | result.scores.drifts.model_dump()
                    for result in results
                    if result.scores.drifts is not None
                ],
            ),
        )
        if rows
    }


def _run(result: RunResult) -> dict[str, Any]:
    return {"policy": result.plan.label, "runtime": result.plan.configuration.runtime}


def _run_time_row(result: RunResult) -> dict[str, Any]:
    workload = result.scores.prediction_workload
    return {
        "policy": result.plan.label,
        "predictor": result.plan.configuration.runtime,
        **result.scores.run_time.model_dump(),
        "prediction_workload": workload and workload.model_dump(),
    }


def _forecast_rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    return [
        _run(result)
        | result.scores.wait_forecast.model_dump()
        | {"configuration": str(spelled_out(result.plan.configuration))}
        for result in results
        if result.scores.wait_forecast
    ]


def expected_rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return one row per result and queue, the whole cluster first. No rows if the site stated no expected starts."""
    return [
        _run(result) | {"queue": "all" if bound.queue is None else bound.queue} | bound.model_dump(exclude={"queue"})
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
    """Return the members, their scores and changes, of a policy that switches between members; empty for others."""
    standings = result.scores.portfolio
    return {} if standings is None else {"portfolio": standings.model_dump()}


def _oddities(plan: RunPlan) -> dict[str, Any]:
    """Return the facts that the log lacks, and the recorded starts at which too many processors were in use."""
    columns = columns_of_workload(plan.workload)
    return {
        "lacks": [lack._asdict() for lack in lacks_of(columns, plan.workload.stated_columns)],
        "overlaps": []
        if plan.obeyed
        else [overlap._asdict() for overlap in overlaps(columns, plan.workload.processors)],
    }


def requests_as_run_times(plan: RunPlan) -> dict[str, Any]:
    """Return the mean absolute error of requests as run-time predictions, in seconds: the baseline of predictors.

    `jobs` is the number of jobs with a known run time and a limit. The error and the mean run time are of these jobs
    alone; None without such a job.
    """
    jobs = error = ran = 0
    for block in plan.workload.blocks():
        columns = block.columns
        known = (columns["run_time"] >= 0) & (columns["requested_time"] < MAX_DURATION)
        requested, run_time = columns["requested_time"][known], columns["run_time"][known]
        run_time = np.minimum(run_time, requested) if plan.obeyed else run_time
        jobs, ran = jobs + len(run_time), ran + int(run_time.sum())
        error += int(np.abs(requested - run_time).sum())

    means = {"mean_absolute_error": error / jobs if jobs else None, "mean_run_time": ran / jobs if jobs else None}
    return {"jobs": jobs, **means}


def is_worse(scores: Mapping[str, Any], requests: Mapping[str, Any]) -> bool:
    """Return whether the mean absolute error of a predictor (`scores`) is at least 1 % larger than that of requests.

    False if an error is unknown or some jobs had no request: the predictor is scored on those, too, so the errors
    cannot be compared.
    """
    ours, asked = scores["mean_absolute_error"], requests["mean_absolute_error"]
    return None not in (ours, asked) and requests["jobs"] >= scores["jobs"] and bool(ours > 1.01 * asked)


def wait_bound_rows(result: RunResult) -> list[dict[str, Any]]:
    """Return one row per queue and grouping of the wait bounds, the whole cluster first. Times are in seconds.

    `coverage_low` and `coverage_high` are a 95 % interval of the coverage, for the whole cluster only.
    """
    scores, seconds = result.scores.wait_bounds, result.wait_bound_seconds
    plain = {(score.grouping, score.queue, score.quantile): score.over_rms for score in scores}
    rows = []
    for score in scores:
        _, *lower = score.grouping.partition(LOWER)
        over_rms = plain.get(("".join(["plain", *lower]), score.queue, score.quantile))
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
