"""Who decided, of a policy that moves between several configurations."""

import re
from typing import Any

import pytest

from shadowtime.replayer.report.report import page
from shadowtime.replayer.report.sections import MOST, who_decided
from tests.support.recorded_runs import replayed
from tests.support.small_logs import generated, plan_of

TUNED = "tuned:runtime=empirical,least=20,every=900"


def text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def row(changes: int, members: int, left_out: int = 0) -> dict[str, Any]:
    told = [
        {"member": f"m{number}", "slowdown": 0.9, "wait": 0.8, "longest_wait": 1.25, "worst_user": 2.0}
        | {"loss": -number / 100, "weight": (number + 1) / 1_000}
        for number in range(members)
    ]
    return {
        "policy": "tuned",
        "portfolio": {
            "decides": "m0",
            "jobs": 1_234,
            "members": told,
            "changes": [{"time": 3_600 * number, "member": f"m{number % 2}"} for number in range(changes)],
            "left_out": left_out,
        },
    }


def rows_of(html: str) -> list[int]:
    return [each.count("<tr>") - 1 for each in re.findall(r"<table>.*?</table>", html, re.DOTALL)]


@pytest.fixture(scope="module")
def reports() -> tuple[dict[str, Any], str, str]:
    workload = generated(200)
    told, records = replayed([plan_of(workload, "easy"), plan_of(workload, TUNED)])
    other, of_other = replayed([plan_of(workload, "easy")])
    return told, page([told], None, [records]), page([other], None, [of_other])


def test_the_report_has_it_only_of_a_policy_with_a_portfolio(reports: tuple[dict[str, Any], str, str]) -> None:
    told, tuned, other = reports
    assert "Who decided" not in other
    assert "jobs that have ended on all simulated machines" in tuned
    shown = text(tuned)
    portfolio = told["policies"][1]["portfolio"]
    assert f"{portfolio['decides']} (decides)" in shown
    assert f"{len(portfolio['changes'])} turn" in shown


def test_it_is_told_from_when_and_for_how_long() -> None:
    shown = text(who_decided([row(changes=3, members=2)]))
    assert "tuned had 3 turns of its members." in shown
    assert "0 d 00:00:00 m0 1.0 h 0 d 01:00:00 m1 1.0 h 0 d 02:00:00 m0 to the end" in shown
    assert "of the 1,234 jobs" in shown
    assert "m0 (decides) 90.0 % 80.0 % 125.0 % 200.0 % 0.000 0.1 %" in shown
    assert "1 Jan 01:00:00 m1" in text(who_decided([row(changes=3, members=2)], unix_start=1_704_067_200))


def test_it_is_short_and_has_whoever_decides() -> None:
    html = who_decided([row(changes=50, members=30)])
    assert rows_of(html) == [MOST, MOST]
    assert "here are the last 10 of these" in html
    assert "20 members with a greater loss are left out" in html
    assert "m0 (decides)" in html
    assert "m29" in html


def test_without_a_choice_there_are_no_standings() -> None:
    assert rows_of(who_decided([row(changes=1, members=0)])) == [1]
    assert who_decided([{"policy": "easy"}]) == ""


def test_of_changes_that_are_not_known_it_does_not_pretend_to_be() -> None:
    shown = text(who_decided([row(changes=2, members=2, left_out=7)]))
    assert "tuned had 9 turns of its members; the first 2 are known." in shown
    assert "to the end" not in shown
