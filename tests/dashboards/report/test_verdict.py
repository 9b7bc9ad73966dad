"""What a report says first."""

from typing import Any

import pytest

from shadowtime.dashboards.report.page import page
from shadowtime.dashboards.report.verdict import limits, verdict
from shadowtime.replayer.swf import BUNDLED, read_swf
from shadowtime.replayer.workload import prepare
from shadowtime.services.catalogue import configure
from tests.dashboards.recorded_runs import POLICIES, compared, recorded


def document(**figures: tuple[float, float, int]) -> dict[str, Any]:
    """Return mean bounded slowdown, mean wait and longest wait of policies, as `--json` has them."""
    keys = ("mean_bounded_slowdown", "mean_wait", "max_wait")
    rows = [{"policy": name, **dict(zip(keys, values, strict=True))} for name, values in figures.items()]
    return {"settings": {"obeyed": True, "seed": 0}, "policies": rows}


def said(**figures: tuple[float, float, int]) -> str:
    return verdict(document(**figures), list(figures), [])


def test_two_sentences_name_the_best_and_what_it_costs() -> None:
    assert said(easy=(90.0, 7200.0, 36000), lwf=(47.04, 3600.0, 90000), wfp=(54.72, 1800.0, 36000)) == (
        "lwf had the lowest mean bounded slowdown, 47.04; the next, wfp, had 7.68 more. Under wfp jobs waited 30.0 min "
        "less on average; the longest wait was 25.0 h under lwf, but 10.0 h under easy."
    )


def test_what_is_best_in_all_is_told_so() -> None:
    assert said(easy=(9.0, 90.0, 3600), fcfs=(9.0, 95.0, 7200)) == (
        "easy had the lowest mean bounded slowdown, 9.00; the next, fcfs, had the same. Its mean wait, 1.5 min, was "
        "the shortest too; no policy had a shorter longest wait than easy, 1.0 h."
    )


def test_one_policy_is_compared_with_nothing() -> None:
    assert "No other policy was replayed" in said(easy=(9.0, 90.0, 3600))


def test_how_sure_it_is_comes_from_the_same_jobs() -> None:
    told, records = compared()
    text = verdict(told, POLICIES, records)
    assert text.count("95 % interval") + text.count("too short to say") >= 1
    by_slowdown = sorted(told["policies"], key=lambda row: row["mean_bounded_slowdown"])
    assert text.startswith(f"{by_slowdown[0]['policy']} had the lowest mean bounded slowdown, ")
    assert text in page([told], [], [records]).replace("&#x27;", "'")


def test_a_recorded_log_tells_of_predictors_and_bounds() -> None:
    told, records = recorded(prepare(read_swf(BUNDLED), limit=800))
    text = verdict(told, ["recorded"], records)
    assert "requests" in text
    assert "bounds on waits" in text
    assert "following the decisions" in limits(told)


@pytest.mark.parametrize(("requests", "told"), [("as-logged", "waits."), ("actual", "nobody made (actual).")])
def test_what_it_does_not_show(requests: str, told: str) -> None:
    settings = {"obeyed": True, "seed": 3, "requests": requests}
    text = limits({"settings": settings})
    assert text.startswith("It does not show ")
    assert "(seed 3)" in text
    assert text.count(". ") == 0
    assert told.removesuffix("waits.") in text


def test_the_report_spells_out_what_its_policies_were() -> None:
    told, records = compared()
    html = page([told], [], [records])
    table = html.partition('aria-label="Configurations"')[2].partition("</table>")[0]
    for policy in POLICIES:
        assert f'<th scope="row">{policy}</th>' in table
    (best,) = (row["configuration"] for row in told["policies"] if row["policy"] == "best")
    assert configure(best) == configure("best")
    assert best.replace(",", ", ") in table
