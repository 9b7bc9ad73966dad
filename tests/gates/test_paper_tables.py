"""Tables 2 and 3 of P0 beside ours: geometric mean wait under EASY and backfilling by probability, tau 0.05, FCFS."""

import json

import pytest

from tests.gates.archive import needs_archive, replayed

pytestmark = [pytest.mark.archive, needs_archive]

LITERAL = "hmm(state=argmax,learning=em,evidence=ended)"
"""The model as the paper's text has it; `hmm` alone predicts better, and so is more careful at this tau."""

SIZES = {"KTH": 100, "SDSC-SP2": 128, "CTC": 512}
PAPER = {"KTH": (181.0, 147.0), "SDSC-SP2": (639.0, 635.0), "CTC": (28.2, 25.3)}
# Where the paper's improvement is reached by its own criterion; the exact one, which is never below, starts fewer jobs.
REACHED = {("KTH", LITERAL), ("SDSC-SP2", LITERAL), ("CTC", "hmm")}


@pytest.mark.parametrize("criterion", ["paper", "exact"])
@pytest.mark.parametrize("runtime", [LITERAL, "hmm"], ids=["literal", "default"])
@pytest.mark.parametrize("trace", SIZES)
def test_geometric_mean_wait(trace: str, runtime: str, criterion: str, capsys: pytest.CaptureFixture[str]) -> None:
    policy = f"probabilistic:tau=0.05,criterion={criterion},runtime={runtime}"
    easy, ours = (replayed(trace, SIZES[trace], each, "as-logged").scores.policy for each in ("easy", policy))
    assert easy.geometric_mean_wait is not None
    assert ours.geometric_mean_wait is not None
    change = ours.geometric_mean_wait / easy.geometric_mean_wait - 1
    published = PAPER[trace][1] / PAPER[trace][0] - 1
    figures = {
        "mean_wait": (easy.mean_wait, ours.mean_wait),
        "geometric_mean_wait": (easy.geometric_mean_wait, ours.geometric_mean_wait),
        "change": round(change, 4),
        "published": round(published, 4),
    }
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "P0", "trace": trace, "policy": policy} | figures))
    assert easy.geometric_mean_wait == pytest.approx(PAPER[trace][0], rel=0.12)  # log and filter are the paper's
    if criterion == "paper" and (trace, runtime) in REACHED:
        assert change <= published
