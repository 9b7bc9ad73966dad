"""`shadowtime install-units`: systemd units for the whole stack beside a cluster."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from shadowtime.shared.cli import lasting_imports
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.private_files import write_private
from shadowtime.shared.stages import WRITTEN_BY

if TYPE_CHECKING:
    from shadowtime.stack.servers import Redis, VictoriaMetrics

console = Console(highlight=False, soft_wrap=True, emoji=False)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)
UNITS, KAFKA_HOME = Path("/etc/systemd/system"), Path("/opt/kafka")
HIDDEN = ("/home", "/root", "/run/user")
"""Folders that `ProtectHome` hides from the units."""

Port = Annotated[int, typer.Option(min=1, max=65_535, metavar="PORT", help="Port on loopback.")]


@app.command()
def install_units(
    user: Annotated[str, typer.Option(metavar="NAME", help="The user of all units.")],
    prefix: Annotated[Path, typer.Option(metavar="FOLDER", help="The virtual environment with Shadowtime.")],
    follow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENTS", help="Arguments of `shadowtime follow`, such as 'slurm --cluster mine'; repeatable."
        ),
    ] = None,
    shadow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENTS",
            help="Arguments of `shadowtime shadow`, such as '--cluster mine --policy best'; repeatable.",
        ),
    ] = None,
    live: Annotated[str, typer.Option(metavar="ARGUMENTS", help="Further arguments of `shadowtime live`.")] = "",
    kafka: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address of your Kafka, instead of a unit.")
    ] = None,
    redis: Annotated[str | None, typer.Option(metavar="URL", help="Address of your Redis, instead of a unit.")] = None,
    victoria_metrics: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of your VictoriaMetrics, instead of a unit.")
    ] = None,
    kafka_home: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the unpacked Kafka.")] = KAFKA_HOME,
    kafka_port: Port = 9092,
    redis_port: Port = 6379,
    victoria_metrics_port: Port = 8428,
    web_port: Annotated[
        int,
        typer.Option(
            min=1,
            max=65_000,
            metavar="PORT",
            help="Port of the first worker's /health. Other workers have the next ports.",
        ),
    ] = 6066,
    live_port: Port = 6080,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Workers per stage.")] = 1,
    memory_mb: Annotated[int, typer.Option(min=500, metavar="MB", help="Memory of all stages together.")] = 4_000,
    tls: Annotated[bool, typer.Option("--tls", help="The servers encrypt, too.")] = False,
    root: Annotated[Path, typer.Option(metavar="FOLDER", help="Write below this folder, for packages.")] = Path("/"),
) -> None:
    """Write systemd units for the whole stack: servers, stages, live page, followers and shadows.

    Kafka, Redis and VictoriaMetrics get units, unless you give their addresses. They listen on loopback only, and
    require passwords.
    """
    with lasting_imports():
        from shadowtime.shared.streaming import http_url, kafka_servers, redis_url
        from shadowtime.stack.local import StackPlan
        from shadowtime.stack.servers import Redis, VictoriaMetrics
        from shadowtime.stack.units.unit_files import SETTINGS, STATE, WRITTEN, Units

    outside = {
        name: (f"SHADOWTIME_{setting}", _address(name, value, check))
        for name, setting, value, check in (
            ("kafka", "KAFKA_BOOTSTRAP", kafka, kafka_servers),
            ("redis", "REDIS_URL", redis, redis_url),
            ("victoria-metrics", "VICTORIA_METRICS_URL", victoria_metrics, http_url),
        )
        if value is not None
    }
    ports = (kafka_port, redis_port, victoria_metrics_port, web_port, live_port)
    jars = str(_jars(kafka_home)) if kafka is None else None
    plan = StackPlan(str(STATE), tuple(WRITTEN_BY), workers, *ports, True, tls, jars)
    _require(user, prefix, [server for server in (Redis, VictoriaMetrics) if server.name not in outside])
    units = Units(plan, user, prefix, outside, follow or (), shadow or (), live, memory_mb)
    texts = units.texts()
    folder, settings = (root / place.relative_to("/") for place in (UNITS, SETTINGS))
    try:
        for place in (folder, settings):
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
        for old in sorted(folder.glob("shadowtime-*.service")):
            if old.name not in texts and old.read_text(errors="replace").startswith(WRITTEN):
                old.unlink()
                console.print(f"removed {old}", markup=False)
        for name, text in texts.items():
            write_private(folder / name, text, mode=0o644)
        write_private(settings / "plan.json", plan.text(), mode=0o644)
    except OSError as error:
        raise SettingsError(
            f"cannot write {folder} and {settings}: {error}; run this as root, or with --root"
        ) from error

    console.print(f"{len(texts)} units are in {folder}, their plan in {settings}/plan.json", markup=False)
    console.print("\n  systemctl daemon-reload\n  systemctl enable --now shadowtime.target")
    console.print("  systemctl list-dependencies shadowtime.target")


def _address(name: str, address: str, check: Callable[[str], str]) -> str:
    """Return the address of a server of the site. Raise `SettingsError` if it is malformed or contains a password."""
    from shadowtime.shared.streaming import has_password
    from shadowtime.stack.units.unit_files import OWN_SETTINGS

    if has_password(address):
        raise SettingsError(
            f"--{name}: the address contains a password, and every user can read units; leave it out, and write it "
            f"into {OWN_SETTINGS}, a file that only root may read"
        )
    try:
        return check(address)
    except ValueError as error:
        raise SettingsError(f"--{name}: {error}") from None


def _jars(home: Path) -> Path:
    """Return the folder with the jars of an unpacked Kafka: `libs` of Apache's archive, or the folder itself."""
    for folder in (home / "libs", home):
        if any(folder.glob("kafka-clients-*.jar")):
            return folder.resolve()
    raise SettingsError(
        f"{home} has no Kafka: expected libs/kafka-clients-….jar; unpack Apache's archive there, name another folder "
        "with --kafka-home, or a Kafka of yours with --kafka HOST:PORT"
    )


def _require(user: str, prefix: Path, servers: "list[type[Redis] | type[VictoriaMetrics]]") -> None:
    """Raise `SettingsError`, with the remedy, if the user, the virtual environment or a server is not usable."""
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        make = f"useradd --system --home-dir /var/lib/shadowtime --shell /usr/sbin/nologin {user}"
        raise SettingsError(f"there is no user {user!r} on this machine; make one: {make}") from None
    if account.pw_uid == 0:
        raise SettingsError("--user root: expected an ordinary user; Shadowtime needs no rights of root")
    if not prefix.is_absolute():
        raise SettingsError(f"--prefix {prefix}: expected an absolute path")
    for program in ("shadowtime", "python"):
        if not os.access(prefix / "bin" / program, os.X_OK):
            make = f"python3 -m venv {prefix} && {prefix}/bin/pip install 'shadowtime[stream]'"
            raise SettingsError(f"{prefix / 'bin' / program} cannot be run; install Shadowtime there: {make}")
    interpreter = (prefix / "bin" / "python").resolve()
    if hidden := next(
        (home for home in HIDDEN if interpreter.is_relative_to(home) or prefix.is_relative_to(home)), None
    ):
        raise SettingsError(
            f"{prefix}/bin/python is {interpreter}; units see nothing below {hidden} (ProtectHome); make the virtual "
            "environment elsewhere, as in /opt/shadowtime, with the Python of the system"
        )
    for server in servers:
        if (reason := server.available()) is not None:
            option = f"--{server.name} ADDRESS names a server of yours"
            raise SettingsError(f"{reason.partition(' (run')[0]}; install the package {server.name}, or {option}")
