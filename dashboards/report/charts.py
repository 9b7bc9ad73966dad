"""Charts drawn by hand as SVG: no script, sharp in print, and coloured by the page's own style, light or dark.

A chart is a few hundred lines of text where a library for the browser is megabytes of program; and whoever reads the
report on a phone, on paper or with a screen reader has the same of it.
"""

import math
from collections.abc import Iterable, Sequence

from shadowtime.dashboards.report.axes import Axis, linear, logarithmic, logarithmic_marks, round_marks
from shadowtime.dashboards.report.markup import escape

COLOURS = 8
"""Series that differ in colour and dashes, as `style.css` has them; a ninth line or bar looks like the first."""

SYMBOLS = ("M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z", "M-4-4h8v8h-8z", "M0-6L6 0L0 6L-6 0z", "M0-5L5 4H-5z")
"""A disc, a square, a diamond, a triangle around the origin: dots of the first eight series, of the next eight, …"""

LETTER = 6.8
"""Width of a letter in the units of a chart, on a phone."""


def series(number: int) -> str:
    """Return the class of the style that a series has."""
    return f"s{number % COLOURS + 1}"


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
        self.left, self.right, self.top, self.bottom = 60, width - 20, 28, height - 48
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
            f'</text><text x="4" y="14">{escape(y.name)}</text>'
        )

    def line(self, points: Iterable[tuple[float, float]], style: str, steps: bool = False) -> None:
        """Draw a line through places on the chart; with `steps`, along first and up then."""
        found = list(points)
        rest = "".join(f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in found[1:])
        if found:
            self._parts.append(f'<path class="line {style}" d="M{found[0][0]:.1f} {found[0][1]:.1f}{rest}"/>')

    def cloud(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """Draw many small dots as one path."""
        found = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
        self._parts.append(f'<path class="cloud {style}" d="{found}"/>')

    def dot(self, x: float, y: float, number: int, name: str) -> None:
        """Draw the dot of a series, that says its name under the pointer."""
        self._parts.append(_dot(x, y, number, f"<title>{escape(name)}</title>"))

    def bar(self, x: float, y: float, width: float, height: float, style: str, name: str = "") -> None:
        """Draw a rectangle from its upper left corner, that says its name under the pointer."""
        said = f"<title>{escape(name)}</title>" if name else ""
        size = f'width="{max(width, 0.4):.1f}" height="{max(height, 0):.1f}"'
        self._parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" {size}>{said}</rect>')

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """Write beside a mark."""
        self._parts.append(f'<text class="name" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def svg(self) -> str:
        """Return the chart."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(self._label)}">'
            f"{''.join(self._parts)}</svg>"
        )


def grouped_bars(
    label: str,
    groups: Sequence[str],
    values: Sequence[Sequence[float | None]],
    names: Sequence[str],
    y_name: str,
    x_name: str = "",
    floor: float = 0,
) -> str:
    """Return a chart of bars side by side, one for each series in each group.

    Parameters
    ----------
    groups
        Names of the groups.
    values
        For each series one value for each group; no bar where there is none.
    names
        Names of the series.
    floor
        Where bars begin; if not at 0, the axis is logarithmic.
    """
    chart = Chart(label)
    high = 1.05 * max((value for row in values for value in row if value is not None), default=0.0) or 1.0
    high = max(high, 2 * floor)
    scale, marks = (logarithmic, logarithmic_marks(floor, high)) if floor else (linear, round_marks(0, high, 5))
    y = scale(floor, high, chart.bottom, chart.top)
    room = (chart.right - chart.left) / len(groups)
    gap = min(room * 0.25, 16)
    width = (room - gap) / len(values)
    every = math.ceil(
        len(groups) * LETTER * (max(map(len, groups)) + 1) / (chart.right - chart.left)
    )  # so that no names touch
    centres = [(chart.left + (place + 0.5) * room, group) for place, group in enumerate(groups) if place % every == 0]
    chart.axes(Axis(lambda value: value, centres, x_name), Axis(y, marks, y_name), upright=False)
    for number, (row, name) in enumerate(zip(values, names, strict=True)):
        for place, value in enumerate(row):
            if value is not None:
                x = chart.left + place * room + gap / 2 + number * width
                said = f"{name}, {groups[place]}: {value:,.2f}"
                chart.bar(x, y(value), max(width - 0.6, 0.4), chart.bottom - y(value), f"fill {series(number)}", said)
    return chart.svg()


def legend(names: Sequence[tuple[str, str]]) -> str:
    """Return what the styles of a chart mean: pairs of the class of a style and a name.

    >>> "easy</li>" in legend([("line s1", "easy")])
    True
    """
    return _legend((_swatch(style), name) for style, name in names)


def lines(names: Iterable[str]) -> str:
    """Return the legend of lines."""
    return legend([(f"line {series(number)}", name) for number, name in enumerate(names)])


def fills(names: Iterable[str]) -> str:
    """Return the legend of areas."""
    return legend([(f"fill {series(number)}", name) for number, name in enumerate(names)])


def dots(names: Iterable[str]) -> str:
    """Return the legend of dots."""
    return _legend((_dot(13, 6, number), name) for number, name in enumerate(names))


def _legend(names: Iterable[tuple[str, str]]) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true">{swatch}</svg>{escape(name)}</li>' for swatch, name in names
    )
    return f'<ul class="legend">{items}</ul>'


def _dot(x: float, y: float, number: int, said: str = "") -> str:
    symbol = SYMBOLS[number // COLOURS % len(SYMBOLS)]
    return f'<path class="dot {series(number)}" transform="translate({x:.1f} {y:.1f})" d="{symbol}">{said}</path>'


def _swatch(style: str) -> str:
    if style.startswith("fill"):
        return f'<rect class="{style}" x="1" y="1" width="24" height="10"/>'
    if style.startswith("cloud"):
        return f'<path class="{style}" d="M6 6h0M13 6h0M20 6h0"/>'
    return f'<path class="{style}" d="M1 6H25"/>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], label: str, note: str = "") -> str:
    """Return a table that scrolls in itself where it is wider than the page.

    Parameters
    ----------
    head
        The names of the columns.
    rows
        Cells, as HTML; the first names its row.
    label, note
        What it is, for whoever does not see it, and what is to be said before it.
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{each}</td>" for each in row[1:])}</tr>' for row in rows
    )
    return (
        f"{f'<p class=note>{escape(note)}</p>' if note else ''}"
        f'<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(title: str, caption: str, picture: str, numbers: str, *, wide: bool = False) -> str:
    """Return a chart with its title, what it tells, and the numbers behind it as a table to unfold."""
    return (
        f"<figure{' class=full' if wide else ''}>"
        f"<figcaption><h4>{escape(title)}</h4><p>{escape(caption)}</p></figcaption>{picture}"
        f"<details><summary>Numbers<span class=hidden>: {escape(title)}</span></summary>{numbers}</details></figure>"
    )


def cell(value: float | None, shown: str) -> str:
    """Return a value as a person reads it; the exact one is in the markup.

    >>> cell(6834.6, "1.9 h")
    '<data value="6834.6">1.9 h</data>'
    """
    return escape(shown) if value is None else f'<data value="{value!r}">{escape(shown)}</data>'
