"""The ensemble against a recomputation over everything that was scored."""

import math
from collections.abc import Sequence

import orjson
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.wait_bound.groups.queue_bounds import LAST, ROUNDING, Ensemble

Scored = list[tuple[list[int | None], int]]

SCORED = st.lists(
    st.tuples(st.lists(st.none() | st.integers(0, 20) | st.integers(0, 20), min_size=3, max_size=3), st.integers(0, 20))
)


def told(scored: Sequence[tuple[Sequence[int | None], int]], quantile: float = 0.75) -> Ensemble:
    ensemble = Ensemble(len(scored[0][0]) if scored else 3, quantile)
    for bounds, wait in scored:
        ensemble.add(bounds, wait)
    return ensemble


def figures(scored: Scored, quantile: float) -> list[tuple[bool, int, float]]:
    """Return whether each grouping holds its coverage, how many it covered, and its over-prediction."""
    found = []
    common = [(bounds, wait) for bounds, wait in scored if None not in bounds]
    for each in range(3):
        over = [
            (bound - wait, (1 - 1 / LAST) ** age)
            for age, (bounds, wait) in enumerate(reversed(common))
            if (bound := bounds[each]) is not None and bound >= wait
        ]
        rms = (
            math.sqrt(sum(weight * off**2 for off, weight in over) / sum(weight for _, weight in over)) if over else 0.0
        )
        found.append((len(over) >= (quantile - ROUNDING) * len(common), len(over), rms))
    return found


@given(SCORED, st.sampled_from([0.25, 0.75, 0.95]))
def test_it_follows_the_tightest_that_hold(scored: Scored, quantile: float) -> None:
    each = figures(scored, quantile)
    chosen = told(scored, quantile).chosen()
    holding = [rms for holds, _, rms in each if holds]
    if holding:
        assert each[chosen][0]
        assert each[chosen][2] <= min(holding) + 1e-9
    else:
        assert each[chosen][1] == max(covered for _, covered, _ in each)


@given(SCORED, SCORED)
def test_a_restored_one_goes_on(before: Scored, after: Scored) -> None:
    ensemble, again = told(before), told([([1, 2, 3], 2)])
    again.restore(orjson.loads(orjson.dumps(ensemble.snapshot())))
    for bounds, wait in after:
        for each in (ensemble, again):
            each.add(bounds, wait)
        assert ensemble.chosen() == again.chosen()
    assert ensemble.snapshot() == again.snapshot()


def test_the_first_before_anything_is_scored() -> None:
    assert told([]).chosen() == 0
    assert told([([None, 5, 5], 1), ([9, 9, None], 1)]).chosen() == 0


def test_misses_are_no_over_prediction_but_cost_the_coverage() -> None:
    assert told([([100, 50, 9], 10)] * 3 + [([100, 50, 9], 5)]).chosen() == 1
    assert told([([100, 50, 9], 5)] * 3 + [([100, 50, 9], 10)]).chosen() == 2


def test_a_standstill_of_long_ago_decides_nothing_any_more() -> None:
    before, since = [([9_000, 100], 10)], [([20, 100], 10)]
    assert told(before * 50 + since * 50).chosen() == 1
    assert told(before * 50 + since * 20 * LAST).chosen() == 0


def test_a_snapshot_stays() -> None:
    ensemble = told([([100, 50, 9], 10)])
    snapshot = ensemble.snapshot()
    before = orjson.dumps(snapshot)
    ensemble.add([100, 50, 9], 10)
    assert orjson.dumps(snapshot) == before
