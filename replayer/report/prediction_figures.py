"""The figures of predictions, each with the numbers behind it as a table."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shadowtime.replayer.comparison import RunRecord
from shadowtime.replayer.report.axes import SHARES, Axis, linear, logarithmic, time_marks
from shadowtime.replayer.report.charts import PANEL, Chart, histogram, legend, lines, numbered, panels, series
from shadowtime.replayer.report.markup import cell, escape, figure, table
from shadowtime.replayer.report.statistics import clock_of, month_of, months
from shadowtime.shared.formatting import duration, percent
from shadowtime.shared.kernels import Integers

MAX_DOTS = 1_500
"""Maximum number of dots in a cloud. If there are more jobs, only every second, third, … job is drawn."""

MAX_DOTS_IN_ALL = 15_000
"""Maximum number of drawn jobs in all charts of a log together. With many charts, each has fewer."""


def calibration(row: Mapping[str, Any]) -> str:
    """Return the calibration chart of a policy's stated probabilities of delaying the head of the queue.

    `row` is a row of `policies` of the `--json` document.
    """
    policy, scores = row["policy"], row["calibration"]
    chart = Chart(f"Share of candidates that would have delayed the head, by stated probability, under {policy}")
    x, y = linear(0, 1, chart.left, chart.right), linear(0, 1, chart.bottom, chart.top)
    chart.axes(Axis(x, SHARES, "stated probability of delaying the head"), Axis(y, SHARES, "share that would have"))
    chart.line([(x(0), y(0)), (x(1), y(1))], "front")
    rows = []
    kinds = [("exact probability", "exact"), ("the paper's bound", "bound")]
    if scores["recalibrated"]:
        kinds.insert(0, ("recalibrated probability", "recalibrated"))
    numbers = numbered(name for name, _ in kinds)
    for number, (name, key) in zip(numbers, kinds, strict=True):
        bins = scores[key]["bins"]
        chart.line([(x(row["mean_probability"]), y(row["delayed"])) for row in bins], series(number))
        most = max((part["candidates"] for part in bins), default=1)
        for part in bins:
            delayed = f"{percent(part['delayed'])} of {part['candidates']:,} candidates"
            label = f"{name} {part['mean_probability']:.2f}: {delayed}"
            scale = 0.4 + 1.2 * math.sqrt(part["candidates"] / most)
            chart.dot(x(part["mean_probability"]), y(part["delayed"]), number, label, scale)
            rows.append(
                [
                    f"{name}, from {part['from_probability']:.1f}",
                    f"{part['candidates']:,}",
                    cell(part["mean_probability"], f"{part['mean_probability']:.3f}"),
                    cell(part["delayed"], f"{part['delayed']:.3f}"),
                ]
            )

    errors = [(name, scores[key]["calibration_error"]) for name, key in kinds]
    listed = ", ".join(f"{name} {error:.3f}" for name, error in errors if error is not None)
    caption = (
        "Evaluated candidates, by their predicted probability of delaying the head of the queue, and the share that "
        "would have delayed it. On the line, the two are equal. A larger dot stands for more candidates."
        + (f" Calibration error, the mean distance from it: {listed}." if listed else "")
    )
    head = ["probability", "candidates", "stated", "happened"]
    picture = lines(name for name, _ in kinds) + chart.svg()
    title = f"Calibration of {policy}"
    return figure(title, caption, picture, table(head, rows, title))


def transforms(document: Mapping[str, Any]) -> str:
    """Return histograms of the probability integral transform of run-time predictors; empty if no predictor has one."""
    known = [row for row in document["run_time_predictions"] if row["pit"]]
    if not known:
        return ""
    several = len({row["predictor"] for row in known}) < len(known)
    names = [row["predictor"] + (f" under {row['policy']}" if several and "policy" in row else "") for row in known]
    count = len(known[0]["pit"])
    groups = [f"{place / count:.1f}" for place in range(count)]
    high = 1.05 * max(max(row["pit"]) for row in known)
    label = "Share of run times in each tenth of the distribution predicted by {}; the numbers follow as a table"
    axes = ("tenth of the predicted distribution", "share of jobs")
    size = PANEL if len(known) > 1 else ()
    drawn = [
        (name, histogram(label.format(name), groups, row["pit"], high, axes, size))
        for name, row in zip(names, known, strict=True)
    ]
    picture = panels(drawn) if len(drawn) > 1 else legend([("fill plain", names[0])]) + drawn[0][1]
    body = [
        [escape(name), *(cell(value, f"{value:.3f}") for value in row["pit"])]
        for name, row in zip(names, known, strict=True)
    ]
    caption = (
        "Share of run times in each tenth of their predicted distribution. If the distributions are right, all tenths "
        "are equal."
    )
    title = "Calibration of run times"
    return figure(title, caption, picture, table(["predictor", *groups], body, title), wide=len(drawn) > 1)


def bounds_over_time(run: RunRecord, policy: str, charts: int) -> list[str]:
    """Return figures of waits and their bounds over time, one for each grouping (Brevik 2006, Figures 1 and 2).

    The ensemble comes first.

    Parameters
    ----------
    policy
        Name of the policy in the titles; empty if there is only one.
    charts
        Total number of these figures on the page.
    """
    most = max(1, min(MAX_DOTS, MAX_DOTS_IN_ALL // charts))
    clock = clock_of(run.plan.workload.unix_start_time)
    figures = []
    groupings = run.bounded_waits.by_grouping()
    for grouping in sorted(groupings, key=lambda name: name != "ensemble"):
        rows = groupings[grouping]
        if not len(rows):
            continue
        title = f"{grouping} under {policy}" if policy else grouping
        caption, picture = waits_and_bounds(f"grouping {title}", rows, clock, most)
        figures.append(figure(title, caption, picture, _bounds_by_month(run, rows)))

    return figures


def waits_and_bounds(what: str, rows: Integers, clock: Callable[[int], str], most: int = MAX_DOTS) -> tuple[str, str]:
    """Return the caption and the picture of waits and their bounds over time, on a logarithmic axis.

    Parameters
    ----------
    what
        Name of the bounds, for the description of the chart.
    rows
        Submit time, wait and bound of each job in seconds, by submit time; shape (jobs, 3), with a job or more.
    clock
        Function that returns the name of a second of the log.
    most
        Maximum number of drawn jobs.
    """
    shown = rows[:: -(-len(rows) // most)]
    first, last, longest = int(rows[0, 0]), int(rows[-1, 0]), max(10, int(rows[:, 1:].max()))
    chart = Chart(f"Waits and their bounds over time, {what}; the numbers follow as a table")
    x, y = linear(first, last, chart.left, chart.right), logarithmic(1, longest, chart.bottom, chart.top)
    dates = [(at, clock(int(at))) for at in np.linspace(first, last, 7)[1:-1:2].tolist()]
    chart.axes(Axis(x, dates, "submission"), Axis(y, time_marks(1, longest), "wait"))
    places = [x(at) for at in shown[:, 0].tolist()]
    chart.cloud(zip(places, map(y, shown[:, 1].tolist()), strict=True), "waited")
    chart.cloud(zip(places, map(y, shown[:, 2].tolist()), strict=True), "bounded")
    caption = f"{len(rows):,} waits and the bounds that were issued at submission" + (
        "." if len(shown) == len(rows) else f"; {len(shown):,} of them are drawn, evenly."
    )
    return caption, legend([("cloud waited", "wait"), ("cloud bounded", "bound")]) + chart.svg()


def _bounds_by_month(run: RunRecord, rows: Integers) -> str:
    every = months(int(rows[0, 0]), int(rows[-1, 0]), run.plan.workload.unix_start_time)
    month = month_of(rows[:, 0], every)
    body = []
    for place, item in enumerate(every):
        part = rows[month == place]
        if len(part):
            waited = int(np.quantile(part[:, 1], 0.95, method="inverted_cdf"))  # an actual wait, not interpolated
            bound = int(np.median(part[:, 2]))
            covered = float((part[:, 1] <= part[:, 2]).mean())
            cells = [cell(waited, duration(waited)), cell(bound, duration(bound)), cell(covered, percent(covered))]
            body.append([item.name, f"{len(part):,}", *cells])

    head = ["month", "jobs", "95 % waited at most", "median bound", "covered"]
    return table(head, body, "Bounds by month")
