"""URLs and tokens of servers that are talked to over HTTP, as people give them."""

from urllib.parse import urlsplit


def http_url(url: str, example: str = "http://127.0.0.1:8428") -> str:
    """Return a URL of a server, or raise `ValueError` that shows it, and an `example` of what it should look like.

    >>> http_url("https://grafana.example.org/below")
    'https://grafana.example.org/below'
    >>> http_url("10.0.0.5:8428")
    Traceback (most recent call last):
    ValueError: '10.0.0.5:8428' is no URL of a server; it looks like http://127.0.0.1:8428
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, a port that is no number or too large a one
        fine = False
    if not fine:
        raise ValueError(f"{url!r} is no URL of a server; it looks like {example}")
    return url


def bearer_token(text: str) -> str:
    """Return a token without the line break that files and secrets have; raise `ValueError` if it is none, unshown.

    >>> bearer_token("glsa_1 ")
    'glsa_1'
    >>> bearer_token(" ")
    Traceback (most recent call last):
    ValueError: it is empty
    """
    token = text.strip()
    if not token:
        raise ValueError("it is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("it has characters that no token has")
    return token
