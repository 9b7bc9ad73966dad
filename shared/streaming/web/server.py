"""The web server of all pages, a context manager. It answers only to allowed names, and limits connections."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

from aiohttp import web

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote
from shadowtime.shared.streaming.web.connections import BACKLOG, IDLE_SECONDS, Connections, log
from shadowtime.shared.streaming.web.host_names import AllowedNames, named

PATIENCE_AT_THE_END = 3.0
"""Seconds within which requests under way must end when the process stops."""

BODY_SECONDS = 1.0
"""Seconds for which an unwanted body is read and dropped; then the connection is closed."""

MAX_LINE_LENGTH = 8_190
"""The maximum length in bytes of a request's first line, and of each of its headers."""

MAX_HEADERS = 64

Route = web.RouteDef
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Listening:
    """A server that listens: its `addresses`, as (HOST, PORT, …), and its `connections`."""

    def __init__(self, addresses: list[tuple[Any, ...]], connections: Connections) -> None:
        self.addresses = addresses
        self.connections = connections


def shutdown_event() -> asyncio.Event:
    """Return an event that is set when this process receives SIGTERM or SIGINT (Ctrl-C).

    Call it after the needed servers have answered. Until then the signals keep Python's own handlers, which end the
    program.
    """
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended


@asynccontextmanager
async def listening(
    application: web.Application,
    host: str,
    port: int,
    names: Iterable[str] = (),
    *,
    cancelling: bool = False,
    bodies: Collection[str] = (),
) -> AsyncIterator[Listening]:
    """Serve an application. Yield the listening server.

    Parameters
    ----------
    application
        The application to serve.
    host, port
        The host and the port at which the server listens; port 0 for a free one.
    names
        Further names to which the server answers. It always answers to localhost, the loopback's addresses, `host`, and
        the address to which a connection was made.
    cancelling
        Whether a handler is cancelled at once when its client disconnects.
    bodies
        Paths of the pages that accept a body.

    Raise `SettingsError` if the server cannot listen there, or one of `names` is no host name.
    """
    allowed = AllowedNames(host, names)
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=log,
        shutdown_timeout=PATIENCE_AT_THE_END,
        handler_cancellation=cancelling,
        keepalive_timeout=IDLE_SECONDS,
        lingering_time=BODY_SECONDS,
        max_line_size=MAX_LINE_LENGTH,
        max_field_size=MAX_LINE_LENGTH,
        max_headers=MAX_HEADERS,
        auto_decompress=False,
    )

    def make() -> asyncio.Protocol:
        if runner.server is None:
            raise RuntimeError("the server has ended")
        return runner.server()

    connections = Connections(make)
    application.middlewares.insert(0, _noted(connections))
    application.middlewares.append(_guarded(allowed, bodies))
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.callback(connections.end)
        stack.push_async_callback(runner.cleanup)
        listeners = await _listeners(host, port)
        for listener in listeners:
            stack.callback(listener.close)
        work = [asyncio.create_task(connections.accept_loop(listener)) for listener in listeners]
        stack.push_async_callback(_ended, work)
        sweeping = asyncio.create_task(connections.reap_idle())
        stack.push_async_callback(_ended, [sweeping])
        yield Listening([listener.getsockname() for listener in listeners], connections)


async def require_port(host: str, port: int) -> None:
    """Raise `SettingsError` if no server could listen at `host` and `port` now."""
    for listener in await _listeners(host, port):
        listener.close()


def address_of(server: Listening) -> str:
    """Return the URL of the first address at which a server listens."""
    host, port = server.addresses[0][:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def _listeners(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at every address of a host."""
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        places = dict.fromkeys((family, address) for family, *_, address in addresses)
    except (OSError, UnicodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "this is not a host name"
        raise SettingsError(f"cannot listen on {quote(host)}: {reason}") from error

    listeners: list[socket.socket] = []
    try:
        for family, address in places:
            listeners.append(socket.create_server(address, family=family, backlog=BACKLOG))
            listeners[-1].setblocking(False)
    except OSError as error:
        for listener in listeners:
            listener.close()
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise SettingsError(f"cannot listen on {host}:{port}: {reason}") from error

    return listeners


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _noted(connections: Connections) -> Any:
    """Return the outermost middleware, which marks a connection while its request is being answered."""

    @web.middleware
    async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = connections.of(request.protocol)
        with nullcontext() if connection is None else connection.answer():
            return await handler(request)

    return note


def _guarded(allowed: AllowedNames, bodies: Collection[str]) -> Any:
    """Return the innermost middleware, which refuses names that are not allowed, and bodies that no page accepts.

    It is innermost, so that the other middlewares can format its errors.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = request.headers.getall("Host", [])
        host = named(headers[0]) if len(headers) == 1 else None
        if host is None:
            raise web.HTTPBadRequest(reason="expected one valid Host header")
        target = host if request.host == headers[0] else request.host or ""  # a whole URL overrides the header
        arrived_at = str((request.get_extra_info("sockname") or ("",))[0])
        if not (allowed.include(host, arrived_at) and allowed.include(target, arrived_at)):
            raise web.HTTPMisdirectedRequest(reason="not a name of this server: see --allow, or the setting web_names")
        if request.body_exists and request.path not in bodies:
            request.protocol.close()
            raise web.HTTPRequestEntityTooLarge(0, request.content_length or 0, reason="this page accepts no body")
        return await handler(request)

    return guard
