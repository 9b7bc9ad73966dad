"""Loopback ports for servers that come and go.

Not from the system's ephemeral range: while a server is down, a client that keeps trying to connect to such a
port may be given that very port as its own, be connected to itself, and keep the server from coming back.
"""

import os
import secrets
import socket
from pathlib import Path

HOST = "127.0.0.1"
MIN_PORT = 10_000
PORTS = "FREE_PORTS"  # FIRST-LAST: those that may be given, so that tests side by side take none of each other
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
MIN_EPHEMERAL = 32_768  # where the system does not say; Linux's default

RESERVED: set[int] = set()
"""Ports that this process was given; it is given none of them again."""


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: old connections do not count
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(row: int = 1) -> int:
    """Return the first of `row` ports in a row that are free now, outside the ephemeral range, never one twice."""
    first, last = allowed()
    while True:
        port = first + secrets.randbelow(last - first - row + 2)
        ports = range(port, port + row)
        if RESERVED.isdisjoint(ports) and all(map(is_free, ports)):
            RESERVED.update(ports)
            return port


def allowed() -> tuple[int, int]:
    """Return the first and the last port that `free_port` may give."""
    if ports := os.environ.get(PORTS):
        first, last = ports.split("-")
        return int(first), int(last)
    return MIN_PORT, _lowest_ephemeral() - 1


def _lowest_ephemeral() -> int:
    try:
        lowest = int(EPHEMERAL_RANGE.read_text().split()[0])
    except OSError:
        return MIN_EPHEMERAL
    return lowest if lowest > 2 * MIN_PORT else MIN_EPHEMERAL
