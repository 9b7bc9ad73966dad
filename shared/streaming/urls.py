"""URLs and tokens of servers, as people enter them."""

from contextlib import suppress
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import parse_qsl, urlsplit


def has_password(url: str) -> bool:
    """Return whether a URL contains a password, even one whose characters `/`, `?` or `#` should have been escaped.

    >>> [has_password(url) for url in ("redis://:p/w@host:6379", "redis://host?password=pw", "http://me:p@host")]
    [True, True, True]
    >>> [has_password(url) for url in ("redis://me@host:6379", "unix:///run/redis.sock?db=1", "http://[::1]:8428")]
    [False, False, False]
    """
    user, at, _ = url.partition("://")[2].rpartition("@")
    return bool(at and ":" in user) or "password=" in url.partition("?")[2]


def http_url(url: str, example: str = "http://127.0.0.1:8428") -> str:
    """Return `url` if it is an HTTP URL of a server. Otherwise raise `ValueError`, which quotes `url` and `example`.

    >>> http_url("https://grafana.example.org/below")
    'https://grafana.example.org/below'
    >>> http_url("10.0.0.5:8428")
    Traceback (most recent call last):
    ValueError: '10.0.0.5:8428' is not a URL of a server, such as http://127.0.0.1:8428
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, a port that is no number or too large a one
        fine = False

    if not fine:
        raise ValueError(f"{url!r} is not a URL of a server, such as {example}")
    return url


def kafka_servers(servers: str) -> str:
    """Return the addresses of brokers, without blanks and empty entries. Raise `ValueError` if one is malformed.

    >>> kafka_servers("kafka.example.org:9092, [::1]:9092,"), kafka_servers("::1")
    ('kafka.example.org:9092,[::1]:9092', '[::1]:9092')
    >>> kafka_servers("http://10.0.0.5:9092")
    Traceback (most recent call last):
    ValueError: expected brokers as HOST:PORT,HOST:PORT, found 'http://10.0.0.5:9092'
    """
    return ",".join([_broker(entry.strip()) for entry in servers.split(",") if entry.strip()] or [_broker("")])


def _broker(entry: str) -> str:
    with suppress(AddressValueError):
        return f"[{IPv6Address(entry)}]:9092"  # Kafka's usual port; some clients need it
    try:
        parts = urlsplit(f"//{entry}")
        (parts.hostname or "").encode("idna")  # a connection does this, and some names fail
        fine = parts.netloc == entry and "@" not in entry and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, an impossible port, or a host name that is too long
        fine = False

    if not fine:
        raise ValueError(f"expected brokers as HOST:PORT,HOST:PORT, found {entry.rpartition('@')[2]!r}")
    return entry


def bearer_token(text: str) -> str:
    """Return a token without the white space around it. Raise `ValueError`, without the token, if it is malformed.

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
        raise ValueError("it has a space, or a character that is not printable ASCII")
    return token


# The URL of Redis names one server, or some nodes of a Redis Cluster, which know the other nodes.

CLUSTER = "+cluster"
"""Suffix of the scheme of a URL that names nodes of a cluster."""


OPTIONS = ("db",)
TLS_OPTIONS = (*OPTIONS, "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")
"""Options that a URL of one Redis server may have behind its `?`, and those of a URL with TLS."""


def redis_url(url: str) -> str:
    """Return `url` if it is a URL of Redis, or of nodes of a Redis Cluster. Otherwise raise `ValueError`.

    >>> redis_url("redis://127.0.0.1:6379/0"), redis_url("unix:///run/redis.sock")
    ('redis://127.0.0.1:6379/0', 'unix:///run/redis.sock')
    >>> redis_url("127.0.0.1:6379")
    Traceback (most recent call last):
    ValueError: '127.0.0.1:6379' is not a URL of Redis, such as redis://127.0.0.1:6379/0 or unix:///PATH
    >>> redis_url("redis://127.0.0.1:6379/0?timeout=5")
    Traceback (most recent call last):
    ValueError: the URL has the option 'timeout'; expected no options but db
    """
    if cluster_nodes(url):
        return url
    try:
        parts = urlsplit(url)
        fine = bool(parts.path) if parts.scheme == "unix" else bool(parts.hostname) and parts.port != 0
        database = parts.path.strip("/") if parts.scheme != "unix" else ""
        options = parse_qsl(parts.query, keep_blank_values=True)
        databases = [database, *(value for name, value in options if name == "db")]
        fine = fine and parts.scheme in ("redis", "rediss", "unix")
        fine = fine and all(not number or number.isdecimal() for number in databases)
    except ValueError:  # half an IPv6 address, or an impossible port
        fine = False

    if not fine:
        raise ValueError(f"{url!r} is not a URL of Redis, such as redis://127.0.0.1:6379/0 or unix:///PATH")
    known = TLS_OPTIONS if parts.scheme == "rediss" else OPTIONS
    if unknown := [name for name, _ in options if name not in known]:
        raise ValueError(f"the URL has the option {unknown[0]!r}; expected no options but {', '.join(known)}")
    return url


def cluster_nodes(url: str) -> list[tuple[str, int]]:
    """Return hosts and ports of the nodes that a URL names; an empty list for a URL of one server.

    Raise `ValueError` if a node is not HOST:PORT.

    Examples
    --------
    >>> cluster_nodes("redis+cluster://a:6379,b:6380"), cluster_nodes("redis://a:6379/0")
    ([('a', 6379), ('b', 6380)], [])
    >>> cluster_nodes("redis+cluster://a")
    Traceback (most recent call last):
        ...
    ValueError: 'redis+cluster://a': expected redis+cluster://HOST:PORT,HOST:PORT, or rediss+cluster:// for TLS
    """
    parts = urlsplit(url)
    if not parts.scheme.endswith(CLUSTER):
        return []
    named = [urlsplit(f"//{node}") for node in parts.netloc.split(",")]
    try:
        nodes = [(node.hostname or "", node.port or 0) for node in named]
    except ValueError:  # an impossible port
        nodes = []

    if parts.scheme.removesuffix(CLUSTER) not in ("redis", "rediss") or not nodes or not all(map(all, nodes)):
        raise ValueError(f"{url!r}: expected redis+cluster://HOST:PORT,HOST:PORT, or rediss+cluster:// for TLS")

    return nodes
