"""Loopback ports for servers that are stopped and restarted.

The ports are outside the system's ephemeral range. While a server is down, a client that retries to connect could get
an ephemeral port as its own source port. The client would connect to itself, and the server could not restart.
"""

import os
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path

HOST = "127.0.0.1"
MIN_PORT = 10_000
PORTS = "FREE_PORTS"  # environment variable with the allowed ports, as FIRST-LAST; parallel tests then do not collide
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
MIN_EPHEMERAL = 32_768  # Linux's default, used if the system does not state it

RESERVED: set[int] = set()
"""Ports that `free_port` does not return in this process: those that it has returned, and those of `reserve`."""


def reserve(ports: Iterable[int]) -> None:
    """Keep ports for servers that are still to start: `free_port` returns none of them."""
    RESERVED.update(ports)


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do, to ignore closed connections
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(row: int = 1) -> int:
    """Return the first of `row` consecutive ports that are `allowed` and free now. No port is returned twice."""
    first, last = allowed()
    while True:
        port = first + secrets.randbelow(last - first - row + 2)
        ports = range(port, port + row)
        if RESERVED.isdisjoint(ports) and all(map(is_free, ports)):
            RESERVED.update(ports)
            return port


def allowed() -> tuple[int, int]:
    """Return the first and the last port that `free_port` may use."""
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
