"""Limits on web connections: their number is bounded, and idle connections make room for new ones.

aiohttp parses and answers requests, and keeps connections. It has no limit on the number of connections, on the bytes
that clients send before an answer, or on the time that clients take to read. This module adds these limits around
aiohttp's protocol, with public functions of the event loop. So the limits are the same with asyncio's own loop and with
uvloop.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

from aiohttp.http_exceptions import HttpProcessingError

from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.quoting import quote

# The log of web servers: one line for a malformed request, without a traceback, and few lines of a kind.


class NoTraceback(logging.Filter):
    """Filter that logs a malformed request as one line, without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record of a malformed request, and return True."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            remote = record.args[0] if isinstance(record.args, tuple) and record.args else None
            record.msg, record.args = "malformed request: %s from %s", (quote(" ".join(error.message.split())), remote)
            record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
        return True


log = logging.getLogger("shadowtime.web")
log.addFilter(NoTraceback())
log.addFilter(FewAMinute())


MAX_CONNECTIONS = 256
"""The maximum number of connections. For a further one, the connection that has been idle longest is dropped."""

HEAD_SECONDS = 10.0
"""Seconds from the first byte of a request, or from a connection's beginning, to the end of the headers."""

IDLE_SECONDS = 75.0
"""Seconds between an answer and the next request on the same connection."""

TAKE_SECONDS = 10.0
"""Seconds within which a client must read the data sent to it."""

MAX_UNANSWERED = 65_536
"""Bytes of requests that a connection may send before the first of them is answered."""

SEND_BUFFER = 16_384
"""Bytes that the kernel is asked to buffer for a client. A larger buffer would hide that the client does not read."""

MAX_UNSENT = 65_536
"""Bytes that wait for the kernel before the writer has to wait, too."""

AGAIN_SECONDS = 0.1
"""Pause in seconds after a connection could not be accepted, as when there are no descriptors left."""

SWEEP_SECONDS = 1.0
BACKLOG = 1_024
"""Connections that may wait to be accepted. Further clients try again only after a second."""

MIN_CONNECTIONS = 8
"""The number of connections that are allowed even if descriptors are scarce."""

NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 23\r\n\r\nthe request is too long"
)


class Connection(asyncio.Protocol):
    """A connection, which passes everything on to aiohttp's protocol, and tracks its deadlines.

    Parameters
    ----------
    inner
        The protocol of aiohttp.
    there
        The connections of the server. The connection adds itself when it is made, and removes itself at its end.
    """

    def __init__(self, inner: asyncio.Protocol, there: "dict[asyncio.Protocol, Connection]") -> None:
        self.answering = False
        self.idle_since = _now()
        self._inner = inner
        self._there = there
        self._transport: asyncio.Transport
        self._answered = False
        self._asked_since: float | None = self.idle_since  # the first request is awaited
        self._unread_since: float | None = None
        self._unanswered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, and limit the bytes that wait to be sent."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=MAX_UNSENT, low=0)
        self._there[self._inner] = self
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass on the data, unless the client has sent too much before an answer."""
        self._unanswered += len(data)
        if self._asked_since is None:
            self._asked_since = _now()
        if self._unanswered <= MAX_UNANSWERED:
            self._inner.data_received(data)
        elif self._answered or self.answering:
            self._transport.abort()
        else:
            self._transport.write(TOO_LARGE)
            self._transport.close()

    def eof_received(self) -> bool | None:
        """Pass on that the client sends no more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that too much waits to be sent."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that everything has been sent."""
        self._unread_since = None
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection, and pass its end on."""
        self._there.pop(self._inner, None)
        self._inner.connection_lost(exc)

    @contextmanager
    def answer(self) -> Iterator[None]:
        """Mark the connection as answering a request, inside a `with` block."""
        self.answering = True
        self._unanswered = 0
        try:
            yield
        finally:
            self.answering, self._answered = False, True
            self.idle_since = _now()
            self._asked_since = self.idle_since if self._unanswered else None

    def is_overdue(self, now: float) -> bool:
        """Return whether the other side has taken too long, to send a request or to read an answer."""
        if not self._transport.get_write_buffer_size():
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = now

        if self._unread_since is not None and now - self._unread_since > TAKE_SECONDS:
            return True
        if self.answering:
            return False
        if self._asked_since is not None:
            return now - self._asked_since > HEAD_SECONDS
        return now - self.idle_since > IDLE_SECONDS

    def close(self) -> None:
        """Close the connection at once, even if data is still to be sent."""
        self._there.pop(self._inner, None)
        self._transport.abort()


class Connections:
    """All connections of a server.

    Parameters
    ----------
    make
        Returns a new protocol of aiohttp, for one connection.
    """

    def __init__(self, make: Callable[[], asyncio.Protocol]) -> None:
        self._make = make
        self._there: dict[asyncio.Protocol, Connection] = {}
        self._most = MAX_CONNECTIONS

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._there)

    def of(self, inner: asyncio.Protocol) -> Connection | None:
        """Return the connection of a protocol of aiohttp; None if it has ended."""
        return self._there.get(inner)

    async def accept_loop(self, listener: socket.socket) -> None:
        """Accept connections, for ever. After an error, log it and continue."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in NO_ROOM:  # leave some descriptors to the rest of the process
                    self._most = max(MIN_CONNECTIONS, len(self._there) * 3 // 4)
                    self._make_room()
                log.warning("cannot accept a connection: %s", error.strerror)
                await asyncio.sleep(AGAIN_SECONDS)
                continue

            self._make_room()
            try:
                _bound(taken)
                await loop.connect_accepted_socket(lambda: Connection(self._make(), self._there), taken)
            except OSError:  # the client has left again
                taken.close()

    async def reap_idle(self) -> None:
        """Close overdue connections, for ever, and raise a lowered limit of connections again, one at a time."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = loop.time()
            self._most = min(MAX_CONNECTIONS, self._most + 1)
            for connection in [connection for connection in self._there.values() if connection.is_overdue(now)]:
                connection.close()

    def end(self) -> None:
        """Close all connections."""
        for connection in list(self._there.values()):
            connection.close()

    def _make_room(self) -> None:
        """Close the connections that have been idle longest, until there is room for one more.

        If all are being answered, close some of these.
        """
        while len(self._there) >= self._most:
            min(self._there.values(), key=lambda connection: (connection.answering, connection.idle_since)).close()


def _bound(connection: socket.socket) -> None:
    """Let the kernel buffer little for a client, and drop a client that has gone or does not read."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    with suppress(AttributeError):  # where this option does not exist, `Connections.reap_idle` finds most of them
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(TAKE_SECONDS * 1_000))


def _now() -> float:
    return asyncio.get_running_loop().time()
