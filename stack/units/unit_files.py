"""The texts of systemd units for servers, stages, pages, followers and shadows.

Every unit runs as one ordinary user and may write below its own folder only. `systemd-analyze security` rates each at
most 4 (`tests/integration/stack/test_units.py`). Python and Java compile code while they run, so
`MemoryDenyWriteExecute` is not set.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from shadowtime.shared.streaming import FOLLOW_PORT, SHADOW_PORT, VARIABLE
from shadowtime.stack.local import ASK_PORT, FOLLOWERS, METRICS, StackPlan
from shadowtime.stack.roles import KAFKA, REDIS, VICTORIA_METRICS
from shadowtime.stack.servers import HOST, ServerError

TARGET = "shadowtime.target"
STATE, CACHE = Path("/var/lib/shadowtime"), Path("/var/cache/shadowtime")
"""Folders that systemd makes for the user of the units."""

SETTINGS = Path("/etc/shadowtime")
OWN_SETTINGS = SETTINGS / "shadowtime.env"
"""Optional file with settings of the site, `SHADOWTIME_…=…`, for all units."""

WRITTEN = "# Written by `shadowtime install-units`. Changes belong into a drop-in: systemctl edit NAME\n"
SOURCES = ("slurm", "pbs", "lines")

HARDENING = """\
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
"""


@dataclass(frozen=True)
class Units:
    """All units of an installation.

    Parameters
    ----------
    plan
        Servers and workers, with `STATE` as folder.
    user
        The user of all units.
    prefix
        Folder of the virtual environment with Shadowtime.
    outside
        Servers that are not part of the installation, with the setting that names each, such as
        `{"kafka": ("SHADOWTIME_KAFKA_BOOTSTRAP", "kafka.example.org:9092")}`.
    follows, shadows
        Arguments of `shadowtime follow` and `shadowtime shadow`, one text for each process.
    live
        Further arguments of `shadowtime live`.
    memory_megabytes
        Memory that the stages may use together.
    """

    plan: StackPlan
    user: str
    prefix: Path
    outside: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    follows: Sequence[str] = ()
    shadows: Sequence[str] = ()
    live: str = ""
    memory_megabytes: int = 4_000

    def texts(self) -> dict[str, str]:
        """Return the text of each unit, by file name.

        Raise `ServerError` if two processes have the same port, or if the arguments of a page, follower or shadow are
        not valid. A follower needs a source. Followers need different clusters, and so do shadows. At most `FOLLOWERS`
        of each are possible.
        """
        beside = {"ask": ASK_PORT}
        servers = [name for name in (KAFKA, REDIS, VICTORIA_METRICS) if name not in self.outside]
        units = {"secrets": self._secrets()} | {name: self._server(name) for name in servers}
        after = [f"shadowtime-{name}.service" for name in ("secrets", *servers)]
        workers = self.plan.make_workers()
        for worker in workers:
            memory = f"SHADOWTIME_MEMORY_MB={max(1, self.memory_megabytes // len(workers))}"
            command = ["serve", worker.stage, f"--web-host={HOST}", f"--web-port={worker.port}"]
            about = "writer of metrics" if worker.stage == METRICS else f"stage {worker.stage}"
            units[worker.name.replace("_", "-")] = self._command(about, command, after, memory)

        page = ["live", f"--port={self.plan.live_port}", *_words("live", self.live)]
        units["live"] = self._command("live page", page, after)
        units["ask"] = self._command("answers to questions", ["ask", "--serve", f"--port={ASK_PORT}"], after)
        for verb, texts, first in (("follow", self.follows, FOLLOW_PORT), ("shadow", self.shadows, SHADOW_PORT)):
            if len(texts) > FOLLOWERS:
                raise ServerError(f"--{verb} is given {len(texts)} times; expected at most {FOLLOWERS}")
            for port, text in zip(range(first, 0, -1), texts, strict=False):
                name, words = _beside(verb, text)
                if name in units:
                    raise ServerError(f"two --{verb} have the same cluster: {text}; write one option for each cluster")
                command = [verb, *words, f"--web-host={HOST}", f"--web-port={port}"]
                units[name] = self._command(f"{verb} {text}".replace("\n", " "), command, after)
                beside[name] = port

        self.plan.require_own_ports(self.outside, beside)
        files = {f"shadowtime-{name}.service": text for name, text in units.items()}
        return {TARGET: _target(list(files))} | files

    def _secrets(self) -> str:
        head = "Type=oneshot\nRemainAfterExit=yes\n"
        return self._unit("secrets and settings", [], head, self._module("prepare", *self.outside), [])

    def _server(self, name: str) -> str:
        head = "Type=notify\nNotifyAccess=all\nTimeoutStartSec=180\nTimeoutStopSec=90\n"
        if name == KAFKA:
            head += "SuccessExitStatus=143\nLimitNOFILE=65536\n"  # Java's exit status after SIGTERM
        return self._unit(name, ["shadowtime-secrets.service"], head, self._module("start", name), [])

    def _command(self, about: str, arguments: Sequence[str], after: Sequence[str], *environment: str) -> str:
        settings = [f"{VARIABLE}={STATE / 'access'}", *environment, *(f"{n}={v}" for n, v in self.outside.values())]
        program = str(self.prefix / "bin" / "shadowtime")
        return self._unit(about, after, "Type=exec\n", [program, *arguments], settings)

    def _module(self, *arguments: str) -> list[str]:
        python = str(self.prefix / "bin" / "python")
        return [python, "-m", "shadowtime.stack.units.launch", str(SETTINGS), *arguments]

    def _unit(
        self, about: str, after: Sequence[str], head: str, command: Sequence[str], environment: Sequence[str]
    ) -> str:
        """Return a unit. It starts after other units but does not end with them: every process waits for servers."""
        order = f"After={' '.join(after)}\nWants={' '.join(after)}\n" if after else ""
        restart = "" if "oneshot" in head else "Restart=always\nRestartSec=5\n"
        variables = "".join(f"Environment={_quoted(text)}\n" for text in (f"XDG_CACHE_HOME={CACHE}", *environment))
        return (
            f"{WRITTEN}[Unit]\nDescription=Shadowtime: {about.replace('%', '%%')}\n"
            "Documentation=https://www.freedesktop.org/software/systemd/man/systemd.unit.html\n"
            f"After=network-online.target\nWants=network-online.target\n{order}"
            f"PartOf={TARGET}\nStartLimitIntervalSec=0\n\n"
            f"[Service]\n{head}User={self.user}\nStateDirectory=shadowtime\nStateDirectoryMode=0700\n"
            f"CacheDirectory=shadowtime\nCacheDirectoryMode=0700\nWorkingDirectory={STATE}\n"
            f"{variables}EnvironmentFile=-{OWN_SETTINGS}\n"
            f"ExecStart={' '.join(_quoted(word) for word in command)}\n{restart}{HARDENING}\n"
            f"[Install]\nWantedBy={TARGET}\n"
        )


def _target(units: Sequence[str]) -> str:
    return (
        f"{WRITTEN}[Unit]\nDescription=Shadowtime\nWants={' '.join(units)}\nAfter={' '.join(units)}\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _beside(verb: str, text: str) -> tuple[str, list[str]]:
    """Return the name of the unit, and the arguments, of a follower or of shadows.

    >>> _beside("follow", "slurm --cluster mine --history 3months")
    ('follow-mine', ['slurm', '--cluster', 'mine', '--history', '3months'])
    """
    words = _words(verb, text)
    if verb == "follow" and (not words or words[0] not in SOURCES):
        raise ServerError(f"--follow {text!r}: expected one of {', '.join(SOURCES)} first: 'slurm --cluster mine'")
    named = [after for before, after in pairwise(words) if before == "--cluster"]
    named += [word.partition("=")[2] for word in words if word.startswith("--cluster=")]
    if len(named) != 1:
        raise ServerError(f"--{verb} {text!r}: expected --cluster NAME once, found it {len(named)} times")
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_.") else "-" for letter in named[0])
    return f"{verb}-{plain}", words


def _words(option: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ServerError(f"--{option} {text!r}: {error}") from None


def _quoted(word: str) -> str:
    """Return a word of a command line as systemd reads it.

    >>> _quoted("--via=ssh login"), _quoted("50%$")
    ('"--via=ssh login"', '"50%%$$"')
    """
    if "\n" in word or "\0" in word:
        raise ServerError(f"{word!r}: a unit cannot contain a line break in an argument; remove it")
    plain = word.replace("%", "%%").replace("$", "$$")
    if plain and all(letter.isalnum() or letter in "-_./:=,@+" for letter in plain):
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
