"""A web server for as long as a block lasts; one on the loopback is for this machine alone."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from shared.errors import SettingsError

PATIENCE_AT_THE_END = 3.0
"""Seconds that requests under way have when the process is told to end."""


def told_to_end() -> asyncio.Event:
    """Return what is set as soon as this process is told to end, by SIGTERM or Ctrl-C."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended


@asynccontextmanager
async def listening(application: web.Application, host: str, port: int) -> AsyncIterator[web.AppRunner]:
    """Serve an application; yield what knows its addresses.

    On the loopback it answers to no other name than localhost (421): a page from elsewhere, to which its own name
    server gives the address of the loopback, reads nothing.

    Raises
    ------
    SettingsError
        If nobody can listen there.
    """
    if is_loopback(host):
        application.middlewares.append(_only_here)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=PATIENCE_AT_THE_END)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise SettingsError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        yield runner
    finally:
        await runner.cleanup()


def address_of(runner: web.AppRunner) -> str:
    """Return the URL of the first place where an application listens."""
    return "http://{}:{}/".format(*runner.addresses[0][:2])


@web.middleware
async def _only_here(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    if not is_loopback(_name(request.host)):
        raise web.HTTPMisdirectedRequest(reason="this is for this machine alone")
    return await handler(request)


def _name(host: str) -> str:
    """Return what a Host header names, without its port; nothing if it is malformed.

    >>> _name("localhost:6080"), _name("[::1]:6080"), _name("[")
    ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is this machine's own.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
