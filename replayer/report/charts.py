"""Charts drawn by hand as SVG: no script, sharp in print, and coloured by the page's own style, light or dark.

A chart is a few hundred lines of text where a library for the browser is megabytes of program; and whoever reads the
report on a phone, on paper or with a screen reader has the same of it.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import count

from shadowtime.replayer.report.axes import Axis, linear, round_marks
from shadowtime.replayer.report.markup import escape
from shadowtime.shared.text import OTHER_COLOURS, POLICY_COLOURS

COLOURS = (*POLICY_COLOURS.values(), *OTHER_COLOURS)
DASHES = ("none", "7 3", "3 2", "9 3 2 3", "12 4", "5 2 2 2 2 2", "5 2 1 2", "2 5")

SYMBOLS = ("M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z", "M-4-4h8v8h-8z", "M0-6L6 0L0 6L-6 0z", "M0-5L5 4H-5z")
"""A disc, a square, a diamond, a triangle around the origin."""

PANEL = 270, 180
"""Width and height of one of several small charts."""

LETTER = 6.8
"""Width of a letter in the units of a chart, on a phone."""


STYLE = "".join(
    f".s{number} {{ --c: {colour}; }} .line.s{number} {{ stroke-dasharray: {DASHES[number % len(DASHES)]}; }}\n"
    for number, colour in enumerate(COLOURS)
)
"""Colour and dashes of each series."""


def numbered(names: Iterable[str]) -> list[int]:
    """Return the number of each series, which says how it looks: policies have their own, others come behind.

    >>> numbered(["best", "R/L-NG", "easy", "shaped"])
    [1, 9, 0, 10]
    """
    own = list(POLICY_COLOURS)
    others = count(len(own))
    return [own.index(name) if name in own else next(others) for name in names]


def series(number: int) -> str:
    """Return the class of the style that a series has; a seventeenth line or bar looks like the first."""
    return f"s{number % len(COLOURS)}"


class Chart:
    """One chart: axes, then what is drawn on them.

    Parameters
    ----------
    label
        What it shows, in a sentence, for whoever does not see it.
    width, height
        In its own units; the page scales it to the room there is.
    """

    def __init__(self, label: str, width: int = 440, height: int = 300) -> None:
        self._label = label
        self.width, self.height = width, height
        self.left, self.right, self.top, self.bottom = (
            min(60, width // 5),
            width - min(20, width // 20),
            28,
            height - 48,
        )
        self._parts: list[str] = []

    def axes(self, x: Axis, y: Axis, *, upright: bool = True) -> None:
        """Draw both axes with their marks and names; with or without upright lines at the marks."""
        for value, name in x.marks:
            at = x.place(value)
            self._parts.append(
                (f'<path class="grid" d="M{at:.1f} {self.top}V{self.bottom}"/>' if upright else "")
                + f'<text x="{at:.1f}" y="{self.bottom + 17}" text-anchor="middle">{escape(name)}</text>'
            )

        for value, name in y.marks:
            at = y.place(value)
            self._parts.append(
                f'<path class="grid" d="M{self.left} {at:.1f}H{self.right}"/>'
                f'<text x="{self.left - 6}" y="{at + 4:.1f}" text-anchor="end">{escape(name)}</text>'
            )

        self._parts.append(
            f'<text x="{(self.left + self.right) / 2:.1f}" y="{self.height - 8}" text-anchor="middle">{escape(x.name)}'
            f'</text><text x="4" y="{self.top - 14}">{escape(y.name)}</text>'
        )

    def line(self, points: Iterable[tuple[float, float]], style: str, steps: bool = False) -> None:
        """Draw a line through places on the chart; with `steps`, along first and up then."""
        corners = list(points)
        rest = "".join(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in corners[1:])
        if corners:
            self._parts.append(f'<path class="line {style}" d="M{corners[0][0]:.1f} {corners[0][1]:.1f}{rest}"/>')

    def steps(self, edges: Sequence[float], values: Sequence[float | None], style: str) -> None:
        """Draw a value from each edge to the next, each a place on the chart; nothing where there is none."""
        drawn = ""
        for place, y in enumerate(values):
            if y is not None:
                joint = "V" if place and values[place - 1] is not None else f"M{edges[place]:.1f} "
                drawn += f"{joint}{y:.1f}H{edges[place + 1]:.1f}"
        self._parts.append(f'<path class="line {style}" d="{drawn}"/>')

    def area(self, edges: Sequence[float], low: Sequence[float], high: Sequence[float], style: str) -> None:
        """Fill what is between two values from each edge to the next, all places on the chart."""
        there = "".join(f"V{y:.1f}H{x:.1f}" for x, y in zip(edges[1:], high, strict=True))
        back = "".join(f"V{y:.1f}H{x:.1f}" for x, y in zip(edges[-2::-1], low[::-1], strict=True))
        self._parts.append(f'<path class="{style}" d="M{edges[0]:.1f} {low[0]:.1f}{there}{back}z"/>')

    def cloud(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """Draw many small dots as one path."""
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
        self._parts.append(f'<path class="cloud {style}" d="{path}"/>')

    def dot(self, x: float, y: float, number: int, name: str) -> None:
        """Draw the dot of a series, that says its name under the pointer."""
        self._parts.append(_dot(x, y, number, f"<title>{escape(name)}</title>"))

    def bar(self, x: float, y: float, width: float, height: float, style: str, name: str = "") -> None:
        """Draw a rectangle from its upper left corner, that says its name under the pointer."""
        title = f"<title>{escape(name)}</title>" if name else ""
        size = f'width="{max(width, 0.4):.1f}" height="{max(height, 0):.1f}"'
        self._parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" {size}>{title}</rect>')

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """Write beside a mark."""
        self._parts.append(f'<text class="name" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def svg(self) -> str:
        """Return the chart."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(self._label)}">'
            f"{''.join(self._parts)}</svg>"
        )


def histogram(
    label: str,
    groups: Sequence[str],
    shares: Sequence[float],
    high: float,
    axes: tuple[str, str],
    size: Sequence[int] = PANEL,
) -> str:
    """Return a chart of shares of groups, up to `high`; `axes` names its axes, that of groups first."""
    chart = Chart(label, *size)
    y = linear(0, high, chart.bottom, chart.top)
    room = (chart.right - chart.left) / len(groups)
    centres = [(chart.left + (place + 0.5) * room, group) for place, group in enumerate(groups)]
    every = sparse(groups, chart.right - chart.left)
    chart.axes(Axis(lambda at: at, centres[::every], axes[0]), Axis(y, round_marks(0, high, 4), axes[1]), upright=False)
    for (centre, group), share in zip(centres, shares, strict=True):
        left, width = centre - 0.4 * room, 0.8 * room
        chart.bar(left, y(share), width, chart.bottom - y(share), "fill plain", f"{group}: {share:.3f}")
    return chart.svg()


def sparse(names: Sequence[str], room: float) -> int:
    """Return of how many names at equal distances one is to be written, so that none touch.

    >>> sparse(["Sep 1996"] * 12, 360)
    3
    """
    return math.ceil(len(names) * LETTER * (max(map(len, names)) + 1) / room)


def panels(drawn: Iterable[tuple[str, str]]) -> str:
    """Return small charts beside each other, each under its name."""
    return f'<div class="panels">{"".join(f"<div><h5>{escape(name)}</h5>{svg}</div>" for name, svg in drawn)}</div>'


def others(base: int, count: int) -> list[int]:
    """Return the places of policies but for that with which they are compared; of one, its own."""
    return [place for place in range(count) if place != base] or [base]


def beside(base: str) -> str:
    """Return what such panels show."""
    return f"Each policy has a panel, and in all of them is the line of {base}."


def legend(names: Sequence[tuple[str, str]]) -> str:
    """Return what the styles of a chart mean: pairs of the class of a style and a name.

    >>> "easy</li>" in legend([("line s1", "easy")])
    True
    """
    return _legend((_swatch(style), name) for style, name in names)


def _numbered(names: Iterable[str]) -> Iterable[tuple[str, int]]:
    indices = list(names)
    return zip(indices, numbered(indices), strict=True)


def lines(names: Iterable[str]) -> str:
    """Return the legend of lines."""
    return legend([(f"line {series(number)}", name) for name, number in _numbered(names)])


def fills(names: Iterable[str]) -> str:
    """Return the legend of areas."""
    return legend([(f"fill {series(number)}", name) for name, number in _numbered(names)])


def dots(names: Iterable[str]) -> str:
    """Return the legend of dots."""
    return _legend((_dot(13, 6, number), name) for name, number in _numbered(names))


def _legend(names: Iterable[tuple[str, str]]) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true">{swatch}</svg>{escape(name)}</li>' for swatch, name in names
    )
    return f'<ul class="legend">{items}</ul>'


def _dot(x: float, y: float, number: int, label: str = "") -> str:
    symbol = SYMBOLS[number // len(DASHES) % len(SYMBOLS)]
    return f'<path class="dot {series(number)}" transform="translate({x:.1f} {y:.1f})" d="{symbol}">{label}</path>'


def _swatch(style: str) -> str:
    if style.startswith("fill"):
        return f'<rect class="{style}" x="1" y="1" width="24" height="10"/>'
    if style.startswith("cloud"):
        return f'<path class="{style}" d="M6 6h0M13 6h0M20 6h0"/>'
    return f'<path class="{style}" d="M1 6H25"/>'
