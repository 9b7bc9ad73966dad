"""Files that only their intended readers can ever read, and that are always complete."""

import os
from pathlib import Path


def write_private(path: Path, text: str, *, mode: int = 0o600, user: int | None = None) -> None:
    """Write a file atomically: readers see the old one or the new one.

    Parameters
    ----------
    mode
        Final mode of the file, regardless of the umask. While it is being written, only its owner can read it.
    user
        User and group that become the owners, if this process is root.
    """
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
    if user is not None:
        give_to(part, user, user)
    part.replace(path)


def give_to(path: Path, user: int, group: int) -> None:
    """Change the owner of a file or folder, if this process is root. Otherwise do nothing."""
    if os.geteuid() == 0:
        os.chown(path, user, group)
