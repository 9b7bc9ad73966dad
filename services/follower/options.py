"""Options that describe the cluster to follow."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path

from shadowtime.shared.errors import SettingsError


@dataclass(frozen=True)
class FollowOptions:
    """How a cluster is asked, and what of it is told.

    Parameters
    ----------
    history
        Seconds of its past that are told first.
    every
        Seconds between two pictures.
    timeout
        Seconds after which a command or request that has not answered is ended; twenty times as many for the past.
    patience
        Seconds for which the log waits for what is not known.
    via
        A command before every other, as in ssh login.
    rest
        Where slurmrestd is, which is asked in place of commands: http(s)://HOST:PORT or unix:/path/to/socket.
    rest_token_file
        A file that has the token with which it is asked.
    rest_user
        Whose token that is; whoever runs the follower, without it.
    jobcomp
        Where messages come that wake us, HOST:PORT/TOPIC.
    place
        The file, or the folder of files, to which the cluster writes.
    pools
        A file that tells what the machine is, as `replay --pools` takes it.
    time_zone
        Of dates that tell of none.
    token
        With one, lines are taken over HTTP from whoever has it.
    key
        With one, names of users, accounts, … are hidden: they are stored as keyed hashes.
    """

    history: int = 0
    every: float = 15.0
    timeout: float = 60.0
    patience: int = 600
    via: tuple[str, ...] = ()
    rest: str | None = None
    rest_token_file: Path | None = None
    rest_user: str | None = None
    jobcomp: str | None = None
    place: Path | None = None
    pools: Path | None = None
    time_zone: str | None = None
    token: str | None = None
    key: bytes | None = None

    def required(self, name: str) -> Path:
        """Return the path of an option that is required.

        Raises
        ------
        SettingsError
            If it was not set.
        """
        path: Path | None = getattr(self, name)
        if path is None:
            raise SettingsError(f"{OPTIONS[name]} is missing; it says {SAYS[name]}")
        return path

    def require_only(self, source: str, takes: Collection[str]) -> None:
        """Raise `SettingsError` if something is given that means nothing to a source, or as it is asked."""
        for field in fields(self):
            if field.name in OPTIONS and field.name not in takes and getattr(self, field.name) != field.default:
                raise SettingsError(f"{OPTIONS[field.name]} means nothing to {source}")
        for name in ("rest_token_file", "rest_user"):
            if self.rest is None and getattr(self, name) is not None:
                raise SettingsError(f"{OPTIONS[name]} means nothing without --rest")
        if self.rest is not None and self.via:
            raise SettingsError("--via means nothing with --rest, which runs no command")


OPTIONS = {
    "timeout": "--timeout",
    "patience": "--patience",
    "via": "--via",
    "rest": "--rest",
    "rest_token_file": "--rest-token-file",
    "rest_user": "--rest-user",
    "jobcomp": "--jobcomp",
    "place": "--from",
    "pools": "--pools",
    "time_zone": "--time-zone",
    "token": "--token-file",
}
"""Fields that only some sources read, with their options of the command line."""

SAYS = {
    "place": "which file, or folder of files, the cluster writes to",
    "pools": 'what the machine is: a file with [[pool]], name = "batch", processors = 64, partitions = ["batch"]',
}
