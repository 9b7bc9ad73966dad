"""Inline commands to a Redis, over a plain connection."""

import socket

from shadowtime.stack.servers.servers import Redis
from tests.support.patience import PATIENCE


def ask(server: Redis, command: str) -> bytes:
    """Return the raw answer to an inline command; none here is longer than one read."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(command.encode() + b"\r\n")
        return connection.recv(65536)
