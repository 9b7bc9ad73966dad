"""The comparison as a table in the terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from replayer.comparison import Result


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


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
