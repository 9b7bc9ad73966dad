"""Text from outside, made safe for messages and tables: quoted, bounded in length, without control characters."""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256


def plain(text: str) -> str:
    r"""Return a text with every unprintable character, such as a line break, replaced by U+FFFD.

    >>> plain("kth\x1b[2J\n")
    'kth\ufffd[2J\ufffd'
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def one_line(text: str) -> str:
    r"""Return a text as one line for a terminal, without control characters.

    >>> one_line("kth\x1b[2J is\nno cluster")
    'kth\ufffd[2J is no cluster'
    """
    return text if text.isprintable() else plain(" ".join(text.splitlines()))


_NOT_PLAIN = re.compile("[^\n\x20-\x7e]")


def json_text(text: bytes) -> bytes:
    r"""Return JSON with the same values, in which every unprintable character is an escape sequence.

    JSON itself escapes only the first 32 characters. Terminals also obey others.

    >>> json_text('{"kth":"\x9b2J\u202eé"}'.encode()).decode()
    '{"kth":"\\u009b2J\\u202eé"}'
    """
    shown = text.decode()
    if shown.isprintable():
        return text
    return _NOT_PLAIN.sub(lambda one: one[0] if one[0].isprintable() else json.dumps(one[0])[1:-1], shown).encode()


_FORMULA = re.compile(r"\s*[=+@-].")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def table_cell(value: object) -> object:
    """Return a value as a cell of a CSV file. No terminal obeys it, and no spreadsheet calculates it as a formula.

    A text that begins like a formula gets an apostrophe before it. Numbers stay as they are.

    >>> [table_cell(value) for value in ("=cmd", "kth", "-1.5", -1.5, None)]
    ["'=cmd", 'kth', '-1.5', -1.5, None]
    """
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


QUOTED = 120
"""Maximum characters of a quoted text that are shown."""

REASON = 1_000
"""Maximum characters of a reason that are shown."""


def quote(text: str, most: int = QUOTED) -> str:
    """Return a text in quotes. A long text is cut, and its length and a hash are added to identify it.

    >>> quote("kth/easy")
    "'kth/easy'"
    >>> quote("x" * 1_000, 8)
    "'xxxxxxxx'… (1000 characters, sha256 44f8354494a5)"
    """
    if len(text) <= most:
        return repr(text)
    return f"{text[:most]!r}{_rest(text)}"


def truncate(text: str, most: int = REASON) -> str:
    """Return a text; a long text is cut, and its length and a hash are added to identify it.

    >>> truncate("job 1 was never submitted")
    'job 1 was never submitted'
    """
    return text if len(text) <= most else f"{text[:most]}{_rest(text)}"


def among(name: str, names: Iterable[str], label: str = "known", most: int | None = None) -> str:
    """Return the end of an error about an unknown name: the most similar name, if one is similar, and the known names.

    `label` introduces the known names. At most `most` of them are listed, or all if None.

    >>> among("eazy", ["easy", "fcfs"])
    "; did you mean 'easy'? known: easy, fcfs"
    >>> among("x", ["easy", "fcfs"], "known keys"), among("x", []), among("x", "abc", most=2)
    ('; known keys: easy, fcfs', '; known: none', '; known: a, b and 1 more')
    """
    from difflib import get_close_matches  # only needed for errors

    names = list(names)
    alike = get_close_matches(name[:QUOTED], names, 1)
    guess = f"; did you mean {quote(alike[0])}?" if alike else ";"
    return f"{guess} {label}: {listed(names, most)}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Return names as a list in a sentence, the first `most` of them, or all if None.

    A name that is no single word has quotes.

    >>> listed(["easy", "mean wait"]), listed([])
    ("easy, 'mean wait'", 'none')
    """
    shown = ", ".join(name if _WORD.fullmatch(name) else quote(name) for name in names[:most]) or "none"
    left = 0 if most is None else len(names) - most
    return f"{shown} and {left:,} more" if left > 0 else shown


_WORD = re.compile(f"[^\\s\"',]{{1,{QUOTED}}}")


def _rest(text: str) -> str:
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"… ({len(text)} characters, sha256 {digest[:12]})"
