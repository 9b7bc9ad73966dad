"""The figures of the report, each with the numbers behind it as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowtime.dashboards.report.axes import SHARES, Axis, linear, logarithmic, logarithmic_marks, time_marks
from shadowtime.dashboards.report.charts import Chart, cell, dots, figure, fills, grouped_bars, lines, series, table
from shadowtime.dashboards.report.markup import escape
from shadowtime.dashboards.report.statistics import (
    SHAPES,
    Medians,
    by_class,
    month_of,
    months,
    shape_of,
    slowdowns,
    undominated,
)
from shadowtime.replayer.run_record import RunRecord
from shadowtime.shared.arrays import Integers
from shadowtime.shared.formatting import duration

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
FAR_APART = 10
"""Times that a mean wait is longer than another where a linear axis shows the longer one only."""


def wait_distribution(runs: Sequence[RunRecord]) -> str:
    """Return how many jobs wait no longer than so long (Nissimov 2007, Figure 2)."""
    waits = [np.sort(run.jobs.wait) for run in runs]
    longest = max(10, max(int(each[-1]) for each in waits))
    chart = Chart("Share of jobs that wait no longer than so long, for each policy; the numbers follow as a table")
    x, y = logarithmic(1, longest, chart.left, chart.right), linear(0, 1, chart.bottom, chart.top)
    chart.axes(Axis(x, time_marks(1, longest), "wait"), Axis(y, SHARES, "jobs that wait no longer"))
    at = np.unique(np.geomspace(1, longest, 200).astype(np.int64))
    for number, each in enumerate(waits):
        shares = np.searchsorted(each, at, side="right") / len(each)
        points = [(x(wait), y(share)) for wait, share in zip(at.tolist(), shares.tolist(), strict=True)]
        chart.line(points, series(number), steps=True)
    rows = [
        [escape(run.plan.label), *(cell(wait, duration(wait)) for wait in _quantiles(each))]
        for run, each in zip(runs, waits, strict=True)
    ]
    head = ["policy", *(f"{share:.0%} within" for share in QUANTILES)]
    caption = "Share of jobs that wait no longer than so long, on a logarithmic axis. Higher and to the left is better."
    return figure(
        "Waits",
        caption,
        lines(run.plan.label for run in runs) + chart.svg(),
        table(head, rows, "Quantiles of the waits"),
    )


def _quantiles(waits: Integers) -> list[int]:
    """Return the waits within which at least such shares of the jobs started, from sorted ones."""
    places = np.ceil(np.array(QUANTILES) * len(waits)).astype(np.int64) - 1
    found: list[int] = waits[np.maximum(places, 0)].tolist()
    return found


def frontier(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return mean slowdown against longest wait of the policies compared; nothing beats those on the line."""
    points = [(max(row["max_wait"] / 3600, 1 / 60), row["mean_bounded_slowdown"]) for row in rows]
    best = undominated(points)
    chart = Chart("Mean bounded slowdown against longest wait, a dot for each policy; the numbers follow as a table")
    (left, right), (low, high) = (_around([point[axis] for point in points]) for axis in (0, 1))
    x, y = logarithmic(left, right, chart.left, chart.right), logarithmic(low, high, chart.bottom, chart.top)
    chart.axes(
        Axis(x, logarithmic_marks(left, right), "longest wait in hours"),
        Axis(y, logarithmic_marks(low, high), "mean bounded slowdown"),
    )
    front = sorted(point for point, flag in zip(points, best, strict=True) if flag)
    chart.line([(x(a), y(b)) for a, b in front], "front", steps=True)
    for number, (row, (a, b)) in enumerate(zip(rows, points, strict=True)):
        chart.dot(x(a), y(b), number, f"{row['policy']}: slowdown {b:.2f}, longest wait {a:.1f} h")
    body = [
        [
            escape(row["policy"]),
            cell(row["max_wait"], duration(row["max_wait"])),
            cell(row["mean_bounded_slowdown"], f"{row['mean_bounded_slowdown']:,.2f}"),
            "no" if flag else "yes",
        ]
        for row, flag in zip(rows, best, strict=True)
    ]
    head = ["policy", "longest wait", "mean slowdown", "beaten"]
    caption = (
        "Better is down and to the left. Beaten: another policy is better in one figure and no worse in the other. No "
        "policy on the line is."
    )
    picture = dots(row["policy"] for row in rows) + chart.svg()
    return figure(
        "Slowdown against the longest wait", caption, picture, table(head, body, "Slowdown against the longest wait")
    )


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis with a little room at either side."""
    low, high = max(min(values), 1 / 60), max(*values, 1 / 60)
    room = max(high / low, 1.1) ** 0.1
    return low / room, high * room


def by_shape(runs: Sequence[RunRecord]) -> str:
    """Return the slowdown of the four shape groups (Perković 2000, Figure 4)."""
    values, counts = [], np.zeros(len(SHAPES), dtype=np.int64)
    columns = runs[0].plan.workload.columns
    medians = Medians(int(np.median(columns["requested_time"])), int(np.median(columns["processors"])))
    for run in runs:
        jobs = run.jobs
        group = shape_of(jobs.requested_time, jobs.requested_processors, medians)
        counts = np.bincount(group, minlength=len(SHAPES))
        values.append(by_class(slowdowns(jobs), group, len(SHAPES)))
    names = [run.plan.label for run in runs]
    picture = grouped_bars(
        "Mean bounded slowdown of jobs by shape, for each policy; the numbers follow as a table",
        SHAPES, values, names, "mean bounded slowdown", floor=1,
    )  # fmt: skip
    head = ["policy", *(f"{shape} ({count:,} jobs)" for shape, count in zip(SHAPES, counts.tolist(), strict=True))]
    rows = [
        [escape(name), *(cell(each, "-" if each is None else f"{each:,.2f}") for each in row)]
        for name, row in zip(names, values, strict=True)
    ]
    caption = (
        f"Divided at the medians: long jobs request more than {duration(medians.requested_time)}, wide ones more than "
        f"{medians.processors:,} processor{'s' * (medians.processors != 1)}. The axis is logarithmic."
    )
    return figure("Slowdown by shape of job", caption, fills(names) + picture, table(head, rows, "Slowdown by shape"))


def by_month(runs: Sequence[RunRecord]) -> str:
    """Return mean wait and mean slowdown of each month (Tang 2013, Figures 14 to 17)."""
    workload = runs[0].plan.workload
    submit_times = workload.columns["submit_time"]
    every = months(int(submit_times[0]), int(submit_times[-1]), workload.unix_start_time)
    names = [run.plan.label for run in runs]
    waits, slows = [], []
    for run in runs:
        month = month_of(run.jobs.submit_time, every)
        waits.append(by_class(run.jobs.wait, month, len(every)))
        slows.append(by_class(slowdowns(run.jobs), month, len(every)))
    counts = np.bincount(month_of(submit_times, every), minlength=len(every)).tolist()
    means = [float(run.jobs.wait.mean()) for run in runs]
    apart = max(means) > FAR_APART * min(means)
    hours = [[None if each is None else each / 3600 for each in row] for row in waits]
    short = [month.name.removeprefix("days ").partition(" to ")[0] for month in every]
    x_name = (
        "first day of each part, by submission" if every[0].name.startswith("days") else "month of submission (UTC)"
    )
    found = []
    for what, values, drawn, unit, floor in (
        ("wait", waits, hours, "mean wait in hours", 1 / 60 if apart else 0),
        ("slowdown", slows, slows, "mean bounded slowdown", 1),
    ):
        label = f"Mean {what} of the jobs of each month, for each policy; the numbers follow as a table"
        picture = grouped_bars(label, short, drawn, names, unit, x_name, floor)
        show = duration if what == "wait" else _slowdown
        rows = [
            [month.name, f"{count:,}", *(cell(row[place], show(row[place])) for row in values)]
            for place, (month, count) in enumerate(zip(every, counts, strict=True))
        ]
        title = f"Mean {what} by month"
        caption = "By the month in which jobs were submitted" + ("; the axis is logarithmic." if floor else ".")
        found.append(figure(title, caption, fills(names) + picture, table(["month", "jobs", *names], rows, title)))
    return "".join(found)


def _slowdown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
