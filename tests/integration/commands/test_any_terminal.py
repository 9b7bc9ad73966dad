"""The command line on old terminals, and with words that are not commands: one line, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shadowtime._version import __version__
from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE

FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")


def in_shell(line: str) -> "subprocess.CompletedProcess[str]":
    """Run a line of bash, in which `st` is the command."""
    script = f'st() {{ "{sys.executable}" -m shadowtime "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def shadowtime(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "shadowtime", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("arguments", [(), ("--help",), ("replay", "--help"), ("list", "orders")])
def test_a_terminal_that_lacks_characters_gets_others(arguments: tuple[str, ...]) -> None:
    for encoding in ("latin-1", "ascii"):
        done = shadowtime(*arguments, PYTHONIOENCODING=encoding, PYTHONUTF8="0", COLUMNS="100")
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode("ascii" if encoding == "ascii" else "latin-1")
        assert not done.stderr


def test_version_and_help_of_a_command() -> None:
    assert shadowtime("--version").stdout.decode() == f"shadowtime {__version__}\n"
    helped = shadowtime("help", "generate")
    assert helped.stdout == shadowtime("generate", "--help").stdout
    assert shadowtime("help").stdout == shadowtime("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("help", "nonsense"), "unknown command 'nonsense'; known: replay, "),
        (("serve", "nostage"), "no such command 'nostage'; known: runtime_distribution, walltime_adjustment, "),
        (("replay", "--jobs", "9", "--policy", ":smile:"), "':smile:' is not a SPEC"),
        (("replay", "--jobs", "9", "--report", "x.pdf"), "--report x.pdf: expected a name that ends in .html"),
        (
            ("replay", "--jobs", "9", "--results", "x.csv.gz"),
            "--results x.csv.gz: expected a name that ends in .csv or .parquet",
        ),
        (
            ("replay", "--jobs", "9", "--policy", "easy", "--schedule", "x.doc"),
            "--schedule x.doc: expected a name that ends in .csv",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], told: str) -> None:
    done = shadowtime(*arguments)
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"error: {told}")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:6379", "http://x", "redis://h:99999/0", "redis://", "redis://h/one", "unix://"]
)
def test_a_url_that_is_none_of_redis_is_named(url: str) -> None:
    for command in (("scores", "a"), ("ask", "--processors", "1", "--requested-time", "60")):
        done = shadowtime(*command, SHADOWTIME_REDIS_URL=url)
        assert done.returncode == 2
        (line,) = done.stderr.decode().splitlines()
        assert line.startswith(
            f"error: setting redis_url: {url!r} is not a URL of Redis, such as redis://127.0.0.1:6379/0"
        )


LOG = "shadowtime/replayer/bundled.swf.gz"


@pytest.mark.parametrize("words", ["--version", "completion bash", f"check {LOG} --json"])
def test_closed_standard_output_is_no_failure(words: str) -> None:
    done = in_shell(f"st {words} >&-")
    assert (done.returncode, done.stderr) == (0, "")


@FULL
@pytest.mark.parametrize("words", ["--help", "--version", "list"])
def test_full_standard_output_is_one_line(words: str) -> None:
    done = in_shell(f"st {words} >/dev/full")
    assert (done.returncode, done.stderr) == (2, "error: standard output cannot be written: No space left on device\n")


@FULL
@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_a_standard_error_that_takes_nothing_stops_no_work(where: str, tmp_path: Path) -> None:
    log = tmp_path / "without-size.swf"  # its size is assumed, with a remark
    log.write_text("1 0 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n")
    done = in_shell(f"st replay {log} {where}")
    assert done.returncode == 0
    assert done.stdout.startswith("without-size: 1 job on 4 processors")
    assert in_shell(f"st nonsense {where}").returncode == 2
    assert in_shell(f"st check nonsense {where}").returncode == 2


@pytest.mark.parametrize("words", [f"check {LOG}", "settings", "replay --help"])
def test_a_reader_that_leaves_is_no_failure(words: str) -> None:
    done = in_shell(f"(st {words}; echo status $? >&2) | true")
    assert done.stderr == "status 0\n"


def test_a_terminal_without_a_known_width_shows_all() -> None:
    assert shadowtime("list", COLUMNS="0").stdout == shadowtime("list", COLUMNS="80").stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--jobs", "1e3"], "invalid value for '--jobs': expected a whole number, found '1e3'"),
        (["--jobs", "0"], "invalid value for '--jobs': expected a number greater than or equal to 1, found '0'"),
        (["--load", "fast"], "invalid value for '--load': expected a number, found 'fast'"),
        (["--moldable", "maybe"], "invalid value for '--moldable': 'maybe' is not one of 'yes', 'no'"),
    ],
)
def test_a_wrong_value_is_quoted(words: list[str], complaint: str) -> None:
    assert shadowtime("replay", *words).stderr.decode() == f"error: {complaint}\n"
