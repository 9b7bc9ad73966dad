"""The comparison of policies, with their wait forecasts and wait bounds, as tables in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import inf

from shadowtime.replayer.comparison import (
    RunPlan,
    RunResult,
    baseline_of,
    coverage_shortfall,
    plans_with,
    wait_bound_rows,
)
from shadowtime.replayer.presentation.names import short_names
from shadowtime.services.catalogue import spelled, spelled_out
from shadowtime.services.scoreboard import LOWER
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import counted, work
from shadowtime.shared.spec import Spelled, parse
from shadowtime.shared.text import NOTHING, Measure, TableColumn, numbers, seconds, shares, times


def comparison_table(results: Sequence[RunResult], *, baseline: str | None = None, exact: bool = False) -> FittedTable:
    """Return a table with one row per result, sorted by mean bounded slowdown. All results are of one trace.

    Slowdowns are compared with the slowdown of the policy labelled `baseline`, by default that of `baseline_of`. With
    `exact`, times are in seconds.
    """
    plan = results[0].plan
    short = short_names(result.plan.label for result in results)
    rows = sorted(results, key=lambda result: least(result.scores.policy.mean_bounded_slowdown))
    names, scores = [short[row.plan.label] for row in rows], [row.scores.policy for row in rows]
    measure = seconds if exact else times
    chosen = baseline_of([replayed.plan.label for replayed in results], baseline)
    of_baseline = next(row.scores.policy.mean_bounded_slowdown for row in rows if row.plan.label == chosen)
    slowdowns = [score.mean_bounded_slowdown for score in scores]
    compared = [
        slowdown / of_baseline if slowdown and of_baseline and len(rows) > 1 else None for slowdown in slowdowns
    ]
    columns = [
        numbers("slowdown", slowdowns).meaning("slowdown: bounded at 10 s"),
        measure("mean wait", [score.mean_wait for score in scores]).meaning("waits from submission to start"),
        measure("longest", [score.max_wait for score in scores]),
        measure("geometric", [score.geometric_mean_wait for score in scores]).meaning(
            "geometric: each counted as at least 10 s"
        ),
        shares(f"to {short[chosen]}", compared)
        .unmarked()
        .meaning(f"to {short[chosen]}: slowdown as a share of that of the baseline"),
        shares("at once", [score.zero_wait_share for score in scores]),
        TableColumn("cpu", "s", [f"{row.cpu_seconds:.1f}" for row in rows]),
    ]
    price = [
        f"{name}: {score.killed:,} runs in vain, {work(score.wasted_processor_seconds)} wasted"
        for name, score in zip(names, scores, strict=True)
        if score.killed
    ]
    return FittedTable(
        _title(f"{plan.cluster}: {jobs_of(plan)}", rows, "mean bounded slowdown"),
        {"policy": names},
        columns,
        [
            *filter(None, [plans_with((name, *row.plan.configuration) for name, row in zip(names, rows, strict=True))]),
            replayed_by({name: row.compiled is not None for name, row in zip(names, rows, strict=True)}),
            *price,
        ],
        legend(zip(names, (spelled_out(row.plan.configuration) for row in rows), strict=True)),
    )


def replayed_by(compiled: Mapping[str, bool]) -> str:
    """Return in words how each policy was replayed: `compiled` says whether the compiled machine did it.

    >>> replayed_by({"easy": True, "best": False})
    'replayed by the compiled machine; through the pipeline: best'
    """
    others = [name for name, by_machine in compiled.items() if not by_machine]
    if len(others) == len(compiled):
        return "replayed through the pipeline"
    return "replayed by the compiled machine" + (f"; through the pipeline: {', '.join(others)}" if others else "")


def forecast_table(results: Sequence[RunResult], *, exact: bool = False) -> FittedTable:
    """Return a table with one row per result that has wait forecasts, sorted by error as a share of the mean wait.

    With `exact`, times are in seconds.
    """
    short = short_names(forecaster(result.plan) for result in results)
    known = [(row.plan, forecast) for row in results if (forecast := row.scores.wait_forecast) is not None]
    rows = sorted(known, key=lambda row: least(row[1].error_share))
    names, scores = [short[forecaster(plan)] for plan, _ in rows], [score for _, score in rows]
    measure: Measure = seconds if exact else partial(times, like=[score.mean_wait for score in scores])
    columns = [
        measure("off", [score.mean_absolute_error for score in scores]).meaning("off: mean absolute error"),
        shares("share", [score.error_share for score in scores], best=min).meaning("share: of the mean wait"),
        measure("mean wait", [score.mean_wait for score in scores]).unmarked(),
        measure("forecast", [score.mean_forecast for score in scores]).unmarked().meaning("forecast: their mean"),
        TableColumn(
            "forecasts", "jobs", [f"{score.forecasts:,} of {score.forecasts + score.without:,}" for score in scores]
        ),
    ]
    return FittedTable(
        _title(f"{results[0].plan.cluster}, waits as forecast at submission", rows, "share"),
        {"policy": names},
        columns,
        legend=legend(zip(names, (spelled_out(plan.configuration) for plan, _ in rows), strict=True)),
    )


def forecaster(plan: RunPlan) -> str:
    """Return the name of the forecaster: the run's label, or its policy and runtime predictor for a recorded log."""
    chosen = plan.configuration
    return plan.label if plan.obeyed else f"{parse(chosen.policy).name}, by {parse(chosen.runtime).name}"


def wait_bound_tables(results: Sequence[RunResult], *, exact: bool = False) -> list[FittedTable]:
    """Return a table of the wait bounds of each result. Of several, only bounds for the cluster as a whole are shown.

    With `exact`, times are in seconds.
    """
    names = short_names(result.plan.label for result in results)
    return [
        wait_bound_table([result], exact=exact, whole=len(results) > 1, policy=names[result.plan.label])
        for result in results
    ]


def wait_bound_table(
    results: Sequence[RunResult], *, exact: bool = False, whole: bool = False, policy: str | None = None
) -> FittedTable:
    """Return a table of the wait bounds of the first result, with one row per queue and grouping.

    With `exact`, times are in seconds. With `whole`, only the bounds for the cluster as a whole are shown. `policy` is
    a name for the policy that decided the starts; by default that of its SPEC.
    """
    plan = results[0].plan
    decided = under(plan) if policy is None else f" under {policy}"
    rows = [row for row in wait_bound_rows(results[0]) if row["queue"] == "all" or not whole]
    measure = seconds if exact else times
    keeps = "covered: waits no longer than their bounds"
    keeps += ", no shorter than lower ones" if any(row["grouping"].endswith(LOWER) for row in rows) else ""
    made = [f"{row['predictions']:,} of {row['predictions'] + row['without']:,}" for row in rows]
    columns = [
        shares("covered", [row["coverage"] for row in rows]).meaning(keeps),
        TableColumn(
            "95 % interval", "%", [_interval(row["coverage_low"], row["coverage_high"]) for row in rows]
        ).meaning("interval: by a bootstrap of blocks of time"),
        measure("over", [row["over_rms"] for row in rows]).meaning(
            "over: root mean square of bound minus wait, of covered waits"
        ),
        numbers("to plain", [row["ratio_to_plain"] for row in rows], 3).meaning(
            "to plain: `over` of plain bounds, divided by `over`"
        ),
        TableColumn("predicted", "jobs", made),
    ]
    queues = [str(row["queue"]) for row in rows]
    bound = spelled("wait-bound", plan.wait_bound)
    return FittedTable(
        f"{plan.cluster}, bounds on the wait{decided}: {bound.short}",
        ({} if whole else {"queue": queues}) | {"grouping": [row["grouping"] for row in rows]},
        [column.unmarked() for column in columns],
        notes=[note] if (note := coverage_shortfall(rows)) else [],
        ends=[row for row, (queue, following) in enumerate(pairwise(queues)) if queue != following],
        legend={bound.name: bound} if bound.defaults else {},
    )


def under(plan: RunPlan) -> str:
    """Return " under POLICY" if the policy decided the starts, else an empty string."""
    return f" under {parse(plan.label).name}" if plan.obeyed else ""


def _interval(low: float | None, high: float | None) -> str:
    return NOTHING if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


def jobs_of(plan: RunPlan) -> str:
    """Return the size of the replay in words: its jobs and the processors of the machine."""
    return f"{counted(len(plan.workload), 'job')} on {plan.workload.processors:,} processors"


def legend(names: Iterable[tuple[str, Spelled]]) -> dict[str, Spelled]:
    """Return the SPEC behind each name. A plain NAME without chosen keys is left out."""
    return {name: spec for name, spec in names if spec.chosen or name != spec.name}


def least(value: float | None) -> float:
    """Return the value as a sort key. An unknown value (None) sorts last."""
    return inf if value is None else value


def _title(what: str, rows: Sequence[object], key: str) -> str:
    return f"{what}, by {key}" if len(rows) > 1 else what
