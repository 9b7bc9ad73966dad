"""The comparison as a table in the terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from replayer.comparison import Result, wait_bound_rows


def duration(seconds: float | None) -> str:
    """Return a time as a person reads it.

    >>> duration(93784), duration(90), duration(5), duration(None)
    ('26.1 h', '1.5 min', '5 s', '-')
    """
    if seconds is None:
        return "-"
    if seconds >= 3600:
        return f"{seconds / 3600:,.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def comparison_table(results: Sequence[Result]) -> Table:
    """Return one row per result, all of one trace."""
    plan = results[0].plan
    table = Table(
        title=f"{escape(plan.cluster)}: {len(plan.workload):,} jobs on {plan.workload.processors:,} processors",
        caption="waits from submission to start; geometric: of waits of at least 10 s; slowdown: bounded at 10 s",
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
    return table


def prediction_table(results: Sequence[Result]) -> Table:
    """Return one row per predictor and adjustment, scored against one recorded log."""
    plan, scores = results[0].plan, results[0].scores.policy
    table = Table(
        title=f"{escape(plan.cluster)}, as recorded: {len(plan.workload):,} jobs, "
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
            escape(result.plan.configuration.runtime),
            escape(result.plan.configuration.adjustment),
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
        title=f"{escape(plan.cluster)}, bounds on the wait: {escape(plan.wait_bound)}",
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


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
