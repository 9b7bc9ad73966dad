"""Shadows beside KTH: exact ones are closed replays, byte for byte; how far those by predictions are off."""

from collections.abc import Sequence

import numpy as np
import pytest

from shadowtime.shared.messages.envelope import Envelope, JobStarted
from tests.gates.archive import needs_archive, workload
from tests.support.shadow_beside import Beside, closed, played, settings, told

pytestmark = [pytest.mark.archive, needs_archive]

POLICIES = ("easy", "best")


@pytest.fixture(scope="module")
def replays() -> dict[str, list[Envelope]]:
    log = workload("KTH", 100)
    return {policy: closed(log, policy) for policy in POLICIES}


@pytest.mark.parametrize("policy", POLICIES)
def test_an_exact_shadow_beside_easy_is_the_replay(
    replays: dict[str, list[Envelope]], policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Job 27388 starts 8.0 days earlier under `best` than under EASY. A shadow waits for seven (docs/shadows.md).
    monkeypatch.setattr("shadowtime.services.shadows.machine.machine.PATIENCE", 9 * 86_400)
    shadow = played(settings(workload("KTH", 100), policy), Beside(told(replays["easy"]), exact=True, kills=0.001))
    assert [each.to_bytes() for each in shadow] == [each.to_bytes() for each in replays[policy]]


def starts(log: Sequence[Envelope]) -> dict[int, int]:
    return {each.event.job_number: each.event.time for each in log if isinstance(each.event, JobStarted)}


@pytest.mark.parametrize(("real", "policy"), [("easy", "easy"), ("easy", "best"), ("best", "easy")])
def test_how_far_a_shadow_by_predictions_is_off(replays: dict[str, list[Envelope]], real: str, policy: str) -> None:
    log = workload("KTH", 100)
    found = starts(played(settings(log, policy), Beside(told(replays[real]), exact=False)))
    exact = starts(replays[policy])
    submitted = dict(zip(log.columns["job_number"].tolist(), log.columns["submit_time"].tolist(), strict=True))
    off = np.array([found[number] - exact[number] for number in exact])
    waits = [np.mean([each[number] - submitted[number] for number in exact]) for each in (found, exact)]
    print(
        f"\n{policy} beside {real}: {(off != 0).mean():.1%} start at another time, by {np.abs(off).mean():.0f} s on "
        f"average over all; mean wait {waits[0]:.0f} s, exact {waits[1]:.0f} s"
    )
    assert (real != policy) == bool((off != 0).any())
    assert waits[0] == pytest.approx(waits[1], rel=0.25)
