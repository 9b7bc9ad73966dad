"""Drift on full logs: how many alarms there are as they are, and when planted changes are told (docs/drift.md)."""

import json

import pytest

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.logs.workload import Workload
from shadowtime.services.catalogue import canonical, configure
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages.drifts import DriftEpisode, DriftScores
from tests.gates.archive import needs_archive, workload
from tests.support.planted import CHANGES, middle

pytestmark = [pytest.mark.archive, needs_archive]

LOGS = [("KTH", 100), ("SDSC-SP2", 128), ("CTC", 338)]
YEAR = 365.25


def replayed(log: Workload, name: str, mode: str = "closed") -> DriftScores:
    """Return when predictions held: EASY with everything predicted."""
    configuration = configure("easy", "experts", "auto")
    result = carry_out(RunPlan("easy", name, log, configuration, mode, canonical("wait-bound", "bmbp")))
    assert result.scores.drifts is not None
    return result.scores.drifts


def of_cluster(told: DriftScores, of: str | None = None) -> list[DriftEpisode]:
    """Return the episodes that are about all jobs."""
    return [each for each in told.episodes if each.scope == "cluster" and of in (None, each.of)]


@pytest.mark.parametrize("mode", ["closed", "recorded"])
@pytest.mark.parametrize(("trace", "processors"), LOGS)
def test_alarms_of_logs_as_they_are(trace: str, processors: int, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = replayed(workload(trace, processors), trace, mode)
    rows = [each.model_dump() for each in told.episodes]
    yearly = {scope: round(sum(each["scope"] == scope for each in rows) * YEAR / told.days, 2)
              for scope in ("cluster", "queue", "partition", "user")}  # fmt: skip
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "drift", "trace": trace, "mode": mode, "days": told.days, "a year": yearly}))
        for row in rows:
            print(json.dumps(row))
    assert not of_cluster(told, "run_time")
    assert not of_cluster(told, "adjustment")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("trace", "processors"), LOGS)
def test_planted_changes(trace: str, processors: int, change: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = workload(trace, processors)
    at = middle(log)
    planted = CHANGES[change](log, at)
    told = replayed(planted, f"{trace}, {change}")
    submitted = planted.columns["submit_time"]
    first: dict[str, dict[str, object]] = {}
    for each in told.episodes:
        if each.told > at:
            days, jobs = round((each.told - at) / DAY, 1), int(((submitted >= at) & (submitted < each.told)).sum())
            first.setdefault(f"{each.of}, {each.scope}", {"what": each.what, "days": days, "jobs": jobs})
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "drift", "trace": trace, "change": change} | first))
    if change == "arrivals tripled":
        assert any(each.told > at for each in of_cluster(told, "wait_bound"))
    assert all(each.told > at or each.of == "wait_bound" for each in of_cluster(told))
