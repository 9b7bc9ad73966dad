"""The figures of the report, each with the numbers behind it as a table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowtime.replayer.comparison import RunRecord
from shadowtime.replayer.report.axes import SHARES, Axis, linear, logarithmic, logarithmic_marks, time_marks
from shadowtime.replayer.report.charts import PANEL, Chart, beside, dots, lines, numbered, others, panels, series
from shadowtime.replayer.report.markup import bars, cell, escape, figure, table
from shadowtime.replayer.report.statistics import by_class, slowdowns, undominated
from shadowtime.shared.distributions import HOUR_AND_EIGHT, SHAPES, shape_of
from shadowtime.shared.formatting import counted, duration, percent, slowdown
from shadowtime.shared.kernels import Integers

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
MAX_IN_ONE = 6
"""Maximum number of lines in one chart that a reader can tell apart."""


def wait_distribution(runs: Sequence[RunRecord], base: int) -> str:
    """Return the figure of the distribution function of waits (Nissimov 2007, Figure 2).

    `base` is the index of the baseline run. With more than `MAX_IN_ONE` runs, each other run has a panel, which also
    shows the line of the baseline.
    """
    waits = [np.sort(run.jobs.wait) for run in runs]
    names = [run.plan.label for run in runs]
    styles = list(map(series, numbered(names)))
    longest = max(10, max(int(sorted_waits[-1]) for sorted_waits in waits))
    at = np.unique(np.geomspace(1, longest, 200).astype(np.int64))
    shares = [(np.searchsorted(sorted_waits, at, side="right") / len(sorted_waits)).tolist() for sorted_waits in waits]

    def drawn(shown: Sequence[int], size: Sequence[int] = ()) -> str:
        listed = ", ".join(names[place] for place in shown)
        chart = Chart(f"Share of jobs by their maximum wait, under {listed}; the numbers follow as a table", *size)
        x, y = logarithmic(1, longest, chart.left, chart.right), linear(0, 1, chart.bottom, chart.top)
        marks = time_marks(1, longest)
        chart.axes(Axis(x, marks[:: 2 if size else 1], "wait"), Axis(y, SHARES, "jobs that wait no longer"))
        for place in shown:
            points = [(x(wait), y(share)) for wait, share in zip(at.tolist(), shares[place], strict=True)]
            chart.line(points, styles[place] if place == shown[-1] else f"{styles[place]} beside", steps=True)
        return chart.svg()

    rows = [
        [escape(name), *(cell(wait, duration(wait)) for wait in _quantiles(sample))]
        for name, sample in zip(names, waits, strict=True)
    ]
    numbers = table(
        ["policy", *(f"{percent(share, '.0f')} within" for share in QUANTILES)], rows, "Quantiles of the waits"
    )
    caption = "Share of jobs that wait at most the time on the logarithmic axis. Higher and to the left is better."
    if len(runs) <= MAX_IN_ONE:
        return figure("Waits", caption, lines(names) + drawn(range(len(runs))), numbers)
    picture = panels((names[place], drawn([base, place], PANEL)) for place in others(base, len(runs)))
    return figure("Waits", f"{caption} {beside(names[base])}", picture, numbers, wide=True)


def _quantiles(waits: Integers) -> list[int]:
    """Return the `QUANTILES` of sorted waits: at least that share of the jobs waited no longer."""
    places = np.ceil(np.array(QUANTILES) * len(waits)).astype(np.int64) - 1
    quantiles: list[int] = waits[np.maximum(places, 0)].tolist()
    return quantiles


def frontier(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the chart of mean slowdown against longest wait. No policy dominates a policy on the line."""
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
    numbers = numbered(row["policy"] for row in rows)
    for number, row, (a, b) in zip(numbers, rows, points, strict=True):
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
    caption = "Better is down and to the left. Beaten: another policy is better in one figure and no worse in the other"
    caption += ". No policy on the line is." if len(set(front)) > 1 else "."
    picture = dots(row["policy"] for row in rows) + chart.svg()
    return figure(
        "Slowdown against the longest wait", caption, picture, table(head, body, "Slowdown against the longest wait")
    )


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis, with a small margin at both sides."""
    low, high = max(min(values), 1 / 60), max(*values, 1 / 60)
    room = max(high / low, 1.1) ** 0.1
    return low / room, high * room


def by_shape(runs: Sequence[RunRecord]) -> str:
    """Return the chart of slowdowns of the four job shapes (Perković 2000, Figure 4)."""
    values, counts = [], np.zeros(len(SHAPES), dtype=np.int64)
    for run in runs:
        jobs = run.jobs
        group = shape_of(jobs.requested_time, jobs.requested_processors, HOUR_AND_EIGHT)
        counts = np.bincount(group, minlength=len(SHAPES))
        values.append(by_class(slowdowns(jobs), group, len(SHAPES)))

    names = [run.plan.label for run in runs]
    styles = list(map(series, numbered(names)))
    lengths = [[None if value is None else math.log(value) for value in row] for row in values]
    longest = max(length or 0 for row in lengths for length in row)
    groups = [
        (
            shape,
            [
                (name, length[place], slowdown(row[place]))
                for name, length, row in zip(names, lengths, values, strict=True)
            ],
        )
        for place, shape in enumerate(SHAPES)
    ]
    if len(runs) == 1:
        groups, styles = [(names[0], [(shape, *bar[1:]) for shape, (bar,) in groups])], styles * len(SHAPES)
    drawn = "".join(bars(title, shown, styles, longest) for title, shown in groups)
    head = [
        "policy",
        *(f"{shape} ({counted(count, 'job')})" for shape, count in zip(SHAPES, counts.tolist(), strict=True)),
    ]
    rows = [
        [escape(name), *(cell(value, slowdown(value)) for value in row)]
        for name, row in zip(names, values, strict=True)
    ]
    caption = f"Mean bounded slowdown. {HOUR_AND_EIGHT}. Bars begin at 1 and are logarithmic."
    numbers = table(head, rows, "Slowdown by shape")
    return figure(
        "Slowdown by shape of job", caption, f'<div class="at-a-glance">{drawn}</div>', numbers, wide=len(runs) > 1
    )
