"""The frontier as one self-contained page: a plot and the table behind it."""

from collections.abc import Sequence
from html import escape
from typing import Any

from shadowtime.dashboards.report.axes import Axis, logarithmic, logarithmic_marks
from shadowtime.dashboards.report.charts import Chart, legend, table
from shadowtime.dashboards.report.page import STYLE
from shadowtime.shared.formatting import duration

Point = dict[str, Any]

KINDS = {"policy": "s8", "exact": "s1", "gain": "s2", "paper": "s3"}
"""The style of each kind of point: those to be measured by, then one for each criterion."""


def page(documents: Sequence[dict[str, Any]]) -> str:
    """Return the page as HTML, a section for each log of `frontier`."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shadowtime: frontier</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><h1>Slowdown against longest wait</h1>"
        "<p>Each point is a whole replay. Better is down and to the left; nothing beats the points on the line in both."
        f"</p>{''.join(map(_section, documents))}</body></html>\n"
    )


def _section(document: dict[str, Any]) -> str:
    points = document["points"]
    title = f"{document['trace']}: {document['jobs']:,} jobs on {document['processors']:,} processors"
    note = f"probabilistic:{document['keys']}, with criterion, tau, budget and patience as in the table"
    return f'<h2>{escape(title)}</h2><p class="faint">{escape(note)}</p>{_plot(points, title)}{_table(points)}'


def _plot(points: Sequence[Point], title: str) -> str:
    """Return the plot, both axes logarithmic; hovering a point names it."""
    hours, slowdowns = [each["max_wait"] / 3600 for each in points], [each["mean_bounded_slowdown"] for each in points]
    chart = Chart(title, width=720, height=420)
    (left, right), (low, high) = _ends(hours), _ends(slowdowns)
    x, y = logarithmic(left, right, chart.left, chart.right), logarithmic(low, high, chart.bottom, chart.top)
    chart.axes(
        Axis(x, logarithmic_marks(left, right), "longest wait in hours"),
        Axis(y, logarithmic_marks(low, high), "mean bounded slowdown"),
    )
    front = sorted((a, b) for a, b, each in zip(hours, slowdowns, points, strict=True) if each["undominated"])
    chart.line([(x(a), y(b)) for a, b in front], "front", steps=True)
    for a, b, each in zip(hours, slowdowns, points, strict=True):
        said = f"{_name(each)}: slowdown {b:.2f}, longest wait {a:.1f} h"
        chart.dot(x(a), y(b), KINDS[each.get("criterion", "policy")], said)
        if "policy" in each:
            chart.text(x(a) + 7, y(b) + 4, _name(each))
    kinds = sorted({each["criterion"] for each in points if "criterion" in each})
    return legend([(f"fill {KINDS[kind]}", f"criterion={kind}") for kind in kinds]) + chart.svg()


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis, with a little room at either side."""
    return max(min(values), 0.1) / 1.05, max(*values, 0.2) * 1.05


def _name(point: Point) -> str:
    """Return what a person calls a point.

    >>> _name({"criterion": "gain", "tau": 1.0, "budget": 0.9, "patience": None})
    'gain, tau 1, budget 0.9, endless patience'
    """
    if "policy" in point:
        return str(point["policy"])
    patience = point["patience"]
    bound = "endless patience" if patience is None else f"patience {patience:g}"
    return f"{point['criterion']}, tau {point['tau']:g}, budget {point['budget']:g}, {bound}"


def _table(points: Sequence[Point]) -> str:
    rows = [
        [
            f"<strong>{escape(_name(each))}</strong>" if each["undominated"] else escape(_name(each)),
            f"{each['mean_bounded_slowdown']:,.2f}",
            duration(each["max_wait"]),
            duration(each["mean_wait"]),
            f"{each['cpu_seconds']:.1f} s",
        ]
        for each in sorted(points, key=lambda each: float(each["mean_bounded_slowdown"]))
    ]
    note = "Bold: nothing beats it in both slowdown and longest wait."
    return table(["policy", "slowdown", "longest wait", "mean wait", "cpu"], rows, "Every point", note)
