"""Check of files against a list of their SHA-256 digests, in the format of `sha256sum`."""

import functools
import re
from hashlib import file_digest
from pathlib import Path

from shadowtime.stack.servers.server import ServerError

LINE = re.compile(r"([0-9a-f]{64}) [ *]([^/\0]+)")


def read_sums(path: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a list. Lines that begin with `#` are comments.

    Raise `ServerError` if a line is malformed, or a name occurs twice.
    """
    sums: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if match is None or match[2] in sums:
            raise ServerError(f"{path}, line {number}: expected a SHA-256 and a new file name, found {line[:100]!r}")
        sums[match[2]] = match[1]

    return sums


def faults(folder: Path, sums: dict[str, str], kind: str) -> list[str]:
    """Return a line for each file of a kind, such as `.jar`, that differs from `sums`: missing, additional or changed.

    If `folder` cannot be read, the only line says why.

    A file is read again only if its size, times, device or inode have changed since this process last read it.
    """
    try:
        there = {path.name for path in folder.iterdir() if path.suffix.lower() == kind}
    except OSError as error:
        return [f"{folder}: {error.strerror}"]

    differences = [f"{name}: missing" for name in sums if name not in there]
    differences += [f"{name}: additional" for name in there if name not in sums]
    for name in there & sums.keys():
        path = folder / name
        try:
            checksum = sha256(path) if path.is_file() else "none (not a file)"
        except OSError as error:
            differences.append(f"{name}: {error.strerror}")
            continue

        if checksum != sums[name]:
            differences.append(f"{name}: changed: SHA-256 {checksum}, not {sums[name]}")

    return sorted(differences)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, from a cache if the file is unchanged."""
    is_now = path.stat()
    return _read_sha256(path, (is_now.st_dev, is_now.st_ino, is_now.st_size, is_now.st_mtime_ns, is_now.st_ctime_ns))


@functools.lru_cache(maxsize=1024)
def _read_sha256(path: Path, _is_now: tuple[int, ...]) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
