"""Secrets of a local stack, made at its first start, and a settings file for every role, which names its secrets.

    access/             0700
      secrets/          a password per role and server (kafka-scheduler, …), a seal per role with state (seal-scheduler)
      ca.pem            the authority that signed the servers' certificate; its own key is not kept
      server.pem        the servers' certificate, with its key in server.key
      scheduler.env     settings of a role, while the stack runs (`shared/streaming/role_settings.py` finds them)

All files are 0600. No secret is on a command line or in a log.
"""

import hashlib
import secrets
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shadowtime.shared.private_files import write_private
from shadowtime.shared.streaming import format_env_file
from shadowtime.stack.roles import Role, secret_names
from shadowtime.stack.servers.certificates import certify
from shadowtime.stack.servers.ports import HOST
from shadowtime.stack.servers.server import ServerError


@dataclass(frozen=True)
class Access:
    """The secrets of one stack.

    Parameters
    ----------
    folder
        Folder of the secrets.
    roles
        Roles with secrets.
    tls
        Whether servers have a certificate and encrypt.
    """

    folder: Path
    roles: tuple[Role, ...]
    tls: bool = False

    def prepare(self) -> None:
        """Make the folder, missing secrets and, under TLS, missing or expiring certificates."""
        for folder in (self.folder, self.folder / "secrets"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        for name in secret_names(self.roles):
            path = self.folder / "secrets" / name
            if not path.exists() or not path.stat().st_size:  # a file may be empty after a power cut
                write_private(path, secrets.token_urlsafe(32) + "\n")
            path.chmod(0o600)

        if self.tls:
            certify(self.folder)

    def role(self, name: str) -> Role:
        """Return the role called `name`."""
        return next(role for role in self.roles if role.name == name)

    def secret_file(self, role: str, server: str) -> Path:
        """Return the file with the password of a role for a server."""
        return self.folder / "secrets" / self.role(role).secret(server)

    def seal_file(self, role: str) -> Path | None:
        """Return the file with the secret that seals a role's state in Redis; None if it keeps none there."""
        seal = self.role(role).seal
        return None if seal is None else self.folder / "secrets" / seal

    def secret(self, role: str, server: str) -> str:
        """Return the password of a role for a server. Raise `ServerError` if its file cannot be read."""
        path = self.secret_file(role, server)
        try:
            return path.read_text().strip()
        except OSError as error:
            raise ServerError(f"{path} cannot be read: {error.strerror}; run: shadowtime stack up") from None

    def passwords(self, server: str) -> dict[str, str]:
        """Return the passwords of a server by role."""
        return {role.name: self.secret(role.name, server) for role in self.roles if server in role.servers}

    def digests(self, server: str) -> dict[str, str]:
        """Return the SHA-256 of the passwords of a server, in hexadecimal, by the names of the secrets."""
        return {
            self.role(name).secret(server): hashlib.sha256(password.encode()).hexdigest()
            for name, password in self.passwords(server).items()
        }

    @property
    def authority(self) -> Path:
        """The file with the certificate of the authority (PEM). `prepare` makes it if `tls` is set."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The file with the certificate of the servers (PEM). `prepare` makes it if `tls` is set."""
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        """The file with the key of the servers' certificate (PEM). `prepare` makes it if `tls` is set."""
        return self.folder / "server.key"

    def context(self) -> ssl.SSLContext | None:
        """Return the context for TLS connections to the servers; None without TLS."""
        return ssl.create_default_context(cafile=self.authority) if self.tls else None

    def write_settings(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Write the settings file of each role."""
        for role, values in settings.items():
            write_private(self.folder / f"{role}.env", format_env_file(values))

    def remove_settings(self, names: Iterable[str]) -> None:
        """Remove the settings files of these roles, after the stack has ended."""
        for role in names:
            (self.folder / f"{role}.env").unlink(missing_ok=True)


def connect(port: int, access: Access | None, timeout: float = 1.0) -> socket.socket:
    """Return a connection to a server on this machine, encrypted under TLS. Raise `OSError` if it fails."""
    plain = socket.create_connection((HOST, port), timeout)
    context = None if access is None else access.context()
    if context is None:
        return plain
    try:
        return context.wrap_socket(plain, server_hostname=HOST)
    except BaseException:
        plain.close()
        raise
