"""The command `ask`, where something is wrong."""

import os
import socket
import subprocess

import pytest

from tests.support.forked import run_forked


def command(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run_forked("ask", *arguments, environment=os.environ | environment)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--processors", "1"], "--cluster: is missing"),
        (["--cluster", "kth"], "--processors: is missing"),
        (["--cluster", "kth", "--processors", "0"], "--processors: '0': expected a number greater"),
        (
            ["--cluster", "kth", "--processors", "1", "--requested-time", "x"],
            "--requested-time: 'x': expected a whole",
        ),
        (
            ["--cluster", "kth", "--processors", "1", "--quantile", "1"],
            "--quantile: '1': expected a number less",
        ),
        (["--cluster", "kth", "--processors", "1", "--nonsense", "1"], "nonsense"),
        (["--cluster", "kth", "--processors", "1"], "Redis cannot be used"),
        (["--serve", "--redis-url=redis://127.0.0.1:1/0"], "Redis cannot be used"),
    ],
)
def test_the_command_line_says_what_is_wrong(arguments: list[str], reason: str) -> None:
    ended = command(*arguments, SHADOWTIME_REDIS_URL="redis://127.0.0.1:1/0", SHADOWTIME_CONNECT_SECONDS="1")
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ")
    assert reason in line
    assert not ended.stdout


def test_a_redis_that_does_not_answer_is_not_waited_for_longer_than_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        ended = command("--cluster=kth", "--processors=1", f"--redis-url={url}", "--connect-seconds=1")
    assert ended.returncode == 2
    assert ended.stderr == "error: Redis cannot be used: no answer within 1 s\n"


def test_without_options_it_explains_itself() -> None:
    explained = command()
    assert explained.returncode == 0
    assert explained.stdout.count("  shadowtime ask --cluster mine") == 3
    assert "shadowtime queue" in explained.stdout
