"""Redis with an append-only file, from the system's package."""

import shutil
from pathlib import Path
from urllib.parse import quote

from shadowtime.shared.private_files import write_private
from shadowtime.stack.roles import HEALTH, REDIS, redis_acl
from shadowtime.stack.servers.access import Access, connect
from shadowtime.stack.servers.ports import HOST
from shadowtime.stack.servers.server import Server, Settings

BINARY = "redis-server"


class Redis(Server):
    """A Redis server. Clients connect to `url`.

    Parameters
    ----------
    folder, port
        As in `Server`.
    password
        Password of clients, if given.
    access
        Users and their rights. Without it, there is one user, who may do everything.
    settings
        Additional directives of redis.conf, such as `{"maxmemory": "20mb"}`. They override those below. Beyond
        `maxmemory`, Redis refuses writes.
    """

    name = "redis"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        password: str | None = None,
        settings: Settings | None = None,
        access: Access | None = None,
    ) -> None:
        super().__init__(folder, port)
        self.access = access
        self.settings: Settings = settings or {}
        self._password = password

    @property
    def url(self) -> str:
        """URL for clients, including the password if `password` was given."""
        credentials = "" if self._password is None else f":{quote(self._password, safe='')}@"
        scheme = "rediss" if self._tls else "redis"
        return f"{scheme}://{credentials}{self.address}/0"

    @property
    def _tls(self) -> bool:
        return self.access is not None and self.access.tls

    def settings_for(self, role: str) -> dict[str, str]:
        """Return the settings with which a process of a role reaches this server."""
        if self.access is None:
            return {"redis_url": self.url}
        secret = self.access.secret_file(role, REDIS)
        settings = {"redis_url": self.url, "redis_username": role, "redis_password_file": str(secret)}
        return settings | ({"redis_ca_file": str(self.access.authority)} if self._tls else {})

    @classmethod
    def available(cls) -> str | None:
        """Return the reason why Redis is not available on this machine, or None if it is."""
        if shutil.which(BINARY) is None:
            return f"redis needs {BINARY}, which is not on PATH (run shadowtime stack install)"
        return None

    def answers(self) -> bool:
        """Return whether Redis answers a ping. It does so once its data are loaded."""
        login = self._login()
        request = _request("AUTH", *login) if login else b""
        try:
            with connect(self.port, self.access) as connection:
                connection.sendall(request + _request("PING"))
                with connection.makefile("rb") as stream:
                    authenticated = not login or stream.readline() == b"+OK\r\n"
                    return authenticated and stream.readline() == b"+PONG\r\n"
        except OSError:
            return False

    def _login(self) -> tuple[str, ...]:
        if self.access is not None:
            return HEALTH, self.access.secret(HEALTH, REDIS)
        return () if self._password is None else (self._password,)

    def _command(self) -> list[str]:
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        directives: dict[str, str | int] = {
            "bind": HOST,
            "port": self.port,
            "dir": str(data),
            "daemonize": "no",
            "appendonly": "yes",
            "appendfsync": "everysec",  # a power cut loses the writes of the last second; a kill loses none, as a rule
            "save": "",
            "maxmemory": 0,
            "maxmemory-policy": "noeviction",
        }
        if self._password is not None:
            directives["requirepass"] = self._password
        if self.access is not None:
            users = self.folder / "users.acl"
            write_private(users, redis_acl(self.access.roles, self.access.digests(REDIS)))
            directives["aclfile"] = str(users)

        if self.access is not None and self.access.tls:
            directives |= {
                "port": 0,
                "tls-port": self.port,
                "tls-cert-file": str(self.access.certificate),
                "tls-key-file": str(self.access.key),
                "tls-ca-cert-file": str(self.access.authority),
                "tls-auth-clients": "no",
            }

        written = self.folder / "redis.conf"  # may contain the password
        write_private(
            written,
            "".join(f"{name} {_quoted(value)}\n" for name, value in (directives | dict(self.settings)).items()),
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
