"""The message of a command about an error that it did not expect."""

import errno
import os
from pathlib import Path

import pytest

from shadowtime.shared.cli.command_line import run_app


def test_an_error_about_a_file_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text("")
    with pytest.raises(SystemExit) as ended:
        run_app(lambda: (path / "of").read_text())
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {path / 'of'}: Not a directory\n"


def test_an_error_that_names_no_file_is_not_blamed_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with pytest.raises(SystemExit) as ended:
        run_app(command)
    assert (ended.value.code, capsys.readouterr().err) == (2, "error: No locks available\n")
