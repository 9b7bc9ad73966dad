"""Figures of the live page's JavaScript, run by Node."""

import base64
import os
import shutil
import subprocess

import orjson
import pytest

from shadowtime.services.processes.live.page import PAGE
from shadowtime.shared.formatting import DAY, clock


def evaluated(expression: str) -> object:
    """Return the value of an expression in which `f` is the module `format.js`."""
    if shutil.which("node") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("node is not on PATH")
    module = base64.b64encode((PAGE / "format.js").read_bytes()).decode()
    script = f"import * as f from 'data:text/javascript;base64,{module}'; console.log(JSON.stringify({expression}))"
    command = ["node", "--input-type=module", "--eval", script]
    return orjson.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def test_only_all_is_100_percent_and_only_nothing_0() -> None:
    """A machine with free processors was 100 % busy."""
    shares = [0, 1e-4, 0.004, 0.006, 0.5, 0.994, 0.9996, 1]
    shown = ["0 %", "< 1 %", "< 1 %", "1 %", "50 %", "99 %", "> 99 %", "100 %"]
    assert evaluated(f"{shares}.map(f.whole)") == shown


@pytest.mark.parametrize("start", [0, 843_436_800])
@pytest.mark.parametrize("second", [60, 86_400, 100 * DAY, 400 * DAY, -400 * DAY])
def test_a_date_far_away_has_its_year_here_and_in_python(start: int, second: int) -> None:
    """A start that was expected in thirteen months looked like one of the next."""
    assert evaluated(f"new f.Clock({start}, 0).short({second})") == clock(second, start, 0)[:-3]


def test_a_date_has_its_time_zone() -> None:
    assert evaluated("[new f.Clock(843436800, 0).full(93784), new f.Clock(0, 0).full(93784)]") == [
        "24 Sep 1996 02:03:04 UTC",
        "1 d 02:03:04",
    ]


@pytest.mark.parametrize(
    ("work", "named", "capacity", "shown"),
    [
        ([[1, 60], [2, 30]], [1], 100, {"named": [[1, "60 %"]], "others": "30 %", "left": "10 %"}),
        ([[1, 150]], [1], 100, {"named": [[1, "100 %"]], "others": None, "left": "0 %"}),
        ([], [], 0, {"named": [], "others": None, "left": "0 %"}),
        ([[None, 50]], [None], 100, {"named": [[None, "50 %"]], "others": None, "left": "50 %"}),
    ],
)
def test_shares_of_a_machine(work: list[object], named: list[object], capacity: int, shown: object) -> None:
    """Without processors, all shares were NaN %."""
    of = orjson.dumps(work).decode()
    assert evaluated(f"f.portions(new Map({of}), {orjson.dumps(named).decode()}, {capacity})") == shown
