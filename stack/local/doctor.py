"""Diagnosis of a machine for `shadowtime doctor`: installed parts, servers that answer, taken ports, and remedies."""

import os
import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from inspect import signature
from itertools import chain, groupby
from typing import NamedTuple

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shadowtime._version import __version__
from shadowtime.shared.cli import ROOT, application
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.stack.servers import is_free

CORE = "core"
NOT_FOR_USERS = {"dev"}
PATIENCE = 2.0
"""Seconds for a server to answer."""


class Finding(NamedTuple):
    """The result of one check. `good` is None if an optional part is missing."""

    section: str
    name: str
    good: bool | None
    state: str


def extras() -> Iterator[Finding]:
    """Yield a finding for the core requirements and for each extra: the installed versions, or the missing parts."""
    try:
        lines = requires("shadowtime") or []
    except PackageNotFoundError:
        yield Finding("installed", "shadowtime", None, f"used from the checkout {ROOT}; pip install . installs it")
        return

    wanted: dict[str, list[str]] = {}
    for line in lines:
        extra = re.search(r"extra == ['\"](\w+)['\"]", line)
        wanted.setdefault(extra[1] if extra else CORE, []).append(re.split(r"[^\w.-]", line)[0])
    for part, names in wanted.items():
        if part in NOT_FOR_USERS:
            continue
        versions = {name: _version(name) for name in names}
        missing = [name for name, number in versions.items() if number is None]
        remedy = "shadowtime" if part == CORE else f"'shadowtime[{part}]'"
        state = ", ".join(f"{name} {number}" for name, number in versions.items())
        if missing:
            state = f"without {', '.join(missing)}: pip install {remedy}"
        yield Finding("installed", part, not missing if part == CORE else not missing or None, state)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def plug_ins() -> Iterator[Finding]:
    """Yield the usable plug-ins of each kind, and the fault of each unusable one; nothing if none is installed."""
    if not any(group.startswith("shadowtime.") for group in entry_points().groups):
        return
    from shadowtime.replayer.logs import log_formats
    from shadowtime.replayer.options import KINDS
    from shadowtime.replayer.presentation import classes_of

    for kind, classes in [*((kind, classes_of(kind)) for kind in KINDS), ("log formats", log_formats())]:
        if usable := classes.plugged_in():
            yield Finding("plug-ins", kind, True, ", ".join(usable))
        yield from (Finding("plug-ins", kind, False, line) for line in classes.errors())


def kernels() -> Iterator[Finding]:
    """Yield the folder of compiled kernels, their number, and whether the folder can be written."""
    from shadowtime.shared.kernels import cache_folder, kept_kernels, prebuilt_folder

    if brought := prebuilt_folder():
        yield Finding("installed", "kernels", True, f"{sum(1 for _ in brought.rglob('*.nbc')):,} in the package")
        return
    folder, kept = cache_folder(), sum(1 for _ in kept_kernels())
    place = next(place for place in (folder, *folder.parents) if place.exists())
    writable = place.is_dir() and os.access(place, os.W_OK)
    state = f"{folder}: {kept:,} compiled" if kept else f"{folder}: none compiled; the first replay compiles them"
    if not writable:
        state = f"{place} cannot be written; new kernels are compiled anew by each installation: set XDG_CACHE_HOME"
    yield Finding("installed", "kernels", writable or kept > 0, state)


def programs() -> Iterator[Finding]:
    """Yield whether each server can be started on this machine."""
    from shadowtime.stack.servers import SERVERS

    for server in SERVERS:
        reason = server.available()
        yield Finding(
            "programs for shadowtime stack up", server.name, True if reason is None else None, reason or "there"
        )


def ports() -> Iterator[Finding]:
    """Yield whether the default ports of `shadowtime stack up` are free."""
    from shadowtime.stack.local.command_line import up

    for option, parameter in signature(up).parameters.items():
        if option.endswith("_port"):
            free = is_free(parameter.default)
            state = (
                "free"
                if free
                else f"taken by a stack or another process; choose another with --{option.replace('_', '-')}"
            )
            name = option.removesuffix("_port").replace("_", "-")
            yield Finding("ports of shadowtime stack up", f"{parameter.default} {name}", True if free else None, state)


def answers() -> Iterator[Finding]:
    """Yield whether each server of the settings answers. A server without a setting in the environment is optional."""
    try:
        from shadowtime.shared.streaming import CHECKS
    except ModuleNotFoundError as error:
        state = f"cannot be checked without {error.name}: pip install 'shadowtime[stream]'"
        yield Finding("servers of the settings", "all", None, state)
        return

    for name, check in CHECKS.items():
        named = any(variable.startswith(f"SHADOWTIME_{name.upper().replace('-', '_')}_") for variable in os.environ)
        try:
            place = check(PATIENCE)
        except ShadowtimeError as error:
            yield Finding("servers of the settings", name, False if named else None, str(error))
        else:
            if place is not None:
                yield Finding("servers of the settings", name, True, f"{place} answers")


MARKS = {True: "[green]ok[/]", False: "[red]no[/]", None: "[dim]-[/]"}

REMEDIES = {
    "servers of the settings": "none of them is needed to replay a log; `shadowtime stack up` starts them here, and "
    "SHADOWTIME_KAFKA_BOOTSTRAP, SHADOWTIME_REDIS_URL, … name others (`shadowtime settings`)",
}
"""Remedies by section, shown if an optional part of the section is missing."""


def doctor() -> None:
    """Report what is installed, which servers answer, which ports are taken, and what to do about it.

    The status is 1 if something is wrong: a part of the core is missing, a plug-in cannot be used, or a server that the
    environment names does not answer. Optional parts that are missing are marked with a dash.
    """
    console = Console(highlight=False, emoji=False)
    console.print(f"shadowtime {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores")
    wrong = False
    everything = chain(extras(), kernels(), plug_ins(), answers(), programs(), ports())
    for section, findings in groupby(everything, lambda finding: finding.section):
        table = Table.grid(padding=(0, 1))
        for _ in range(3):
            table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        missing = False
        for finding in findings:
            table.add_row(" ", MARKS[finding.good], finding.name, Text(finding.state))
            wrong, missing = wrong or finding.good is False, missing or finding.good is None
        console.print(f"\n{section}")
        console.print(table)
        if missing and section in REMEDIES:
            console.print(Padding(REMEDIES[section], (0, 0, 0, 2)), markup=False)

    raise typer.Exit(int(wrong))


app = application(doctor)
