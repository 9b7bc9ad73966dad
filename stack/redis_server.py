"""Redis with an append-only file, from the system's package."""

import shutil
import socket
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from stack.ports import HOST
from stack.server import Server, Settings

BINARY = "redis-server"


class Redis(Server):
    """A Redis server; clients connect to `url`.

    Parameters
    ----------
    folder
        Data, log and written configuration.
    port
        Where it listens on loopback; by default a port that is free now.
    appendfsync
        When writes reach the disk. Under `everysec` a power cut loses those of the last second; a kill loses
        none, but for those that Redis held back while a slow disk was still at the write before.
    maxmemory
        Upper bound such as `20mb`; beyond it writes are refused (no eviction).
    password
        Demanded of clients, if given.
    settings
        Directives of redis.conf beside or instead of those above, such as `{"databases": 1}`.
    """

    name = "redis"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        appendfsync: Literal["always", "everysec", "no"] = "everysec",
        maxmemory: str | int | None = None,
        password: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(folder, port)
        self.appendfsync = appendfsync
        self.maxmemory = maxmemory
        self.settings: Settings = settings or {}
        self._password = password

    @property
    def url(self) -> str:
        """Where clients connect, the password included."""
        credentials = "" if self._password is None else f":{quote(self._password, safe='')}@"
        return f"redis://{credentials}{self.address}/0"

    @classmethod
    def available(cls) -> str | None:
        """Return why Redis cannot be had on this machine, or None if it can."""
        if shutil.which(BINARY) is None:
            return f"redis needs {BINARY}, which is not on PATH (run python -m stack.install)"
        return None

    def answers(self) -> bool:
        """Return whether Redis answers a ping, which it does once its data are loaded."""
        request = b"" if self._password is None else _request("AUTH", self._password)
        try:
            with socket.create_connection((HOST, self.port), timeout=1.0) as connection:
                connection.sendall(request + _request("PING"))
                with connection.makefile("rb") as stream:
                    authenticated = self._password is None or stream.readline() == b"+OK\r\n"
                    return authenticated and stream.readline() == b"+PONG\r\n"
        except OSError:
            return False

    def _command(self) -> list[str]:
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        directives: dict[str, str | int] = {
            "bind": HOST,
            "port": self.port,
            "dir": str(data),
            "daemonize": "no",
            "appendonly": "yes",
            "appendfsync": self.appendfsync,
            "save": "",
            "maxmemory": self.maxmemory or 0,
            "maxmemory-policy": "noeviction",
        }
        if self._password is not None:
            directives["requirepass"] = self._password
        written = self.folder / "redis.conf"
        written.touch(mode=0o600)  # it may hold the password
        written.write_text(
            "".join(f"{name} {_quoted(value)}\n" for name, value in (directives | dict(self.settings)).items())
        )
        return [shutil.which(BINARY) or BINARY, str(written)]


def _quoted(value: str | int) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _request(*words: str) -> bytes:
    r"""Return a command in the Redis protocol.

    >>> _request("PING")
    b'*1\r\n$4\r\nPING\r\n'
    """
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
