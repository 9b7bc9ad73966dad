"""Text on a page: what is markup to a browser, and what nobody sees, is written out."""

import html
import unicodedata

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
            each.encode("unicode_escape").decode() if unicodedata.category(each) in UNSEEN else each for each in text
        )
    return html.escape(text)
