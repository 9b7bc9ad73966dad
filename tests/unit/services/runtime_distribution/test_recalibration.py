"""Recalibrated probabilities come true, whatever was said."""

import numpy as np
import orjson
import pytest

from shadowtime.services.runtime_distribution.ensembles.recalibration import PARTS, PitRecalibration, moved
from tests.support.plain_formulas import transformed


def test_what_comes_true_stays_as_it_is() -> None:
    outcomes = np.array([0.1, 0.0, 0.6, 0.3])
    assert moved(outcomes, np.full(PARTS, 1 / PARTS)) == pytest.approx(outcomes)
    assert PitRecalibration().moved(outcomes) == pytest.approx(outcomes)


@pytest.mark.parametrize("seed", range(3))
def test_distributions_that_are_too_wide_come_true(seed: int) -> None:
    """Said is that four outcomes are alike; one in the middle comes three times as often."""
    chance, recalibration = np.random.default_rng(seed), PitRecalibration()
    said, real = np.full(4, 0.25), np.array([0.1, 0.3, 0.5, 0.1])
    limit = 1.8**2
    for outcome in chance.choice(4, size=20_000, p=real):
        run_time = (1.0, 1.8 ** chance.uniform(0.0, 1.0), 1.8 ** chance.uniform(1.0, 2.0), limit)[outcome]
        recalibration.learn(*transformed(said, run_time, limit))
    found = recalibration.moved(said)
    assert found == pytest.approx(real, abs=0.03)
    assert found.sum() == pytest.approx(1)
    again = PitRecalibration()
    again.restore(orjson.loads(orjson.dumps(recalibration.snapshot())))
    assert again.moved(said).tolist() == found.tolist()


def test_what_is_long_gone_is_forgotten() -> None:
    recalibration = PitRecalibration()
    for at in (0.1, 0.9):
        for _ in range(30_000):
            recalibration.learn(at, at)
    assert recalibration.moved(np.array([0.5, 0.5]))[1] > 0.9
