"""Installation of system packages through apt, only with consent.

The environment variable SHADOWTIME_APT=no always forbids it. SHADOWTIME_APT=yes, `--yes` and CI allow it; in CI a
missing server is a failure. Otherwise the user at the terminal is asked. Without a terminal nothing is installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from shadowtime.stack.servers import ServerError, run

VARIABLE = "SHADOWTIME_APT"
SERVICES = {"mariadb-server": "mariadb"}
"""Services by package, if the names differ."""

APT = ["--yes", "--quiet", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"]


def consent(environment: Mapping[str, str], *, yes: bool) -> bool | None:
    """Return whether packages may be installed; None if the user has to be asked at the terminal.

    >>> consent({"CI": "true"}, yes=False)
    True
    >>> consent({"CI": "true", "SHADOWTIME_APT": "no"}, yes=True)
    False
    >>> consent({}, yes=False) is None
    True

    Raise `ServerError` if SHADOWTIME_APT is neither yes nor no.
    """
    text = environment.get(VARIABLE, "")
    if text not in ("", "yes", "no"):
        raise ServerError(f"{VARIABLE}: expected yes or no, found {text[:100]!r}")
    if text == "no":
        return False
    return True if yes or text == "yes" or environment.get("CI") else None


def install_packages(needed: Mapping[str, str], allowed: bool | None) -> None:
    """Install the packages of commands that are not on PATH, and stop the services that the packages start.

    Parameters
    ----------
    needed
        Commands, with the package of Debian and Ubuntu that installs each.
    allowed
        Result of `consent`.

    Raise `ServerError` if the packages cannot be installed, or if consent is missing.
    """
    missing = {command: package for command, package in needed.items() if shutil.which(command) is None}
    if not missing:
        return
    names = " ".join(missing.values())
    lacking = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not on PATH"
    apt = shutil.which("apt-get")
    if apt is None:
        raise ServerError(f"{lacking}, and there is no apt-get to install {names}")
    if allowed is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        remedy = f"give --yes or {VARIABLE}=yes, or run this in a terminal"
        raise ServerError(f"{lacking}; apt-get install {names} needs your consent: {remedy}")
    if allowed is False:
        raise ServerError(f"{lacking}, and {VARIABLE}=no forbids the installation: apt-get install {names}")
    root = _as_root()
    if root is None:
        raise ServerError(f"{lacking}; the installation needs root or sudo without a password: apt-get install {names}")
    if allowed is None and not _agreed(names):
        raise ServerError(f"{lacking}, and you declined the installation: apt-get install {names}")
    sys.stdout.write(f"{names}: installing\n")
    install = [*root, apt, "install", *APT, *missing.values()]
    try:
        run(install)
    except ServerError:  # the lists of packages may be missing or old
        run([*root, apt, "update", "--quiet"])
        run(install)

    for package in missing.values():
        _stop_service(root, SERVICES.get(package, package))


def _agreed(names: str) -> bool:
    sys.stdout.write(f"apt-get install {names}? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _as_root() -> list[str] | None:
    """Return the words to put before a command that needs root; None if root is not available."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    asked = subprocess.run([sudo, "-n", "true"], capture_output=True, check=False)  # noqa: S603
    return [sudo, "-n"] if asked.returncode == 0 else None


def _stop_service(root: list[str], service: str) -> None:
    """Stop a service that its package may have started. Under systemd also disable it for the next boot."""
    systemctl = shutil.which("systemctl")
    if systemctl is not None and Path("/run/systemd/system").is_dir():
        if Path(f"/lib/systemd/system/{service}.service").exists():
            run([*root, systemctl, "disable", "--now", service])
        return

    script = f"/etc/init.d/{service}"
    runs = [script, "status"]
    if os.access(script, os.X_OK) and not subprocess.run(runs, capture_output=True, check=False).returncode:  # noqa: S603
        run([*root, script, "stop"])
