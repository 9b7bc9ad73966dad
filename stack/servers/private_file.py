"""Files that nobody but those they are meant for ever sees, complete or not at all."""

import os
from pathlib import Path


def write_private(path: Path, text: str, *, mode: int = 0o600, user: int | None = None) -> None:
    """Write a file in one step: readers see the old one or the new one.

    Parameters
    ----------
    mode
        What the file has in the end, whatever the umask is. Until all is written it is its owner's alone.
    user
        User and group that it is given to, if this process is root.
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
    """Change whom a file or folder belongs to; whoever is not root keeps what he makes."""
    if os.geteuid() == 0:
        os.chown(path, user, group)
