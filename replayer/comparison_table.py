"""The comparison as a table in the terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from shadowtime.replayer.comparison import Plan, Result
from shadowtime.replayer.comparison_json import wait_bound_rows
from shadowtime.shared.command_line import one_line
from shadowtime.shared.formatting import duration, work
from shadowtime.shared.spec import parse

MAX_SPEC_LENGTH = 80
"""Characters; `--json` has the whole."""


def comparison_table(results: Sequence[Result]) -> Table:
    """Return one row per result, all of one trace."""
    plan = results[0].plan
    table = Table(
        title=f"{_cluster(plan)}: {len(plan.workload):,} jobs on {plan.workload.processors:,} processors",
        caption="waits from submission to start; geometric: each counted as at least 10 s; slowdown: bounded at 10 s",
    )
    table.add_column("policy", overflow="fold", min_width=9)
    for heading in ("mean wait", "geometric", "longest", "slowdown", "at once", "cpu"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        scores = result.scores.policy
        table.add_row(
            escape(result.plan.label),
            duration(scores.mean_wait),
            duration(scores.geometric_mean_wait),
            duration(scores.max_wait),
            "-" if scores.mean_bounded_slowdown is None else f"{scores.mean_bounded_slowdown:,.2f}",
            _share(scores.zero_wait_share),
            f"{result.cpu_seconds:.1f} s",
        )
        if scores.killed:
            price = f"{scores.killed:,} runs in vain, {work(scores.wasted_processor_seconds)} wasted"
            table.caption = f"{table.caption}\n{escape(result.plan.label)}: {price}"
    return table


def forecast_table(results: Sequence[Result]) -> Table:
    """Return one row per result whose policy forecast waits, all of one trace.

    Apart from the comparison: on 80 columns that has no room for more beside the names of policies.
    """
    table = Table(
        title=f"{_cluster(results[0].plan)}, waits as forecast at submission",
        caption="off: mean absolute error; share: of the mean wait",
    )
    table.add_column("policy", overflow="fold", min_width=9)
    for heading in ("forecast", "mean forecast", "mean wait", "off", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        if (found := result.scores.wait_forecast) is not None:
            table.add_row(
                escape(_forecaster(result.plan)),
                f"{found.forecasts:,} of {found.forecasts + found.without:,}",
                duration(found.mean_forecast),
                duration(found.mean_wait),
                duration(found.mean_absolute_error),
                _share(found.error_share),
            )
    return table


def _forecaster(plan: Plan) -> str:
    """Return what was run ahead: of a recorded log the label tells nothing of it."""
    chosen = plan.configuration
    return plan.label if plan.obeyed else f"{parse(chosen.policy).name}, by {_cut(chosen.runtime)}"


def prediction_table(results: Sequence[Result]) -> Table:
    """Return one row per predictor and adjustment, scored against one recorded log."""
    plan, scores = results[0].plan, results[0].scores.policy
    table = Table(
        title=f"{_cluster(plan)}, as recorded: {len(plan.workload):,} jobs, "
        f"mean wait {duration(scores.mean_wait)}, longest {duration(scores.max_wait)}",
        caption="error: mean absolute error of run times, the request standing in where nothing was predicted; "
        "accuracy: of requests as adjusted; 30 min short: jobs that ran so much longer than adjusted",
    )
    for heading in ("run times", "adjustment"):
        table.add_column(heading, overflow="fold")
    for heading in ("predicted", "error", "mean run", "accuracy", "30 min short"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        run_time, adjustment = result.scores.run_time, result.scores.adjustment
        table.add_row(
            escape(_cut(result.plan.configuration.runtime)),
            escape(_cut(result.plan.configuration.adjustment)),
            f"{run_time.predictions:,} of {run_time.jobs:,}",
            duration(run_time.mean_absolute_error),
            duration(run_time.mean_run_time),
            _share(adjustment.mean_accuracy),
            _share(adjustment.bad),
        )
    return table


def wait_bound_table(results: Sequence[Result]) -> Table:
    """Return one row per queue and grouping of the bounds on the waits of one recorded log."""
    plan = results[0].plan
    table = Table(
        title=f"{_cluster(plan)}, bounds on the wait: {escape(plan.wait_bound)}",
        caption="covered: waits no longer than their bounds; over: root mean square of bound less wait among those; "
        "to plain: that of plain bounds divided by it",
    )
    table.add_column("queue", justify="right", no_wrap=True)
    table.add_column("grouping", no_wrap=True)
    for heading in ("covered", "over", "to plain", "predicted"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = wait_bound_rows(results[0])
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        ratio = row["ratio_to_plain"]
        table.add_row(
            str(row["queue"]),
            escape(row["grouping"]),
            _share(row["coverage"]),
            duration(row["over_rms"]),
            "-" if ratio is None else f"{ratio:.3f}",
            f"{row['predictions']:,} of {row['predictions'] + row['without']:,}",
            end_section=following is None or following["queue"] != row["queue"],
        )
    return table


def _cluster(plan: Plan) -> str:
    return escape(one_line(plan.cluster))


def _cut(spec: str) -> str:
    """Return what of a SPEC a narrow column has room for: a set of templates would make a row of a hundred lines."""
    return spec if len(spec) <= MAX_SPEC_LENGTH else f"{spec[: MAX_SPEC_LENGTH - 1]}…"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
