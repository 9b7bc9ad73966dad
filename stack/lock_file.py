"""What a lock file of `uv pip compile` names: packages, versions, hashes, and who asks for each."""

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from shadowtime.stack.server import ServerError

HASH = re.compile(r"\s+--hash=sha256:([0-9a-f]{64})(?: \\)?")
ASKER = re.compile(r"\s+#(?: via|  )(?: (?P<name>[\w.-]+)(?: \(.*\))?)?", re.ASCII)


@dataclass(frozen=True)
class Package:
    """A package of a lock file.

    Parameters
    ----------
    name, version
        What is installed.
    marker
        Where it is, such as `sys_platform == 'win32'`; empty for everywhere.
    hashes
        SHA-256 of every file of this version; any of them may be installed.
    asked_by
        The packages that depend on it.
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    asked_by: tuple[str, ...]


def read_lock(path: Path) -> list[Package]:
    """Return the packages of a lock file, in its order.

    Raises
    ------
    ServerError
        If a line is none of such a file, or a package has no exact version or no hash.
    """
    blocks: list[list[str]] = []
    for line in path.read_text().splitlines():
        if line.startswith(" ") and blocks:
            blocks[-1].append(line)
        elif line and not line.startswith(("#", "--only-binary ")):
            blocks.append([line])
    return [_package(block, path) for block in blocks]


def _package(block: list[str], path: Path) -> Package:
    head, *rest = block
    try:
        requirement = Requirement(head.removesuffix("\\").strip())
    except InvalidRequirement as error:
        raise ServerError(f"{path}: {head[:100]!r}: {error}") from error
    exact = re.fullmatch(r"==([^*,]+)", str(requirement.specifier))
    hashes = tuple(found[1] for line in rest if (found := HASH.fullmatch(line)))
    if exact is None or not hashes:
        raise ServerError(f"{path}: {requirement.name} has no {'hash' if exact else 'exact version'}")
    asked_by = tuple(found["name"] for line in rest if (found := ASKER.fullmatch(line)) and found["name"])
    return Package(requirement.name, exact[1], str(requirement.marker or ""), hashes, asked_by)
