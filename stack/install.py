"""Make every server of the stack available on this machine: `python -m stack.install [compose] [browser]`.

Kafka's jars come through Maven into a cache folder, all else from the system's packages, which takes root or
sudo without a password. What is there already is left alone. A server that cannot be had is named with
the reason, and the exit status is 1. With `compose`, `docker-compose` is installed too: it needs no Docker engine to
check docker-compose.yml, and nothing else here needs it. With `browser`, Chromium and axe-core are: tests look at the
pages with them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from stack.browser import AXE, AXE_VERSION, CHROMIUM, axe_file, unpack_axe
from stack.kafka_server import POM, Kafka, has_jars, jar_folder, kafka_version
from stack.redis_server import Redis
from stack.server import Server, ServerError
from stack.victoria_metrics import VictoriaMetrics

SECONDS = 900.0
APT = ["--yes", "--quiet", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"]

# What each server needs on PATH: the command, and the package of Debian and Ubuntu that brings it.
PACKAGES: dict[type[Server], dict[str, str]] = {
    Kafka: {"java": "default-jre-headless", "mvn": "maven"},
    Redis: {"redis-server": "redis-server"},
    VictoriaMetrics: {"victoria-metrics": "victoria-metrics"},
}

COMPOSE = "docker-compose"


def main(arguments: Sequence[str] = ()) -> int:
    """Install what is missing; return the exit status."""
    wanted: dict[str, Callable[[], None]] = {server.name: partial(install, server) for server in PACKAGES}
    wanted |= {name: EXTRAS[name] for name in arguments if name in EXTRAS}
    missing = 0
    for name, bring in wanted.items():
        try:
            bring()
        except ServerError as error:
            missing += 1
            sys.stderr.write(f"{name}: not available: {error}\n")
        else:
            sys.stdout.write(f"{name}: ready\n")
    return 1 if missing else 0


def install(server: type[Server]) -> None:
    """Make one server available, or raise why it cannot be had."""
    if server.available() is None:
        return
    for command, package in PACKAGES[server].items():
        if shutil.which(command) is None:
            _install_package(command, package)
    if server is Kafka:
        _fetch_jars(jar_folder())
    if (reason := server.available()) is not None:
        raise ServerError(reason)


def _install_compose() -> None:
    if shutil.which(COMPOSE) is None:
        _install_package(COMPOSE, COMPOSE)


def _install_browser() -> None:
    if shutil.which(CHROMIUM) is None:
        _install_package(CHROMIUM, CHROMIUM)
    if not axe_file().exists():
        if shutil.which("npm") is None:
            _install_package("npm", "npm")
        with tempfile.TemporaryDirectory() as folder:
            _run(["npm", "pack", f"{AXE}@{AXE_VERSION}", "--silent", "--pack-destination", folder])
            unpack_axe(Path(folder) / f"{AXE}-{AXE_VERSION}.tgz")


def _fetch_jars(folder: Path) -> None:
    """Fill `folder` with the jars of the broker, all of them or none."""
    if has_jars(folder):
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerError("its jars come through Maven; there is no mvn on PATH")
    sys.stdout.write(f"kafka: fetching the jars of {kafka_version()} into {folder}\n")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, suffix=".part", ignore_cleanup_errors=True) as part:
            jars = Path(part) / folder.name
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
            _run([maven, "--quiet", "--batch-mode", "--file", str(POM), *goal])
            shutil.copyfile(POM, jars / POM.name)
            if folder.exists():
                folder.rename(Path(part) / "replaced")
            jars.rename(folder)
    except OSError as error:
        raise ServerError(f"cannot write {folder}: {error}") from error


def _install_package(command: str, package: str) -> None:
    """Install `package`, which brings `command`, and leave no service of it running."""
    apt = shutil.which("apt-get")
    if apt is None:
        raise ServerError(f"{command} is not on PATH, and there is no apt-get to install {package}")
    root = _as_root()
    if root is None:
        raise ServerError(
            f"{command} is not on PATH; installing it takes root or sudo without a password: apt-get install {package}"
        )
    sys.stdout.write(f"{package}: installing the package\n")
    install_it = [*root, apt, "install", *APT, package]
    try:
        _run(install_it)
    except ServerError:  # the lists of packages may be missing or old
        _run([*root, apt, "update", "--quiet"])
        _run(install_it)
    _stop_service(root, package)


def _as_root() -> list[str] | None:
    """Return what to put before a command that needs root, or None if there is no way."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    asked = subprocess.run([sudo, "-n", "true"], capture_output=True, check=False)  # noqa: S603
    return [sudo, "-n"] if asked.returncode == 0 else None


def _stop_service(root: list[str], service: str) -> None:
    """Stop the service that a package of this name may have started, now and at the next boot."""
    systemctl = shutil.which("systemctl")
    if systemctl is not None and Path("/run/systemd/system").is_dir():
        if Path(f"/lib/systemd/system/{service}.service").exists():
            _run([*root, systemctl, "disable", "--now", service])
        return
    script = f"/etc/init.d/{service}"
    if os.access(script, os.X_OK):
        _run([*root, script, "stop"])


def _run(command: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ServerError(f"{' '.join(command)} took more than {SECONDS:g} s") from None
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise ServerError(f"{' '.join(command)} ended with status {done.returncode}:\n{tail}")


EXTRAS = {"compose": _install_compose, "browser": _install_browser}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
