"""Result files: whole or not there."""

import os
import stat
import sys
from pathlib import Path

import pytest

from shadowtime.shared.errors import OutputError, SettingsError
from shadowtime.shared.output import require_places, result_file


def test_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "result"
    with result_file(path) as file:
        file.write(b"half ")
        file.flush()
        assert not path.exists()
        file.write(b"whole")
    assert path.read_bytes() == b"half whole"
    assert os.listdir(tmp_path) == ["result"]


def test_replaces_what_was_there_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")
    with result_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, b"old"])
def test_failure_leaves_nothing_new(tmp_path: Path, failure: type[BaseException], old: bytes | None) -> None:
    path = tmp_path / "result"
    if old is not None:
        path.write_bytes(old)

    def fail_halfway() -> None:
        with result_file(path) as file:
            file.write(b"half")
            raise failure

    with pytest.raises(failure):
        fail_halfway()
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == ({} if old is None else {"result": old})


def test_two_names_of_one_file_are_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=f"^two results have the same path: x.csv, {tmp_path}/x.csv$"):
        require_places([Path("x.csv"), None, Path("y.csv"), tmp_path / "x.csv"], ())
    require_places([Path("x.csv"), Path("y.csv")], [None, "x.csv"])


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"none/result: cannot be written: No such file or directory"):
        result_file(tmp_path / "none" / "result").__enter__()
    with pytest.raises(OutputError, match=r": cannot be written: Is a directory"):
        result_file(tmp_path).__enter__()


def test_what_is_not_a_plain_file_is_written_in_place(tmp_path: Path) -> None:
    """A pipe, or /dev/null, must not be replaced by a file: as root that would break the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with result_file(pipe) as file:
            file.write(b"through")
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)


def test_dash_is_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with result_file("-") as file:
        assert file is sys.stdout.buffer
        file.write(b"\xffbytes")
    assert capsysbinary.readouterr().out == b"\xffbytes"
    sys.stdout.write("still open")
