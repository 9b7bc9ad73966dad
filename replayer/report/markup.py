"""HTML parts of a page: tables, figures around charts, bars. Names from a log are escaped."""

import html
import math
import re
import unicodedata
from collections.abc import Sequence

UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of invisible or direction-changing characters: controls, formats, surrogates, unassigned."""


def escape(text: str) -> str:
    r"""Return a text escaped for HTML. Invisible characters are shown as escape sequences.

    >>> print(escape("kth\x1b[2J\u202e <b>95 %</b>\n"))
    kth\x1b[2J\u202e &lt;b&gt;95 %&lt;/b&gt;\n
    >>> escape("95\u00a0%")
    '95\xa0%'
    """
    if not text.isprintable():
        text = "".join(
            character.encode("unicode_escape").decode() if unicodedata.category(character) in UNSEEN else character
            for character in text
        )
    return html.escape(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], label: str, note: str = "") -> str:
    """Return an HTML table, which scrolls by itself if it is wider than the page.

    Parameters
    ----------
    head
        The names of the columns.
    rows
        Rows of cells, as HTML. The first cell is the heading of its row.
    label, note
        Description of the table for screen readers, and a text to show above it.
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f"{f'<p class=note>{escape(note)}</p>' if note else ''}"
        f'<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(title: str, caption: str, picture: str, numbers: str, *, wide: bool = False) -> str:
    """Return a chart with its title, its caption, and the numbers behind it in a folded table.

    `picture` and `numbers` are HTML. A `wide` chart has the whole width of the page.
    """
    return (
        f"<figure{' class=full' if wide else ''}>"
        f"<figcaption><h4>{escape(title)}</h4><p>{escape(caption)}</p></figcaption>{picture}"
        f"<details><summary>Numbers<span class=hidden>: {escape(title)}</span></summary>{numbers}</details></figure>"
    )


def cell(value: float | None, shown: str) -> str:
    """Return a value in a readable form as HTML. The markup also holds the exact value.

    >>> cell(6834.6, "1.9 h")
    '<data value="6834.6">1.9 h</data>'
    """
    return escape(shown) if value is None else f'<data value="{value!r}">{escape(shown)}</data>'


HIDDEN = 0.1
"""If most bars are shorter than this share of the longest one, they are drawn on a logarithmic axis."""


def lengths_of(values: Sequence[float | None]) -> list[float | None]:
    """Return the lengths of bars: the values, or their logarithms if one value hides most of the others.

    A logarithmic axis begins at half the least value.

    >>> lengths_of([3.0, 2.0, 4.0]), [round(length or 0, 1) for length in lengths_of([900.0, 30.0, 15.0])]
    ([3.0, 2.0, 4.0], [4.8, 1.4, 0.7])
    """
    positive = sorted(value for value in values if value)
    if len(positive) < 2 or positive[(len(positive) - 1) // 2] >= HIDDEN * positive[-1]:
        return list(values)
    return [math.log(2 * value / positive[0]) if value else value for value in values]


def breakable(name: str) -> str:
    """Return a name as HTML that may break after the signs of a SPEC. A name with escaped characters does not break.

    >>> breakable("easy:forecast=yes")
    'easy:<wbr>forecast=<wbr>yes'
    """
    return re.sub("([:,=+(])", r"\1<wbr>", escape(name)) if "&" not in escape(name) else escape(name)


def bars(
    title: str, rows: Sequence[tuple[str, float | None, str]], styles: Sequence[str], longest: float | None = None
) -> str:
    """Return horizontal bars under a title.

    Parameters
    ----------
    rows
        Name, length, and text after the bar, for each bar.
    styles
        CSS class of each bar.
    longest
        Length that fills the whole width; if None, the length of the longest bar.
    """
    longest = longest or max((value or 0 for _, value, _ in rows), default=0) or 1
    drawn = "".join(
        f"<span>{breakable(name)}</span>"
        f'<span class="bar {style}" aria-hidden="true" style="width: {100 * (value or 0) / longest:.1f}%"></span>'
        f"<span>{escape(shown)}</span>"
        for (name, value, shown), style in zip(rows, styles, strict=True)
    )
    return f'<div><h4>{escape(title)}</h4><div class="bars">{drawn}</div></div>'
