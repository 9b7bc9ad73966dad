"""Candidates delay the head as often as is stated, over all evaluated (docs/algorithms.md#calibration)."""

import json

import pytest

from tests.gates.archive import needs_archive, replayed

pytestmark = [pytest.mark.archive, needs_archive]

LIMIT = 0.05
# Chosen on the first half of KTH, where `experts` had an error of 0.029, `empirical-request` 0.030, `empirical` 0.061
# and `hmm` 0.160; with the paper's `mass=truncate` and `points=1` they had 0.072, 0.074, 0.110 and 0.225. Mass above
# the request happens at the request, and a job ends within its bin, not at the end of it.
KEYS = "mass=censor,points=4"


MENDED = {"KTH": 0.187, "SDSC-SP2": 0.201, "CTC": 0.210}
"""Brier scores of the raw probabilities of `best`, of calibration errors 0.156, 0.162 and 0.090."""


@pytest.mark.parametrize(("trace", "processors"), [("KTH", 100), ("SDSC-SP2", 128), ("CTC", 338)])
def test_what_best_states_is_true(trace: str, processors: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Recalibrated, of all candidates and of those that were started, and sharper than raw (docs/calibration.md)."""
    scores = replayed(trace, processors, "cautious", "as-logged").scores.calibration
    assert scores is not None
    assert scores.recalibrated is not None
    assert scores.recalibrated_started is not None
    told = {
        name: (each.candidates, each.calibration_error, each.brier_score)
        for name in ("exact", "exact_started", "recalibrated", "recalibrated_started")
        if (each := getattr(scores, name))
    }
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "recalibration", "trace": trace} | told))
    assert scores.recalibrated.candidates == scores.exact.candidates
    assert scores.recalibrated.calibration_error is not None
    assert scores.recalibrated_started.calibration_error is not None
    assert scores.recalibrated.brier_score is not None
    assert scores.recalibrated.calibration_error <= 0.03
    assert scores.recalibrated_started.calibration_error <= 0.06
    assert scores.recalibrated.brier_score < MENDED[trace]


@pytest.mark.parametrize("runtime", ["experts", "empirical-request"])
@pytest.mark.parametrize(("trace", "processors"), [("KTH", 100), ("SDSC-SP2", 128), ("CTC", 338)])
def test_expected_calibration_error(
    trace: str, processors: int, runtime: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = replayed(trace, processors, f"probabilistic:runtime={runtime},{KEYS}", "as-logged").scores.calibration
    assert scores is not None
    exact, bound = scores.exact, scores.bound
    figures = {
        "candidates": exact.candidates,
        "exact": exact.calibration_error,
        "bound": bound.calibration_error,
        "brier_score": exact.brier_score,
        "bins": [(each.candidates, round(each.mean_probability, 3), round(each.delayed, 3)) for each in exact.bins],
    }
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "calibration", "trace": trace, "runtime": runtime} | figures))
    assert exact.candidates > 100_000
    assert exact.calibration_error is not None
    assert bound.calibration_error is not None
    assert exact.calibration_error <= LIMIT
    assert exact.calibration_error < bound.calibration_error
