"""Make every server of the stack available on this machine: `shadowtime stack install`.

Maven downloads Kafka's jars into a cache folder. All other parts are system packages. Packages need root, or sudo
without a password, and consent. The option `--yes`, SHADOWTIME_APT=yes or CI gives consent. Otherwise the user is asked
at the terminal before apt runs (`stack.packages`). Installed parts are not changed. If a server cannot be installed,
the output names it with the reason, and the exit status is 1. Further parts are installed if the command names them:

* `compose`: docker-compose. It checks docker-compose.yml without a Docker engine; nothing else here needs it.
* `browser`: Chromium and axe-core, for tests of the pages.
* `registry`: a registry of images and its client skopeo, for tests of `stack.pin`.
* `slurm`: a Slurm with its accounting, for tests that follow it.
* `jupyterhub`: a JupyterHub with its proxy, for a test of `stack/hub_progress.py`. Both are locked with digests.
"""

import base64
import hashlib
import os
import shutil
import stat
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

# A browser and the accessibility checker axe-core, for tests of the pages only.
#
# Chromium is the system's package. axe-core comes through npm into the folder of the servers. The downloaded package
# and the unpacked file are both checked against their digests.

CHROMIUM = "chromium"
AXE = "axe-core"
AXE_VERSION = "4.14.1"
AXE_INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""Digest of the package, as `npm view axe-core@VERSION dist.integrity` prints it."""
AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Digest of the file package/axe.min.js in the package."""


def _servers() -> Path:
    return Path(os.environ.get("SHADOWTIME_SERVERS") or ROOT / ".servers").resolve()


def axe_file() -> Path:
    """Return the path of axe-core: below SHADOWTIME_SERVERS, else below `.servers` in the checkout."""
    return _servers() / f"{AXE}-{AXE_VERSION}" / "axe.min.js"


def axe_is_there() -> bool:
    """Return whether axe-core is installed with the expected digest."""
    try:
        return sha256(axe_file()) == AXE_SHA256
    except OSError:
        return False


def missing() -> str | None:
    """Return the reason why pages cannot be tested in a browser, or None if they can."""
    if shutil.which(CHROMIUM) is None:
        return f"{CHROMIUM} is not on PATH (run shadowtime stack install browser)"
    if not axe_file().exists():
        return f"{axe_file()} is not there (run shadowtime stack install browser)"
    if not axe_is_there():
        return f"{axe_file()} does not have SHA-256 {AXE_SHA256} (run shadowtime stack install browser)"
    return None


def unpack_axe(package: Path) -> None:
    """Unpack axe-core to its path from the package that npm downloaded.

    Raise `ServerError` if the package does not have the expected digest, or lacks the file.
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
        os.fchmod(part.fileno(), 0o644)  # other users of a shared folder may read it

    Path(part.name).rename(target)


HUB_LOCK = ROOT / "requirements-jupyterhub.lock"
PROXY_LOCK = ROOT / "stack" / "jupyterhub" / "package-lock.json"


def hub_folder() -> Path:
    """Return the folder of JupyterHub and its proxy in the locked versions: a virtual environment with node_modules."""
    locked = "".join(sha256(path) for path in (HUB_LOCK, PROXY_LOCK))
    return _servers() / f"jupyterhub-{hashlib.sha256(locked.encode()).hexdigest()[:16]}"


def hub_missing() -> str | None:
    """Return the reason why no JupyterHub is installed for tests; None if it is installed."""
    if not HUB_LOCK.exists():
        return f"{HUB_LOCK} is not there; it is part of a checkout"
    if shutil.which("node") is None or not (hub_folder() / "ready").exists():
        return f"{hub_folder()} or node is not there (run shadowtime stack install jupyterhub)"
    return None


# Commands that each server needs on PATH, with the package of Debian and Ubuntu that installs them.
PACKAGES: dict[type[Server], dict[str, str]] = {
    Kafka: {"java": "default-jre-headless", "mvn": "maven"},
    Redis: {"redis-server": "redis-server"},
    VictoriaMetrics: {"victoria-metrics": "victoria-metrics"},
}

YES = "--yes"


def main(arguments: Sequence[str] = ()) -> int:
    """Install missing servers and the named extras. Return the exit status."""
    if unknown := [argument for argument in arguments if argument != YES and argument not in EXTRAS]:
        known = ", ".join([YES, *EXTRAS])
        sys.stderr.write(f"shadowtime stack install: unknown argument {unknown[0][:100]!r}; known: {known}\n")
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
    """Make one server available, or raise `ServerError` with the reason. `allowed` is the result of `consent`."""
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
    if not list(Path("/usr/share/lua").glob("*/socket.lua")):
        needed["socket.lua"] = "lua-socket"  # stack/slurm/cli_filter.lua needs it
    install_packages(needed, allowed)


def _install_hub(allowed: bool | None) -> None:
    if hub_missing() is None:
        return
    if not HUB_LOCK.exists():
        raise ServerError(hub_missing() or "")
    install_packages({"node": "nodejs", "npm": "npm"}, allowed)
    folder = hub_folder()
    shutil.rmtree(folder, ignore_errors=True)
    run([_python_of_all(), "-m", "venv", "--without-pip", str(folder)])
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    run([*pip, "--only-binary", ":all:", "--require-hashes", "-r", str(HUB_LOCK)])
    for name in ("package.json", PROXY_LOCK.name):
        shutil.copy(PROXY_LOCK.with_name(name), folder)
    run(["npm", "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"])
    (folder / "ready").touch()


def _python_of_all() -> str:
    """Return a Python that any user can run, because a hub starts servers of users: this one, or the system's."""
    for path in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if path.exists() and all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents)):
            return str(path)
    raise ServerError(f"only you can run {sys.executable}, and there is no /usr/bin/python3; install python3")


EXTRAS = {
    "compose": _install_compose,
    "browser": _install_browser,
    "registry": _install_registry,
    "slurm": _install_slurm,
    "jupyterhub": _install_hub,
}

if __name__ == "__main__":
    run_app(lambda: sys.exit(main(sys.argv[1:])))
