"""Text that others brought, cut where it is quoted: reasons, headers and log lines have a size, whatever they quote."""

from hashlib import sha256


def plain(text: str) -> str:
    r"""Return a text without line breaks and whatever else is not to be seen.

    >>> plain("kth\x1b[2J\n")
    'kth\ufffd[2J\ufffd'
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def one_line(text: str) -> str:
    r"""Return a text as one line for a terminal, whatever names are in it.

    >>> one_line("kth\x1b[2J is\nno cluster")
    'kth\ufffd[2J is no cluster'
    """
    return plain(" ".join(text.splitlines()))


QUOTED = 120
"""Characters of a text that are shown."""

REASON = 1_000
"""Characters that a reason has at most."""


def quote(text: str, most: int = QUOTED) -> str:
    """Return a text between quotes; of a long one the beginning, its length and what tells it from others.

    >>> quote("kth/easy")
    "'kth/easy'"
    >>> quote("x" * 1_000, 8)
    "'xxxxxxxx'… (1000 characters, sha256 44f8354494a5)"
    """
    if len(text) <= most:
        return repr(text)
    return f"{text[:most]!r}{_rest(text)}"


def truncate(text: str, most: int = REASON) -> str:
    """Return a text as it is; of a long one the beginning, its length and what tells it from others.

    >>> truncate("job 1 was never submitted")
    'job 1 was never submitted'
    """
    return text if len(text) <= most else f"{text[:most]}{_rest(text)}"


def _rest(text: str) -> str:
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"… ({len(text)} characters, sha256 {digest[:12]})"
