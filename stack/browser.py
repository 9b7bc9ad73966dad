"""A browser and the accessibility checker axe-core, for tests of the pages; nothing but those tests needs them.

Chromium is the system's package. axe-core comes through npm into the folder of the servers, checked against the digest
of its package and, where it is kept, against its own.
"""

import base64
import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from shadowtime.shared.paths import ROOT
from shadowtime.stack.checksums import sha256
from shadowtime.stack.server import ServerError

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
    found = "sha512-" + base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if found != AXE_INTEGRITY:
        raise ServerError(f"{package.name} has the integrity {found}, not {AXE_INTEGRITY}")
    target = axe_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(package) as archive, tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        member = archive.extractfile("package/axe.min.js")
        if member is None:
            raise ServerError(f"{package.name} has no axe.min.js")
        part.write(member.read())
        os.fchmod(part.fileno(), 0o644)  # whoever shares the folder may read it
    Path(part.name).rename(target)
