"""A file is private if nobody but its reader and root could have written it, or put it there."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.shared.private_files import (
    UntrustedFile,
    check_private,
    make_private_folder,
    read_private,
    write_private,
)

NOBODY = 65534


@pytest.fixture(params=[0o000, 0o002, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_what_is_made_here_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "a" / "b" / "c"
    make_private_folder(folder)
    make_private_folder(folder)
    write_private(folder / "file", b"first")
    write_private(folder / "file", "second")
    assert [place.stat().st_mode & 0o777 for place in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3
    assert (folder / "file").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert read_private(folder / "file") == b"second"
    write_private(folder / "file", b"for all", mode=0o444)
    assert (folder / "file").stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o777])
def test_a_file_that_others_can_write_is_not_read(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    file.chmod(mode)
    with pytest.raises(UntrustedFile, match=re.escape(f"other users can change {file} (its mode is {mode:04o})")):
        read_private(file)


def test_a_folder_above_that_others_can_write_counts(tmp_path: Path) -> None:
    folder = tmp_path / "open" / "inner"
    make_private_folder(folder)
    write_private(folder / "file", b"x")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UntrustedFile, match=f"run: chmod go-w '{tmp_path / 'open'}'"):
        check_private(folder / "file")
    (tmp_path / "open").chmod(0o1777)
    assert read_private(folder / "file") == b"x"


def test_the_way_of_a_link_counts_on_both_sides(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "real")
    make_private_folder(tmp_path / "links")
    write_private(tmp_path / "real" / "file", b"x")
    (tmp_path / "links" / "file").symlink_to(tmp_path / "real" / "file")
    assert read_private(tmp_path / "links" / "file") == b"x"
    for folder in ("real", "links"):
        (tmp_path / folder).chmod(0o777)
        with pytest.raises(UntrustedFile, match=folder):
            read_private(tmp_path / "links" / "file")
        (tmp_path / folder).chmod(0o700)


def test_the_files_of_another_user_are_not_read(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    file = tmp_path / "file"
    write_private(file, b"x")
    os.chown(file, NOBODY, NOBODY)
    with pytest.raises(UntrustedFile, match="belongs to user 65534; expected you, user 0, or root"):
        read_private(file)


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_private(tmp_path / "none")
