"""The frontier as one self-contained page: a plot that is drawn by hand, and the table behind it."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from dashboards.report import STYLE
from replayer.comparison_table import duration

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 20, 50
Point = dict[str, Any]
Scale = Callable[[float], float]

PLOT_STYLE = """
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; } svg text { fill: var(--faint); }
svg text.name { fill: var(--ink); } .grid { stroke: var(--line); } .front { fill: none; stroke: var(--ink); }
.exact { fill: var(--bar); } .gain { fill: light-dark(#b3541e, #e8935c); }
.paper { fill: light-dark(#3b7d4f, #74c08b); } .policy { fill: var(--ink); }
tr.undominated td { font-weight: 600; }
"""


def page(documents: Sequence[dict[str, Any]]) -> str:
    """Return the page as HTML, a section for each log of `frontier`."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shadowtime: frontier</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{PLOT_STYLE}</style></head><body><h1>Slowdown against longest wait</h1>"
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
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x, y = _scale(hours, LEFT, right), _scale(slowdowns, bottom, TOP)
    vertical = "".join(
        f'<path class="grid" d="M{x(tick):.1f} {TOP}V{bottom}"/>'
        f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>'
        for tick in _ticks(hours)
    )
    horizontal = "".join(
        f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{right}"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in _ticks(slowdowns)
    )
    front = sorted((a, b) for a, b, each in zip(hours, slowdowns, points, strict=True) if each["undominated"])
    steps = "".join(f"H{x(a):.1f}V{y(b):.1f}" for a, b in front[1:])
    line = f'<path class="front" d="M{x(front[0][0]):.1f} {y(front[0][1]):.1f}{steps}"/>'
    marks = "".join(
        f'<circle class="{each.get("criterion", "policy")}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="4">'
        f"<title>{escape(_name(each))}: slowdown {b:.2f}, longest wait {a:.1f} h</title></circle>"
        + (f'<text class="name" x="{x(a) + 7:.1f}" y="{y(b) + 4:.1f}">{_name(each)}</text>' if "policy" in each else "")
        for a, b, each in zip(hours, slowdowns, points, strict=True)
    )
    kinds = sorted({each["criterion"] for each in points if "criterion" in each})
    legend = "".join(
        f'<circle class="{kind}" cx="{right + 20}" cy="{TOP + 10 + 20 * row}" r="4"/>'
        f'<text x="{right + 30}" y="{TOP + 14 + 20 * row}">criterion={kind}</text>'
        for row, kind in enumerate(kinds)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"><title>{escape(title)}'
        f"</title>{vertical}{horizontal}{line}{marks}{legend}"
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">longest wait in hours</text>'
        f'<text transform="translate(16 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        "mean bounded slowdown</text></svg>"
    )


def _scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Return the place of a value on a logarithmic axis from `start` to `end`, with a little room at either side."""
    low, high = math.log(max(min(values), 0.1) / 1.05), math.log(max(*values, 0.2) * 1.05)
    return lambda value: start + (end - start) * (math.log(max(value, 0.1)) - low) / (high - low)


def _ticks(values: Sequence[float]) -> list[float]:
    """Return round numbers within the values, few enough to be read.

    >>> _ticks([17.0, 105.0]), _ticks([52.0, 68.0])
    ([20.0, 50.0, 100.0], [55.0, 60.0, 65.0])
    """
    low, high = max(min(values), 0.1), max(*values, 0.2)
    powers = [10.0**power for power in range(-3, 8)]
    rounds = [step * power for power in powers for step in (1, 2, 5)]
    if high > 5 * low:
        return [each for each in rounds if low <= each <= high]
    step = next(each for each in rounds if (high - low) / each <= 6)
    return [round(k * step, 6) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


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
    head = "".join(
        f'<th scope="col">{each}</th>' for each in ("policy", "slowdown", "longest wait", "mean wait", "cpu")
    )
    body = "".join(
        f"<tr{' class=undominated' if each['undominated'] else ''}><td>{escape(_name(each))}</td>"
        f"<td>{each['mean_bounded_slowdown']:,.2f}</td><td>{duration(each['max_wait'])}</td>"
        f"<td>{duration(each['mean_wait'])}</td><td>{each['cpu_seconds']:.1f} s</td></tr>"
        for each in sorted(points, key=lambda each: float(each["mean_bounded_slowdown"]))
    )
    return (
        '<div class="wide" tabindex="0"><table><caption>Bold: nothing beats it in both slowdown and longest wait.'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
