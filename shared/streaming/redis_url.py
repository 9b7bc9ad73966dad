"""How Redis is named: one server, or some nodes of a Redis Cluster, which tell of the others."""

from urllib.parse import urlsplit

CLUSTER = "+cluster"
"""What follows the scheme where nodes of a cluster are named."""


def cluster_nodes(url: str) -> list[tuple[str, int]]:
    """Return hosts and ports of the nodes that a URL names; none of a URL of one server.

    Raises
    ------
    ValueError
        Where a node is not HOST:PORT.

    Examples
    --------
    >>> cluster_nodes("redis+cluster://a:6379,b:6380"), cluster_nodes("redis://a:6379/0")
    ([('a', 6379), ('b', 6380)], [])
    >>> cluster_nodes("redis+cluster://a")
    Traceback (most recent call last):
        ...
    ValueError: nodes of a Redis Cluster are redis+cluster://HOST:PORT,HOST:PORT, or rediss+cluster:// for TLS
    """
    parts = urlsplit(url)
    if not parts.scheme.endswith(CLUSTER):
        return []
    named = [urlsplit(f"//{node}") for node in parts.netloc.split(",")]
    try:
        nodes = [(node.hostname or "", node.port or 0) for node in named]
    except ValueError:  # no port that there can be
        nodes = []
    if parts.scheme.removesuffix(CLUSTER) not in ("redis", "rediss") or not nodes or not all(map(all, nodes)):
        raise ValueError(
            "nodes of a Redis Cluster are redis+cluster://HOST:PORT,HOST:PORT, or rediss+cluster:// for TLS"
        )
    return nodes
