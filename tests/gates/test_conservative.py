"""Conservative backfilling on full KTH: an independent simulator's figures (anchors, section 2)."""

import pytest

from tests.gates.archive import needs_archive, replayed

pytestmark = [pytest.mark.archive, needs_archive]


@pytest.mark.parametrize(
    ("keys", "slowdown", "delay"),
    [
        ("order=BF", 88.96, 121.9),
        ("order=BF,guarantees=no", 101.8, 132.3),
        ("order=1/L", 70.8, None),
        ("order=1/L,guarantees=no", 45.4, 76.1),
        ("speculate=0.2", 79.4, None),
        ("speculate=0.2,test_runs=yes", 69.6, None),
    ],
)
def test_deterministic_variants(keys: str, slowdown: float, delay: float | None) -> None:
    scores = replayed("KTH", 100, f"conservative:{keys}", "as-logged").scores.policy
    assert scores.mean_wait is not None
    assert scores.mean_bounded_slowdown_unclamped == pytest.approx(slowdown, rel=0.03)
    assert delay is None or scores.mean_wait / 60 == pytest.approx(delay, rel=0.03)
