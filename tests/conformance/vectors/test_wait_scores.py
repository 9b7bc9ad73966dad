"""Worked example of the accuracy of wait bounds."""

import pytest

from shadowtime.services.scoreboard.scores.bound_coverage import CoverageSums
from tests.conformance.vectors.vector import vector


def test_over_rms() -> None:
    example = vector("p2_over_rms")
    sums = CoverageSums(quantile=0.95)
    correct = []
    for bound, wait in zip(example["pred"], example["actual"], strict=True):
        before = sums.covered
        sums.add(bound, wait)
        correct.append(sums.covered > before)
    summary = sums.summary()
    assert correct == example["correct"]
    assert summary["coverage"] == example["correctness_pct"] / 100
    assert summary["over_rms"] == pytest.approx(example["over_rms"], abs=1e-9)
    assert 200 / summary["over_rms"] == pytest.approx(example["ratio_if_plain_rms_200"], abs=1e-9)
