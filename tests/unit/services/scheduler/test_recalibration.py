"""The recalibration finds out how probabilities are distorted, and forgets it when that is over."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from shadowtime.services.scheduler.probabilistic.outcomes import CandidateOutcome, FollowedCandidate
from shadowtime.services.scheduler.probabilistic.recalibration import STEP, TERMS, DelayRecalibration, recalibrated

LIKELY = np.linspace(0.05, 0.95, 10)


def logistic(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))


def taught(mended: DelayRecalibration, shift: float, scale: float, *, passes: bool, count: int = 20_000) -> None:
    """Show candidates that delay the head with the logistic function of `shift` + `scale` * log-odds of the stated."""
    chance = Generator(PCG64([3]))
    for stated, draw in zip(chance.uniform(0.01, 0.99, count).tolist(), chance.random(count).tolist(), strict=True):
        happens = logistic(shift + scale * np.log(stated / (1 - stated)))
        said = recalibrated(mended.weights[int(passes)], stated)
        mended.learn(CandidateOutcome(FollowedCandidate(1, 1, stated, said, passes, 1), draw < happens))


def test_begins_with_what_is_computed() -> None:
    mended = DelayRecalibration()
    for weights in mended.weights:
        assert [recalibrated(weights, each) for each in LIKELY] == pytest.approx(LIKELY)
        assert 0 < recalibrated(weights, 0.0) < recalibrated(weights, 1.0) < 1


@pytest.mark.parametrize("passes", [False, True])
def test_finds_a_planted_distortion(passes: bool) -> None:
    mended = DelayRecalibration()
    taught(mended, 0.8, 0.6, passes=passes)
    expected = [logistic(0.8 + 0.6 * np.log(each / (1 - each))) for each in LIKELY]
    assert [recalibrated(mended.weights[int(passes)], each) for each in LIKELY] == pytest.approx(expected, abs=0.03)
    assert mended.weights[int(not passes)].tolist() == DelayRecalibration().weights[0].tolist()


def test_forgets() -> None:
    mended = DelayRecalibration()
    taught(mended, 1.5, 1.0, passes=False)
    taught(mended, -1.5, 1.0, passes=False, count=40_000)
    expected = [logistic(-1.5 + np.log(each / (1 - each))) for each in LIKELY]
    assert [recalibrated(mended.weights[0], each) for each in LIKELY] == pytest.approx(expected, abs=0.06)


def test_what_is_stated_adds_up_to_what_happens() -> None:
    """But for what the shifts have come to, whatever drifts: the error of a long run is bounded by them."""
    chance = Generator(PCG64([4]))
    mended = DelayRecalibration()
    off = 0.0
    for number, draw in enumerate(chance.random(20_000).tolist()):
        likely = 0.9 if number // 5000 % 2 else 0.5
        stated = recalibrated(mended.weights[0], 0.3)
        mended.learn(CandidateOutcome(FollowedCandidate(1, 1, 0.3, stated, False, 1), draw < likely))
        off += (draw < likely) - stated
    assert mended.weights[0, TERMS:].sum() == pytest.approx(STEP * off)
    assert abs(off) / 20_000 < 0.06


def test_stays_finite_however_one_sided_what_happens() -> None:
    mended = DelayRecalibration()
    for _ in range(30_000):
        mended.learn(CandidateOutcome(FollowedCandidate(1, 1, 1.0, 1.0, False, 32), True))
    assert np.isfinite(mended.weights).all()
    assert recalibrated(mended.weights[0], 1.0) > 0.99
    assert 0 < recalibrated(mended.weights[0], 0.0) < 1
