"""Charts drawn directly as SVG: no script, sharp in print, and coloured by the page's own style, light or dark.

A browser library for charts would add megabytes of script to a page. Readers on a phone, on paper or with a screen
reader get the same charts.
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
"""SVG paths of a disc, a square, a diamond and a triangle around the origin."""

PANEL = 270, 180
"""Width and height of a small chart in a row of several."""

LETTER = 6.8
"""Width of a letter on a phone, in chart units."""


STYLE = "".join(
    f".s{number} {{ --c: {colour}; }} .line.s{number} {{ stroke-dasharray: {DASHES[number % len(DASHES)]}; }}\n"
    for number, colour in enumerate(COLOURS)
)
"""CSS rules for the colour and dashes of each series."""


def numbered(names: Iterable[str]) -> list[int]:
    """Return the style number of each series. Known policies have fixed numbers; other names get the next numbers.

    >>> numbered(["easy", "R/L-NG", "easy", "shaped"])
    [0, 13, 0, 14]
    """
    own = list(POLICY_COLOURS)
    others = count(len(own))
    return [own.index(name) if name in own else next(others) for name in names]


def series(number: int) -> str:
    """Return the CSS class of a series. Styles repeat after `len(COLOURS)` series."""
    return f"s{number % len(COLOURS)}"


class Chart:
    """One chart: axes and the shapes drawn on them.

    Parameters
    ----------
    label
        Description of the chart in one sentence, for screen readers.
    width, height
        Size in chart units. The page scales the chart to the available space.
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
        """Draw both axes with their marks and names. With `upright`, draw vertical grid lines at the marks of `x`."""
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
        """Draw a line through positions on the chart. With `steps`, each step is first horizontal, then vertical."""
        corners = list(points)
        rest = "".join(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in corners[1:])
        if corners:
            self._parts.append(f'<path class="line {style}" d="M{corners[0][0]:.1f} {corners[0][1]:.1f}{rest}"/>')

    def steps(self, edges: Sequence[float], values: Sequence[float | None], style: str) -> None:
        """Draw each value as a horizontal line between two edges, with a gap for None. All are chart positions."""
        drawn = ""
        for place, y in enumerate(values):
            if y is not None:
                joint = "V" if place and values[place - 1] is not None else f"M{edges[place]:.1f} "
                drawn += f"{joint}{y:.1f}H{edges[place + 1]:.1f}"
        self._parts.append(f'<path class="line {style}" d="{drawn}"/>')

    def area(self, edges: Sequence[float], low: Sequence[float], high: Sequence[float], style: str) -> None:
        """Fill the area between `low` and `high` from each edge to the next. All values are chart positions."""
        there = "".join(f"V{y:.1f}H{x:.1f}" for x, y in zip(edges[1:], high, strict=True))
        back = "".join(f"V{y:.1f}H{x:.1f}" for x, y in zip(edges[-2::-1], low[::-1], strict=True))
        self._parts.append(f'<path class="{style}" d="M{edges[0]:.1f} {low[0]:.1f}{there}{back}z"/>')

    def cloud(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """Draw many small dots as one path."""
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
        self._parts.append(f'<path class="cloud {style}" d="{path}"/>')

    def dot(self, x: float, y: float, number: int, name: str, scale: float = 1.0) -> None:
        """Draw a dot of a series, with its name as a tooltip."""
        self._parts.append(_dot(x, y, number, f"<title>{escape(name)}</title>", scale))

    def bar(self, x: float, y: float, width: float, height: float, style: str, name: str = "") -> None:
        """Draw a rectangle from its upper left corner, with its name as a tooltip."""
        title = f"<title>{escape(name)}</title>" if name else ""
        size = f'width="{max(width, 0.4):.1f}" height="{max(height, 0):.1f}"'
        self._parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" {size}>{title}</rect>')

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """Draw a text at a chart position."""
        self._parts.append(f'<text class="name" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def svg(self) -> str:
        """Return the chart as an SVG element."""
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
    """Return a bar chart of the share of each group, up to `high`.

    `axes` names the group axis, then the share axis. `size` is width and height in chart units.
    """
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
    """Return the step between shown names, so that equally spaced names do not overlap: 3 shows every third name.

    >>> sparse(["Sep 1996"] * 12, 360)
    3
    """
    return math.ceil(len(names) * LETTER * (max(map(len, names)) + 1) / room)


def panels(drawn: Iterable[tuple[str, str]]) -> str:
    """Return small charts in a row, each below its name, from pairs of a name and an SVG element."""
    return f'<div class="panels">{"".join(f"<div><h5>{escape(name)}</h5>{svg}</div>" for name, svg in drawn)}</div>'


def others(base: int, count: int) -> list[int]:
    """Return the indices of all policies but `base`; of a single policy, its own index."""
    return [place for place in range(count) if place != base] or [base]


def beside(base: str) -> str:
    """Return a sentence that explains panels with the line of the policy `base` in each."""
    return f"Each policy has a panel, and in all of them is the line of {base}."


def legend(names: Sequence[tuple[str, str]]) -> str:
    """Return the legend of a chart from pairs of a CSS class and a name.

    >>> "easy</li>" in legend([("line s1", "easy")])
    True
    """
    return _legend((_swatch(style), name) for style, name in names)


def _numbered(names: Iterable[str]) -> Iterable[tuple[str, int]]:
    indices = list(names)
    return zip(indices, numbered(indices), strict=True)


def lines(names: Iterable[str]) -> str:
    """Return the legend of the lines of these series."""
    return legend([(f"line {series(number)}", name) for name, number in _numbered(names)])


def dots(names: Iterable[str]) -> str:
    """Return the legend of the dots of these series."""
    return _legend((_dot(13, 6, number), name) for name, number in _numbered(names))


def _legend(names: Iterable[tuple[str, str]]) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true">{swatch}</svg>{escape(name)}</li>' for swatch, name in names
    )
    return f'<ul class="legend">{items}</ul>'


def _dot(x: float, y: float, number: int, label: str = "", scale: float = 1.0) -> str:
    at = f"translate({x:.1f} {y:.1f})" + ("" if scale == 1.0 else f" scale({scale:.2f})")
    symbol = SYMBOLS[number // len(DASHES) % len(SYMBOLS)]
    return f'<path class="dot {series(number)}" transform="{at}" d="{symbol}">{label}</path>'


def _swatch(style: str) -> str:
    if style.startswith("fill"):
        return f'<rect class="{style}" x="1" y="1" width="24" height="10"/>'
    if style.startswith("cloud"):
        return f'<path class="{style}" d="M6 6h0M13 6h0M20 6h0"/>'
    return f'<path class="{style}" d="M1 6H25"/>'
