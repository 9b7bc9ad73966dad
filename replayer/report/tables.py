"""The tables of the report, made from the `--json` document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from shadowtime.replayer.comparison import coverage_shortfall, is_worse, plans_with
from shadowtime.replayer.report.charts import numbered, series
from shadowtime.replayer.report.markup import bars, cell, escape, lengths_of, table
from shadowtime.replayer.report.statistics import PairedDifferences
from shadowtime.services.scoreboard import LOWER
from shadowtime.shared.formatting import duration, percent, signed_duration, work
from shadowtime.shared.messages import WITHOUT_CONFIDENCE, WaitRanges
from shadowtime.shared.statistics import Interval
from shadowtime.shared.text import HEADINGS, TableColumn, Values, numbers, range_rows, shares, times

COLUMNS: Mapping[str, Callable[[Values], TableColumn]] = {
    "mean_wait": partial(times, "mean wait"),
    "geometric_mean_wait": partial(times, "geometric mean"),
    "max_wait": partial(times, "longest wait"),
    "mean_response": partial(times, "mean response"),
    "zero_wait_share": partial(shares, "at once"),
    "mean_bounded_slowdown": partial(numbers, "bounded slowdown"),
    "utilization": lambda values: shares("utilization", values).unmarked(),
}
WASTE: Mapping[str, Callable[[Values], TableColumn]] = {
    "killed": lambda values: numbers("runs in vain", values, 0).unmarked(),
    "wasted_processor_seconds": lambda values: TableColumn("work wasted", "", [work(amount or 0) for amount in values]),
}
"""Columns that are shown only if a policy killed runs of jobs."""

BARS = {"mean_wait": "Mean wait", "mean_bounded_slowdown": "Mean bounded slowdown", "max_wait": "Longest wait"}
Row = Mapping[str, Any]


def comparison(rows: Sequence[Row]) -> str:
    """Return the table of scores of each policy."""
    wanted = {**COLUMNS, **(WASTE if any(row["killed"] for row in rows) else {})}
    columns = {key: column([row[key] for row in rows]) for key, column in wanted.items()}
    body = [
        [
            escape(row["policy"]),
            *(
                _marked(cell(row[key], column.cells[number]), best=number in column.best)
                for key, column in columns.items()
            ),
        ]
        for number, row in enumerate(rows)
    ]
    caption = (
        "Waits from submission to start. Geometric mean: of waits, each counted as at least 10 s. Slowdown: response "
        "time over run time, bounded at 10 s." + (" Bold: the best of its column." if len(rows) > 1 else "")
    )
    keys = ("policy", "configuration", "runtime", "adjustment")
    if planned := escape(plans_with(tuple(row[key] for key in keys) for row in rows)):
        caption += f" {planned[:1].upper()}{planned[1:]}."
    heads = [f"{entry.heading}, {entry.unit}" if entry.unit else entry.heading for entry in columns.values()]
    return table(["policy", *heads], body, "Scores of each policy", caption)


def _marked(shown: str, *, best: bool) -> str:
    return f"<strong>{shown}</strong>" if best else shown


def at_a_glance(rows: Sequence[Row]) -> str:
    """Return bars of the three most important figures: mean wait, slowdown and longest wait."""
    names = [row["policy"] for row in rows]
    styles = list(map(series, numbered(names)))
    lines = []
    for key, title in BARS.items():
        values = [row[key] for row in rows]
        column = COLUMNS[key](values)
        shown = [f"{cell} {column.unit}".rstrip() for cell in column.cells]
        lengths = lengths_of(values)
        if lengths != values:
            title += " (logarithmic)"
        lines.append(bars(title, list(zip(names, lengths, shown, strict=True)), styles))

    return f'<div class="at-a-glance">{"".join(lines)}</div>'


BOUNDED = "An interval ends where one of the two policies would let no job wait."
"""A note on the intervals of differences."""


def differences(pairs: Sequence[tuple[str, PairedDifferences]], baseline: str) -> str:
    """Return the table of paired differences between jobs under two policies, for each pair of policies."""
    body = [
        [
            escape(name),
            interval_cell(group.wait, signed_duration),
            interval_cell(group.slowdown, lambda value: f"{value:+,.2f}"),
            cell(group.sooner, percent(group.sooner)),
            cell(group.later, percent(group.later)),
            cell(group.users_worse, "-" if group.users_worse is None else percent(group.users_worse)),
            cell(group.largest_growth, "-" if group.largest_growth is None else signed_duration(group.largest_growth)),
        ]
        for name, group in pairs
    ]
    caption = (
        f"The baseline is {baseline}. Each job against itself under the other policy: mean difference, and in brackets "
        "its 95 % confidence interval. Of the users with 20 jobs or more, those are worse off whose mean wait "
        "is longer by more than a minute, for one of them `by up to` so much. "
        "Consecutive jobs have similar waits, so the intervals are of a bootstrap of whole tenths of the log, "
        f"not of single jobs. {BOUNDED} An interval that spans 0 shows no difference."
    )
    head = ["policies", "wait", "bounded slowdown", "jobs that start sooner", "later", "users worse off", "by up to"]
    return table(head, body, "Differences, job by job", caption)


def interval_cell(value: Interval, show: Callable[[float], str]) -> str:
    """Return a mean, with its confidence interval in brackets below it."""
    mean = cell(value.mean, show(value.mean))
    if value.low is None or value.high is None:
        return f"{mean}<br><small>too few independent jobs for an interval</small>"
    return f"{mean}<br><small>[{show(value.low)}, {show(value.high)}]</small>"


def run_times(document: Row) -> str:
    """Return the scores of run-time predictors; empty if there were no predictions but the requests."""
    rows = [row for row in document["run_time_predictions"] if row["predictions"]]
    if not rows:
        return ""
    obeyed = document["settings"]["obeyed"]
    requests = document["requests_as_run_times"]
    body = [
        [
            escape(row["predictor"]) + (" (worse than the request)" if is_worse(row, requests) else ""),
            *([escape(row["policy"])] if obeyed else []),
            f"{row['predictions']:,} of {row['jobs']:,}",
            cell(row["mean_absolute_error"], duration(row["mean_absolute_error"])),
            cell(row["mean_run_time"], duration(row["mean_run_time"])),
            cell(row["log_score"], "-" if row["log_score"] is None else f"{row['log_score']:.3f}"),
            cell(row["crps"], duration(row["crps"])),
        ]
        for row in rows
    ]
    jobs, ended = requests["jobs"], max(row["jobs"] for row in rows)
    errors = [cell(requests[key], duration(requests[key])) for key in ("mean_absolute_error", "mean_run_time")]
    known = f"{jobs:,} of {ended:,}" if jobs < ended else "-"
    body.append(["requests", *(["-"] if obeyed else []), known, *errors, "-", "-"])
    learned = "Scored under the policy named: what a predictor has learned depends on when jobs end. " if obeyed else ""
    caption = (
        f"{learned}Where nothing was predicted, the request is the prediction. The last row is of jobs with a "
        "request. Log score in nats and continuous ranked probability score (CRPS) are of predicted distributions; "
        "less is better."
    )
    scores = ["jobs predicted", "mean absolute error", "mean run time", "log score", "CRPS"]
    head = ["run times", *(["under"] if obeyed else []), *scores]
    return table(head, body, "Run-time predictions", caption)


def adjustments(document: Row) -> str:
    """Return the scores of walltime adjustments; empty if no scheme was chosen."""
    rows = [row for row in document["walltime_adjustments"] if not row["scheme"].startswith("none")]
    if not rows:
        return ""
    keys = ("mean_accuracy_requested", "mean_accuracy", "none", "over", "under", "bad")
    cells = ((escape(row["scheme"]), *(cell(row[key], _share(row[key])) for key in keys)) for row in rows)
    body = list(dict.fromkeys(cells))  # a recorded log has the same scores in every run
    caption = (
        "Accuracy: run time over request, or the other way round where that is less. The other columns are "
        "shares of jobs: not adjusted (none), long enough (over), too short (under), and by half an hour or more (bad)."
    )
    head = ["scheme", "accuracy of requests", "adjusted", "none", "over", "under", "bad"]
    return table(head, body, "Walltime adjustments", caption)


def forecasts(document: Row) -> str:
    """Return the scores of wait forecasts; empty if no policy made any."""
    if not document["wait_forecasts"]:
        return ""
    body = [
        [
            escape(row["policy"]) + f"<br><small>run times: {escape(row['runtime'])}</small>",
            f"{row['forecasts']:,} of {row['forecasts'] + row['without']:,}",
            *(cell(row[key], duration(row[key])) for key in ("mean_forecast", "mean_wait", "mean_absolute_error")),
            cell(row["error_share"], _share(row["error_share"])),
        ]
        for row in document["wait_forecasts"]
    ]
    caption = (
        "Forecast at submission by running the policy ahead, with run times as predicted. The last column is the error "
        "as a share of the mean wait."
    )
    head = ["policy", "jobs with one", "mean forecast", "mean wait", "mean absolute error", "share"]
    return table(head, body, "Forecasts of waits", caption)


def bounds_to_show(rows: Sequence[Row]) -> list[Row]:
    """Return one row of each policy to show: the ensemble of the whole cluster, or else the first of the cluster.

    A policy without a bound of the whole cluster has its first row.
    """
    by_policy: dict[str, list[Row]] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row)
    chosen = []
    for of_policy in by_policy.values():
        of_cluster = [row for row in of_policy if row["queue"] == "all"] or of_policy
        chosen.append(next((row for row in of_cluster if row["grouping"] == "ensemble"), of_cluster[0]))
    return chosen


def wait_bounds(rows: Sequence[Row], label: str = "Bounds on waits") -> str:
    """Return the scores of wait bounds."""
    several = len({row["policy"] for row in rows}) > 1
    body = [
        [
            escape(" ".join([*([row["policy"]] if several else []), f"queue {row['queue']}", row["grouping"]])),
            cell(row["coverage"], _share(row["coverage"])) + _between(row["coverage_low"], row["coverage_high"]),
            cell(row["over_rms"], duration(row["over_rms"])),
            cell(row["ratio_to_plain"], "-" if row["ratio_to_plain"] is None else f"{row['ratio_to_plain']:.3f}"),
            f"{row['predictions']:,} of {row['predictions'] + row['without']:,}",
        ]
        for row in rows
    ]
    first = rows[0]
    groupings = dict.fromkeys(row["grouping"] for row in rows)
    without = [grouping for grouping in groupings if grouping in WITHOUT_CONFIDENCE]
    confidence = "" if len(without) == len(groupings) else f", at confidence {first['confidence']:g}"
    confidence += f" ({' and '.join(without)}: without one)" if confidence and without else ""
    kept = " and ".join(f"{quantile:g}" for quantile in dict.fromkeys(row["quantile"] for row in rows))
    lower = (
        " A wait keeps a lower bound if it is no shorter."
        if any(row["grouping"].endswith(LOWER) for row in rows)
        else ""
    )
    caption = (
        f"Bounds that a share of {kept} of waits should keep{confidence}"
        f"{'' if several else ', under ' + first['policy']}.{lower} "
        "In brackets: the 95 % confidence interval of the covered share, by a bootstrap of blocks of time. "
        "Over: root mean square of bound minus wait where the bound held. To plain: the figure Over of plain bounds, "
        "divided by that of these bounds. " + coverage_shortfall(rows)
    )
    return table(["bounds", "covered", "over", "to plain", "jobs with one"], body, label, caption)


def wait_ranges(ranges: Iterable[WaitRanges]) -> str:
    """Return the ranges of processors that were found in the waits, beside the site's own; empty without ranges."""
    body = [list(map(escape, row)) for row in range_rows(ranges)]
    caption = (
        "Ranges of processors with similar waits, as last cut, and the ranges that the site uses. With each range, the "
        "number of waits in its history at that time."
    )
    return table([*HEADINGS], body, "Ranges of processors", caption) if body else ""


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"<br><small>[{_share(low)}, {_share(high)}]</small>"


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)
