"""Files that nobody but their owner and root can change.

A person who can change a compiled kernel, a plug-in or a settings file controls the process that reads it. So such a
file is read only under two conditions. The file and every folder above it belong to the reader or to root. Nobody else
may write there. A folder with the sticky bit, such as `/tmp`, is allowed: its users cannot replace files of others. A
user's private group, which Debian creates for every user, has no other member. So write access of this group is
allowed.
"""

import grp
import os
import pwd
import stat
from functools import cache
from pathlib import Path


class UntrustedFile(PermissionError):
    """A file belongs to somebody else or can be changed by somebody else. The message has the owner or a remedy."""


def read_private(path: Path) -> bytes:
    """Return the bytes of a file that nobody else can change. O(its size and the folders above it).

    Raises
    ------
    UntrustedFile
        If somebody else can change it, or could have replaced it.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        _check(path, os.fstat(file.fileno()))
        _check_folders(path)
        return file.read()


def check_private(path: Path) -> None:
    """Raise `UntrustedFile` if somebody else can change a file or folder, and `OSError` if it does not exist."""
    _check(path, path.stat())
    _check_folders(path)


def _check_folders(path: Path) -> None:
    """Raise `UntrustedFile` if somebody else can replace a file, or a target of its symbolic links."""
    for folder in {*path.absolute().parents, *path.resolve().parents}:
        _check(folder, folder.stat())


def _check(path: Path, about: os.stat_result) -> None:
    if about.st_uid not in (os.geteuid(), 0):
        raise UntrustedFile(f"{path} belongs to user {about.st_uid}; expected you, user {os.geteuid()}, or root")
    writers = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if writers & stat.S_IWGRP and about.st_gid == _private_group(about.st_uid):
        writers &= ~stat.S_IWGRP
    sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
    if writers and not sticky:
        mode = stat.S_IMODE(about.st_mode)
        raise UntrustedFile(f"other users can change {path} (its mode is {mode:04o}); run: chmod go-w '{path}'")


@cache
def _private_group(user: int) -> int | None:
    """Return the group that has the name of a user and no other member; None if there is none."""
    try:
        account = pwd.getpwuid(user)
        group = grp.getgrgid(account.pw_gid)
    except KeyError:
        return None
    alone = group.gr_name == account.pw_name and set(group.gr_mem) <= {account.pw_name}
    return group.gr_gid if alone else None


def make_private_folder(folder: Path) -> None:
    """Create a folder, and the missing ones above it, for this user alone, whatever the umask."""
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        try:
            missing.mkdir(mode=0o700)
        except FileExistsError:  # another process was quicker
            continue
        missing.chmod(0o700)


def write_private(path: Path, content: str | bytes, *, mode: int = 0o600, user: int | None = None) -> None:
    """Write a file atomically: readers see the old content or the new content.

    Parameters
    ----------
    mode
        Final mode of the file, regardless of the umask. While it is being written, only its owner can read it.
    user
        Number of the user and of the group that become the owners. None, or a process that is not root, keeps them.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        os.fchmod(file.fileno(), mode)
        if user is not None and os.geteuid() == 0:
            os.fchown(file.fileno(), user, user)
    part.replace(path)
