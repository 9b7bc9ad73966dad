"""The command line on old terminals, and with words that are not commands: one line, no traceback."""

import os
import subprocess
import sys

import pytest

from shadowtime._version import __version__
from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE


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
