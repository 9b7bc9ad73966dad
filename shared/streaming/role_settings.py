"""Settings files of roles: addresses of servers and credentials, so that a command finds its passwords.

The stack writes one file for each kind of process, for local processes and for containers. The rules:

1. The environment and flags win. If they name another server, or another user of it, the file's settings of that server
   are ignored: no password is sent to a server where it does not belong.
2. The file belongs to the user who runs the command, and nobody else may read it.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shadowtime.shared.cli import ROOT
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.private_files import UntrustedFile, read_private

VARIABLE = "SHADOWTIME_ACCESS"
"""The environment variable with the path of a settings file, or of a folder with one file for each role."""

FOLDER = ROOT / ".stack" / "access"
"""The folder that `make stack` provides while it runs."""

PREFIX = "SHADOWTIME_"
FOLLOW_PORT = 6065
"""The port of a follower's pages. It is below the ports of a stack's workers, however many they are."""

SHADOW_PORT = 6061
"""The port of the pages of a process with shadows. It is below the ports of followers."""

OWN = {"follow": {"web_port": str(FOLLOW_PORT)}, "shadow": {"web_port": str(SHADOW_PORT)}}
"""Defaults of a role that differ from the common ones."""

SERVERS = ("kafka", "redis", "victoria_metrics", "grafana")


def file_of(role: str) -> Path | None:
    """Return the settings file of a role; None if there is none and `SHADOWTIME_ACCESS` is not set.

    Raise `SettingsError` if `SHADOWTIME_ACCESS` is set and its file cannot be found, or if the file belongs to another
    user or is open to others.
    """
    named = os.environ.get(VARIABLE) or None  # an empty variable counts as not set
    place = FOLDER if named is None else Path(named)
    path = place / f"{role}.env" if place.suffix != ".env" else place
    try:
        about = path.stat()
    except OSError as error:
        if named is None:
            return None
        raise SettingsError(f"{path}: {error.strerror}; correct or unset {VARIABLE}, which is {named}") from None

    _require_own(path, about)
    return path


def _require_own(path: Path, about: os.stat_result) -> None:
    if about.st_uid != os.getuid():
        raise SettingsError(f"{path} belongs to user {about.st_uid}, so it is not read; expected user {os.getuid()}")
    if stat.S_IMODE(about.st_mode) & 0o077:
        raise SettingsError(f"{path} is open to other users, so it is not read; run: chmod 600 {path}")


def read_file(path: Path) -> dict[str, str]:
    """Return the settings of a file of lines such as `SHADOWTIME_KAFKA_USERNAME=scheduler`, by field of `Settings`.

    Raise `SettingsError` if the file cannot be read, or a line has another form.
    """
    try:
        lines = read_private(path).decode().splitlines()
    except UntrustedFile as error:
        raise SettingsError(f"{path} is not read: {error}") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: expected text in UTF-8: {error}") from None

    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.startswith(PREFIX):
            raise SettingsError(f"{path}, line {number}: expected {PREFIX}NAME=VALUE")
        settings[name.removeprefix(PREFIX).lower()] = value

    return settings


def read_kafka_file(path: Path) -> dict[str, str]:
    """Return the settings of Kafka in a settings file, without the addresses of brokers.

    Raise `SettingsError` if the file cannot be read, belongs to another user, is open to others, or has another form.
    """
    try:
        _require_own(path, path.stat())
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    return {name: value for name, value in read_file(path).items() if _of(name, "kafka") and name != "kafka_bootstrap"}


def format_env_file(settings: Mapping[str, str]) -> str:
    r"""Return settings as the text of a settings file.

    >>> format_env_file({"kafka_username": "live"})
    'SHADOWTIME_KAFKA_USERNAME=live\n'
    """
    return "".join(f"{PREFIX}{name.upper()}={value}\n" for name, value in settings.items())


def applicable_settings(settings: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a file that apply besides `options`.

    If an option differs from the file's setting of a server, no setting of that server applies.

    >>> settings = {"kafka_bootstrap": "127.0.0.1:9092", "kafka_username": "live", "redis_url": "redis://127.0.0.1:6379/0"}
    >>> applicable_settings(settings, {"kafka_bootstrap": "kafka.example.org:9092"})
    {'redis_url': 'redis://127.0.0.1:6379/0'}
    """
    other = {name for name, value in options.items() if settings.get(name) != str(value)}
    servers = {server for server in SERVERS if any(_of(name, server) for name in other)}
    return {
        name: value
        for name, value in settings.items()
        if name not in options and not any(_of(name, server) for server in servers)
    }


def _of(name: str, server: str) -> bool:
    return name.startswith(f"{server}_")


def read_secret(path: Path) -> str:
    """Return the secret in a file, without the line break at its end.

    Raise `ValueError` if the file is empty, is not text, or cannot be read.
    """
    try:
        secret = path.read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: {error.strerror if isinstance(error, OSError) else 'expected text in UTF-8'}"
        ) from None
    if not secret:
        raise ValueError(f"{path} is empty; expected a secret")
    return secret
