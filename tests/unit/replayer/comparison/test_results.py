"""Where results go, and what is made of several clusters."""

import json
from pathlib import Path
from typing import Any

import pytest

from shadowtime.replayer.commands.outputs import Targets, in_parts, result_files
from shadowtime.replayer.comparison.document import as_json
from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.errors import SettingsError
from tests.support.small_logs import generated, plan_of

SOMEWHERE = Path("a")


@pytest.mark.parametrize(
    ("targets", "one_run", "side_by_side", "reason"),
    [
        (Targets(json=SOMEWHERE, report=SOMEWHERE), True, False, "^two results have the same path: a, a$"),
        (Targets(schedule=SOMEWHERE), False, False, "needs one trace and one policy"),
        (Targets(decisions=SOMEWHERE), False, True, "needs one trace and one policy"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(targets: Targets, one_run: bool, side_by_side: bool, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        targets.require_usable([], one_run=one_run, side_by_side=side_by_side)


def test_decisions_of_runs_one_after_another_are_one_log() -> None:
    Targets(decisions=SOMEWHERE).require_usable([], one_run=False, side_by_side=False)


def test_no_result_is_written_over_a_log(tmp_path: Path) -> None:
    (log := tmp_path / "log.swf").write_text("; MaxProcs: 4\n")
    (tmp_path / "link").symlink_to(log)
    for place in (log, tmp_path / "link"):
        with pytest.raises(SettingsError, match="is an input; write the result to another file"):
            Targets(schedule=place).require_usable([f"{log}@4"], one_run=True, side_by_side=False)


def test_no_result_is_written_over_another_input(tmp_path: Path) -> None:
    (place := tmp_path / "a.json").write_text("")
    for reading in (Reading(pools=place), Reading(names=place), Reading(names_key=place)):
        with pytest.raises(SettingsError, match=r"is an input|two results have the same path"):
            Targets(json=place).require_usable([], reading, one_run=True, side_by_side=False)


def test_every_file_is_there_in_the_end_and_none_before(tmp_path: Path) -> None:
    targets = Targets(*(tmp_path / name for name in ("decisions", "schedule", "json", "report", "results")))
    plans = [plan_of(generated(jobs=20)), plan_of(generated(jobs=20), "fcfs")]
    with result_files(targets, plans) as files:
        results = [carry_out(plan, those) for plan, those in zip(plans, files.observers, strict=True)]
        files.write([as_json(results)])
        assert not any(path.exists() for path in targets.all.values() if path is not None)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(targets.all)
    document: Any = json.loads((tmp_path / "json").read_bytes())
    assert [row["policy"] for row in document["policies"]] == ["easy", "fcfs"]
    assert (tmp_path / "decisions").read_bytes().count(b'"ClusterOpened"') == 2


def test_only_a_policy_with_a_portfolio_tells_of_its_members() -> None:
    plans = [plan_of(generated(200), policy) for policy in ("easy", "tuned:runtime=empirical,least=20,every=900")]
    easy, tuned = as_json([carry_out(plan) for plan in plans])["policies"]
    assert "portfolio" not in easy
    told = tuned["portfolio"]
    assert told["changes"][0]["time"] >= 0
    assert told["changes"][-1]["member"] == told["decides"]
    assert told["decides"] in {row["member"] for row in told["members"]}
    (of_easy,) = [row for row in told["members"] if row["member"] == "easy"]
    assert (of_easy["slowdown"], of_easy["wait"], of_easy["longest_wait"]) == (1, 1, 1)
    assert 0 < told["jobs"] <= 200


def test_nothing_is_gathered_for_what_nobody_wants() -> None:
    plans = [plan_of(generated(jobs=20))] * 2
    with result_files(Targets(), plans) as files:
        assert files.observers == [[], []]
        files.write([])


def test_of_each_cluster_its_own_runs() -> None:
    assert in_parts([1, 2, 3, 4, 5, 6], 2) == [[1, 2, 3], [4, 5, 6]]
