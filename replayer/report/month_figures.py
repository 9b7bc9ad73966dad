"""Charts of waits and slowdowns by month."""

from collections.abc import Sequence

import numpy as np

from shadowtime.replayer.comparison import RunRecord
from shadowtime.replayer.report.axes import Axis, linear, logarithmic, logarithmic_marks, round_marks
from shadowtime.replayer.report.charts import PANEL, Chart, beside, lines, numbered, others, panels, series, sparse
from shadowtime.replayer.report.markup import cell, figure, table
from shadowtime.replayer.report.statistics import Month, by_class, month_of, months, slowdowns
from shadowtime.shared.formatting import duration, slowdown

FAR_APART = 10
"""Ratio of the longest to the shortest mean wait above which the axis is logarithmic.

On a linear axis, only the longer waits would be visible."""


def by_month(runs: Sequence[RunRecord], base: int) -> str:
    """Return charts of mean wait and mean slowdown by month (Tang 2013, Figures 14 to 17).

    Each policy is drawn next to the policy at index `base`.
    """
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
    hours = [[None if wait is None else wait / 3600 for wait in row] for row in waits]
    figures = []
    for what, values, drawn, unit, floor in (
        ("wait", waits, hours, "mean wait in hours", _floor(hours) if apart else 0),
        ("slowdown", slows, slows, "mean bounded slowdown", 1),
    ):
        title = f"Mean {what} by month"
        picture = _month_panels(drawn, names, base, every, unit, floor)
        show = duration if what == "wait" else slowdown
        rows = [
            [month.name, f"{count:,}", *(cell(row[place], show(row[place])) for row in values)]
            for place, (month, count) in enumerate(zip(every, counts, strict=True))
        ]
        caption = "By the month in which jobs were submitted (UTC)" + ("; the axis is logarithmic." if floor else ".")
        if every[0].name.startswith("days"):
            caption = caption.replace(
                "month in which jobs were submitted (UTC)", "days of the log on which jobs were submitted"
            )

        several = len(names) > 2
        caption += f" {beside(names[base])}" if several else ""
        figures.append(figure(title, caption, picture, table(["month", "jobs", *names], rows, title), wide=several))

    return "".join(figures)


def _floor(values: Sequence[Sequence[float | None]]) -> float:
    return max(1 / 60, 0.8 * min(value for row in values for value in row if value))


def _month_panels(
    values: Sequence[Sequence[float | None]],
    names: Sequence[str],
    base: int,
    every: Sequence[Month],
    unit: str,
    floor: float,
) -> str:
    """Return a chart for each policy, with the line of the base policy for comparison. All have the same axes."""
    high = (
        max(2 * floor, 1.05 * max((value for row in values for value in row if value is not None), default=0.0)) or 1.0
    )
    scale, marks = (logarithmic, logarithmic_marks(floor, high)) if floor else (linear, round_marks(0, high, 4))
    short = [month.name.removeprefix("days ").partition(" to ")[0] for month in every]
    styles = list(map(series, numbered(names)))
    shown = others(base, len(names))
    drawn = []
    for place in shown:
        label = f"{unit[0].upper()}{unit[1:]} of each month under {names[place]}; the numbers follow as a table"
        chart = Chart(label, *(PANEL if len(shown) > 1 else ()))
        chart.bottom = chart.height - 26  # less space: the x axis has labels, but no name
        x, y = linear(0, len(every), chart.left, chart.right), scale(floor, high, chart.bottom, chart.top)
        step = sparse(short, chart.right - chart.left)
        marked = [(at + 0.5, name) for at, name in enumerate(short) if at % step == 0]
        chart.axes(Axis(x, marked, ""), Axis(y, marks, unit), upright=False)
        edges = [x(at) for at in range(len(every) + 1)]
        for value in dict.fromkeys((base, place)):
            places = [None if value is None else y(value) for value in values[value]]
            chart.steps(edges, places, styles[value] if value == place else f"{styles[value]} beside")
        drawn.append((names[place], chart.svg()))

    return panels(drawn) if len(drawn) > 1 else lines(names) + drawn[0][1]
