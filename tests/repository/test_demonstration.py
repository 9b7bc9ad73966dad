"""The replay that is suggested everywhere is the same, and shows all that the live page can show."""

import shlex
from itertools import pairwise

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.local.command_line import DEMONSTRATION

WORDS = shlex.split(DEMONSTRATION)


def test_every_stage_says_what_it_can() -> None:
    told = dict(zip(WORDS[1::2], WORDS[2::2], strict=True))
    assert told["--runtime"] != "requested"
    assert told["--adjustment"] != "none"
    assert told["--wait-bound"] == "bmbp"
    assert [each for each in WORDS if "forecast=yes" in each]


@pytest.mark.parametrize("place", ["docs/operations.md", "services/processes/live/assets/page.html"])
def test_it_is_suggested(place: str) -> None:
    assert f"shadowtime {DEMONSTRATION}" in " ".join((ROOT / place).read_text().replace("\\\n", " ").split())


def test_compose_replays_it() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    command = compose[compose.index("- replay\n") :].split("- --run\n")[0]
    words = [line.strip().removeprefix("- ") for line in command.splitlines()]
    for option, value in set(zip(WORDS[1::2], WORDS[2::2], strict=True)) - {("--speed", "1000")}:
        assert (option, value) in pairwise(words)
