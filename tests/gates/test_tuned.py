"""A policy that tunes itself, on full logs, against EASY."""

import json
from math import prod

import pytest

from shadowtime.replayer.comparison.plan import RunResult
from tests.gates.archive import needs_archive, replayed

pytestmark = [pytest.mark.archive, needs_archive]

MACHINES = {"KTH": 100, "SDSC-SP2": 128, "CTC": 338, "Mira": 49_152}


def figures(result: RunResult) -> tuple[float, float, float]:
    """Return mean wait, mean bounded slowdown and longest wait."""
    scores = result.scores.policy
    assert scores.mean_wait is not None
    assert scores.mean_bounded_slowdown is not None
    assert scores.max_wait is not None
    return scores.mean_wait, scores.mean_bounded_slowdown, scores.max_wait


def test_one_setting_for_all_logs(capsys: pytest.CaptureFixture[str]) -> None:
    """Half of EASY's slowdown. One replay is one draw: the longest wait is told, and held against EASY's on copies."""
    shares = []
    for trace, processors in MACHINES.items():
        easy = replayed(trace, processors, "easy", "as-logged")
        tuned = replayed(trace, processors, "tuned:runtime=empirical", "as-logged")
        shares.append([ours / theirs for ours, theirs in zip(figures(tuned), figures(easy), strict=True)])
        run = {"gate": "tuned", "trace": trace, "figures": figures(tuned), "of_easy": shares[-1]}
        with capsys.disabled():
            print("\n" + json.dumps(run | {"cpu_seconds": round(tuned.cpu_seconds, 1)}))
    wait, slowdown, longest = (prod(column) ** (1 / len(shares)) for column in zip(*shares, strict=True))
    with capsys.disabled():
        print(json.dumps({"gate": "tuned", "wait": wait, "slowdown": slowdown, "longest": longest}))
    assert slowdown <= 0.50
    assert wait <= 0.70
