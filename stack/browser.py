"""A browser and the accessibility checker axe-core, for tests of the pages; nothing but those tests needs them.

Chromium is the system's package. axe-core comes through npm into the folder of the servers, checked against its digest.
"""

import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from stack.server import ServerError

CHROMIUM = "chromium"
AXE = "axe-core"
AXE_VERSION = "4.14.1"
AXE_SHA256 = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"


def axe_file() -> Path:
    """Return where axe-core is kept: below SHADOWTIME_SERVERS, else `.servers` in the checkout."""
    servers = os.environ.get("SHADOWTIME_SERVERS") or Path(__file__).parents[1] / ".servers"
    return Path(servers).resolve() / f"{AXE}-{AXE_VERSION}" / "axe.min.js"


def missing() -> str | None:
    """Return why pages cannot be tested in a browser, or None if they can."""
    if shutil.which(CHROMIUM) is None:
        return f"{CHROMIUM} is not on PATH (run python -m stack.install browser)"
    if not axe_file().exists():
        return f"{axe_file()} is not there (run python -m stack.install browser)"
    return None


def unpack_axe(package: Path) -> None:
    """Put the checker where it is kept, from the package that npm brought.

    Raises
    ------
    ServerError
        If it is not the package that is meant.
    """
    found = hashlib.sha256(package.read_bytes()).hexdigest()
    if found != AXE_SHA256:
        raise ServerError(f"{package.name} has SHA-256 {found}, not {AXE_SHA256}")
    target = axe_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(package) as archive, tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        member = archive.extractfile("package/axe.min.js")
        if member is None:
            raise ServerError(f"{package.name} has no axe.min.js")
        part.write(member.read())
    Path(part.name).rename(target)
