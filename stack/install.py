"""Make every server of the stack available on this machine: `shadowtime stack install`.

Kafka's jars come through Maven into a cache folder, all else from the system's packages, which takes root or
sudo without a password, and consent: a terminal is asked before apt is used, elsewhere the option `--yes`,
SHADOWTIME_APT=yes or CI allows it (`stack.packages`). What is there already is left alone. A server that cannot be had
is named with the reason, and the exit status is 1. Beside the servers come, where they are named after the command:

* `compose`: docker-compose, which needs no Docker engine to check docker-compose.yml; nothing else here needs it.
* `browser`: Chromium and axe-core; tests look at the pages with them.
* `registry`: a registry of images and skopeo, which asks it: for tests of `stack.pin`.
* `slurm`: a Slurm with its accounting; tests follow it.
"""

import base64
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from shadowtime.shared.cli import ROOT, run_app
from shadowtime.stack.packages import consent, install_packages
from shadowtime.stack.servers import (
    Kafka,
    Redis,
    Server,
    ServerError,
    VictoriaMetrics,
    fetch_jars,
    jar_folder,
    run,
    sha256,
)

# A browser and the accessibility checker axe-core, for tests of the pages; nothing but those tests needs them.
#
# Chromium is the system's package. axe-core comes through npm into the folder of the servers, checked against the
# digest of its package and, where it is kept, against its own.

CHROMIUM = "chromium"
AXE = "axe-core"
AXE_VERSION = "4.14.1"
AXE_INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""Of the package, as `npm view axe-core@VERSION dist.integrity` tells it."""
AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Of package/axe.min.js in it."""


def axe_file() -> Path:
    """Return where axe-core is kept: below SHADOWTIME_SERVERS, else `.servers` in the checkout."""
    servers = os.environ.get("SHADOWTIME_SERVERS") or ROOT / ".servers"
    return Path(servers).resolve() / f"{AXE}-{AXE_VERSION}" / "axe.min.js"


def axe_is_there() -> bool:
    """Return whether the checker is kept, and is the one that is meant."""
    try:
        return sha256(axe_file()) == AXE_SHA256
    except OSError:
        return False


def missing() -> str | None:
    """Return why pages cannot be tested in a browser, or None if they can."""
    if shutil.which(CHROMIUM) is None:
        return f"{CHROMIUM} is not on PATH (run shadowtime stack install browser)"
    if not axe_file().exists():
        return f"{axe_file()} is not there (run shadowtime stack install browser)"
    if not axe_is_there():
        return f"{axe_file()} does not have SHA-256 {AXE_SHA256} (run shadowtime stack install browser)"
    return None


def unpack_axe(package: Path) -> None:
    """Put the checker where it is kept, from the package that npm brought.

    Raises
    ------
    ServerError
        If it is not the package that is meant.
    """
    checksum = "sha512-" + base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if checksum != AXE_INTEGRITY:
        raise ServerError(f"{package.name} has the integrity {checksum}, not {AXE_INTEGRITY}")
    target = axe_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(package) as archive, tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        member = archive.extractfile("package/axe.min.js")
        if member is None:
            raise ServerError(f"{package.name} has no axe.min.js")
        part.write(member.read())
        os.fchmod(part.fileno(), 0o644)  # whoever shares the folder may read it

    Path(part.name).rename(target)


# What each server needs on PATH: the command, and the package of Debian and Ubuntu that brings it.
PACKAGES: dict[type[Server], dict[str, str]] = {
    Kafka: {"java": "default-jre-headless", "mvn": "maven"},
    Redis: {"redis-server": "redis-server"},
    VictoriaMetrics: {"victoria-metrics": "victoria-metrics"},
}

YES = "--yes"


def main(arguments: Sequence[str] = ()) -> int:
    """Install what is missing; return the exit status."""
    if unknown := [argument for argument in arguments if argument != YES and argument not in EXTRAS]:
        sys.stderr.write(f"shadowtime stack install knows {', '.join([YES, *EXTRAS])}, not {unknown[0][:100]!r}\n")
        return 2
    try:
        allowed = consent(os.environ, yes=YES in arguments)
    except ServerError as error:
        sys.stderr.write(f"{error}\n")
        return 2

    wanted: dict[str, Callable[[bool | None], None]] = {server.name: partial(install, server) for server in PACKAGES}
    wanted |= {name: bring for name, bring in EXTRAS.items() if name in arguments}
    missing = 0
    for name, bring in wanted.items():
        try:
            bring(allowed)
        except ServerError as error:
            missing += 1
            sys.stderr.write(f"{name}: not available: {error}\n")
        else:
            sys.stdout.write(f"{name}: ready\n")

    return 1 if missing else 0


def install(server: type[Server], allowed: bool | None) -> None:
    """Make one server available, or raise why it cannot be had; `allowed` is what `consent` returned."""
    if server.available() is None:
        return
    install_packages(PACKAGES[server], allowed)
    if server is Kafka:
        fetch_jars(jar_folder())
    if (reason := server.available()) is not None:
        raise ServerError(reason)


def _install_compose(allowed: bool | None) -> None:
    install_packages({"docker-compose": "docker-compose"}, allowed)


def _install_browser(allowed: bool | None) -> None:
    install_packages({CHROMIUM: CHROMIUM}, allowed)
    if not axe_is_there():
        install_packages({"npm": "npm"}, allowed)
        with tempfile.TemporaryDirectory() as folder:
            run(["npm", "pack", f"{AXE}@{AXE_VERSION}", "--silent", "--ignore-scripts", "--pack-destination", folder])
            unpack_axe(Path(folder) / f"{AXE}-{AXE_VERSION}.tgz")


def _install_registry(allowed: bool | None) -> None:
    install_packages({"docker-registry": "docker-registry", "skopeo": "skopeo"}, allowed)


def _install_slurm(allowed: bool | None) -> None:
    needed = {"slurmctld": "slurm-wlm", "slurmdbd": "slurmdbd", "mariadbd": "mariadb-server", "munged": "munge"}
    needed["slurmrestd"] = "slurmrestd"
    plugin = "accounting_storage_mysql.so"
    if not list(Path("/usr/lib").glob(f"*/slurm*/{plugin}")):
        needed[plugin] = "slurm-wlm-mysql-plugin"
    install_packages(needed, allowed)


EXTRAS = {
    "compose": _install_compose,
    "browser": _install_browser,
    "registry": _install_registry,
    "slurm": _install_slurm,
}

if __name__ == "__main__":
    run_app(lambda: sys.exit(main(sys.argv[1:])))
