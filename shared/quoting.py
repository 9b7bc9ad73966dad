"""Truncation of quoted text from outside, so that reasons, headers and log lines are bounded in size."""

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


def _rest(text: str) -> str:
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"… ({len(text)} characters, sha256 {digest[:12]})"
