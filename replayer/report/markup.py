"""The parts of a page that are text: tables, figures around charts, bars; whatever names are in them stays text."""

import html
import unicodedata
from collections.abc import Sequence

UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Categories of characters that show nothing, or turn what is around them: controls, formats, halves of pairs."""


def escape(text: str) -> str:
    r"""Return a text as HTML shows it, whatever names are in it; nothing is lost of what cannot be seen.

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
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
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


def bars(
    title: str, rows: Sequence[tuple[str, float | None, str]], styles: Sequence[str], longest: float | None = None
) -> str:
    """Return horizontal bars under a title.

    Parameters
    ----------
    rows
        Of each bar its name, its length, and what is written behind it.
    styles
        Of each bar the class that colours it.
    longest
        The length that has all the room; if not given, that of the longest bar.
    """
    longest = longest or max((value or 0 for _, value, _ in rows), default=0) or 1
    drawn = "".join(
        f"<span>{escape(name)}</span>"
        f'<span class="bar {style}" aria-hidden="true" style="width: {100 * (value or 0) / longest:.1f}%"></span>'
        f"<span>{escape(shown)}</span>"
        for (name, value, shown), style in zip(rows, styles, strict=True)
    )
    return f'<div><h4>{escape(title)}</h4><div class="bars">{drawn}</div></div>'
