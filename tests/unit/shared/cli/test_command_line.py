"""The message of a command about an error that it did not expect."""

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer

from shadowtime.shared.cli.command_line import application, run_app


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


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (["--jobs", "10", "--jobs=20"], "error: option --jobs is there twice, with '10' and '20'; give it once\n"),
        (
            ["-j", "10", "log", "--jobs", "20"],
            "error: option --jobs is there twice, with '10' and '20'; give it once\n",
        ),
        (
            ["--jobs", "10", "--jobs", "10", "--policy", "easy", "--policy", "best", "--flag", "--flag"],
            "10 easy best\n",
        ),
        (["--policy", "--jobs", "--jobs", "1", "--", "--jobs"], "1 --jobs\n"),
    ],
)
def test_an_option_that_is_there_twice_is_refused(
    words: list[str], outcome: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(
        log: str = typer.Argument(""),
        jobs: Annotated[int, typer.Option("--jobs", "-j")] = 1,
        policy: Annotated[list[str] | None, typer.Option()] = None,
        flag: bool = False,
    ) -> None:
        print(jobs, *(policy or []))

    monkeypatch.setattr(sys, "argv", ["command", *words])
    with pytest.raises(SystemExit):
        run_app(application(command))
    captured = capsys.readouterr()
    assert captured.err + captured.out == outcome
