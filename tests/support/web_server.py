"""A web server in a thread of its own, for clients that block; and such clients."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import uvloop
from aiohttp import web

from shadowtime.shared.streaming.web.server import Listening, listening
from tests.support.patience import PATIENCE

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@dataclass(frozen=True)
class Served:
    """A server that runs: where, and in which thread."""

    port: int
    listening: Listening
    thread: threading.Thread
    clients: ExitStack

    def cpu(self) -> float:
        """Return the processor time that it took so far, in seconds."""
        assert self.thread.ident is not None
        return time.clock_gettime(time.pthread_getcpuclockid(self.thread.ident))

    def connect(
        self, sent: bytes = b"", *, receive_buffer: int | None = None, host: str = "127.0.0.1"
    ) -> socket.socket:
        """Return a connection on which something was sent; it lasts as long as the server, if not closed before."""
        client = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.clients.callback(client.close)
        client.settimeout(PATIENCE)
        client.connect((host, self.port))
        client.sendall(sent)
        return client

    def ask(self, sent: bytes = GET, *, host: str = "127.0.0.1") -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request."""
        with self.connect(sent, host=host) as client:
            return answer(client)


def answer(client: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of the next answer, which tells its length; status 0 if the connection ends."""
    try:
        with client.makefile("rb", buffering=0) as file:
            status = file.readline()
            length = 0
            while (line := file.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = b""
            while len(body) < length and (part := file.read(length - len(body))):
                body += part
    except ConnectionError:
        return 0, b""
    return int(status.split()[1]) if status else 0, body


def is_ended(client: socket.socket) -> bool:
    """Return whether the other side has ended a connection, all that it sent before apart."""
    client.settimeout(0.01)
    try:
        while client.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@contextmanager
def serving(
    application: web.Application, loop: str = "asyncio", host: str = "127.0.0.1", **options: Any
) -> Iterator[Served]:
    """Run a server while the block lasts."""
    started: list[Served] = []
    failed: list[BaseException] = []
    there, ended = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    clients = ExitStack()

    async def go() -> None:
        loops.append(asyncio.get_running_loop())
        async with listening(application, host, 0, **options) as server:
            started.append(Served(server.addresses[0][1], server, threading.current_thread(), clients))
            there.set()
            await ended.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
                runner.run(go())
        except BaseException as error:  # it is raised where the test sees it
            failed.append(error)
        finally:
            there.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert there.wait(PATIENCE)
    try:
        if started:
            yield started[0]
    finally:
        clients.close()
        if not failed:
            loops[0].call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)
        assert not thread.is_alive()
        if failed:
            raise failed[0]
