"""Options that describe the cluster to follow."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path

from shadowtime.shared.errors import SettingsError


@dataclass(frozen=True)
class FollowOptions:
    """Options of a follower: access to the cluster, and the length of the history in its log."""

    history: int = 0
    """Seconds of the cluster's past that are published first."""
    every: float = 15.0
    """Seconds between two polls of the cluster."""
    timeout: float = 60.0
    """Seconds after which a command or request without an answer is ended; 20 times as many for accounting."""
    patience: int = 600
    """Seconds for which the log waits for missing facts. After that time, they are guessed."""
    via: tuple[str, ...] = ()
    """A command that runs Slurm's commands, such as `ssh login`; empty to run them here."""
    rest: str | None = None
    """Address of slurmrestd, which replaces the commands: http(s)://HOST:PORT or unix:/path/to/socket."""
    rest_token_file: Path | None = None
    """File with the token for slurmrestd."""
    rest_user: str | None = None
    """Owner of that token. By default it is the user who runs the follower."""
    slurm_cluster: str | None = None
    """Name in slurmdbd of the cluster to follow, if it is not the one of slurm.conf (`-M`)."""
    jobcomp: str | None = None
    """Kafka topics, HOST:PORT/TOPIC[,TOPIC…], whose messages start a poll at once."""
    jobcomp_access: Path | None = None
    """Settings file with the login of that Kafka."""
    place: Path | None = None
    """The file, or the folder of files, to which the cluster writes."""
    pools: Path | None = None
    """File that describes the machine, in the format of `replay --pools`."""
    time_zone: str | None = None
    """Time zone of dates that do not state one; UTC if None."""
    token: str | None = None
    """Token that senders must show. If set, lines are also received over HTTP."""
    key: bytes | None = None
    """Key of hashes. If set, names of users, accounts, … are stored as keyed hashes only."""

    def required(self, name: str) -> Path:
        """Return the path of an option that is required.

        Raise `SettingsError` if it was not set.
        """
        path: Path | None = getattr(self, name)
        if path is None:
            raise SettingsError(f"{OPTIONS[name]} is missing; give {SAYS[name]}")
        return path

    def require_only(self, source: str, takes: Collection[str]) -> None:
        """Raise `SettingsError` if an option does not apply to the source, or if two options exclude each other.

        `takes` has the names of the fields that only some sources read, and that this source reads.
        """
        for field in fields(self):
            if field.name in OPTIONS and field.name not in takes and getattr(self, field.name) != field.default:
                raise SettingsError(f"{OPTIONS[field.name]} does not apply to {source}; leave it out")
        for name in ("rest_token_file", "rest_user"):
            if self.rest is None and getattr(self, name) is not None:
                raise SettingsError(f"{OPTIONS[name]} needs --rest")
        if self.jobcomp is None and self.jobcomp_access is not None:
            raise SettingsError("--jobcomp-access needs --jobcomp")
        if self.rest is not None and self.slurm_cluster is not None:
            raise SettingsError("--slurm-cluster and --rest exclude each other: a slurmrestd has one cluster")
        if self.rest is not None and self.via:
            raise SettingsError("--via and --rest exclude each other: with --rest, no command runs")


OPTIONS = {
    "timeout": "--timeout",
    "patience": "--patience",
    "via": "--via",
    "rest": "--rest",
    "rest_token_file": "--rest-token-file",
    "rest_user": "--rest-user",
    "slurm_cluster": "--slurm-cluster",
    "jobcomp": "--jobcomp",
    "jobcomp_access": "--jobcomp-access",
    "place": "--from",
    "pools": "--pools",
    "time_zone": "--time-zone",
    "token": "--token-file",
}
"""Command-line options of the fields that only some sources read."""

SAYS = {
    "place": "the file, or the folder of files, that the cluster writes to",
    "pools": 'the pools of the machine: a file with [[pool]], name = "batch", processors = 64, partitions = ["batch"]',
}
