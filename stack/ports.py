"""Loopback ports for servers that come and go.

Not from the system's ephemeral range: while a server is down, a client that keeps trying to connect to such a
port may be given that very port as its own, be connected to itself, and keep the server from coming back.
"""

import secrets
import socket
from pathlib import Path

HOST = "127.0.0.1"
MIN_PORT = 10_000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
MIN_EPHEMERAL = 32_768  # where the system does not say; Linux's default

_given: set[int] = set()


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: old connections do not count
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a port that is free now, outside the ephemeral range, never the same one twice."""
    highest = _lowest_ephemeral()
    while True:
        port = MIN_PORT + secrets.randbelow(highest - MIN_PORT)
        if port not in _given and is_free(port):
            _given.add(port)
            return port


def _lowest_ephemeral() -> int:
    try:
        lowest = int(EPHEMERAL_RANGE.read_text().split()[0])
    except OSError:
        return MIN_EPHEMERAL
    return lowest if lowest > 2 * MIN_PORT else MIN_EPHEMERAL
