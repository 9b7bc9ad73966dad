"""One group online: bounds, misses, change points, and borrowing from its neighbours."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound.binomial_ranks import minimum_history, upper_rank
from shadowtime.services.wait_bound.groups.change_point import EVERY, RUNS
from shadowtime.services.wait_bound.groups.group_bound import WaitGroup, borrowed, bound, bounds, lower_bound, ranks
from shadowtime.shared.kernels.arrays import Integers
from shadowtime.testing.examples import examples
from tests.unit.services.wait_bound.happenings import waits_of

MAX_JOBS, KEEP = 1000, 59


def filled(waits: list[int], most: int = MAX_JOBS) -> WaitGroup:
    group = WaitGroup(most, KEEP)
    for wait in waits:
        assert group.add(wait, bound=None) == 0
    return group


def online(waits: Integers, group: WaitGroup) -> list[int]:
    """Let a group see waits one by one, each with the bound from those before it; return its change points."""
    found = []
    for wait in waits.tolist():
        issued, _ = bound([group], 0, 0.95, 0.95)
        found.append(group.add(wait, issued))
    return found


def shifting(seed: int, count: int) -> Integers:
    chance = Generator(PCG64([seed]))
    levels = np.repeat(chance.normal(5, 3, count // 100 + 1), 100)[:count]
    return np.expm1(np.clip(levels + chance.standard_normal(count), 0, 20)).astype(np.int64)


@pytest.mark.parametrize("seed", range(10))
def test_online_is_replay(seed: int) -> None:
    waits = shifting(seed, 900)
    group = WaitGroup(MAX_JOBS, KEEP)
    online(waits, group)
    again = WaitGroup.replayed(MAX_JOBS, KEEP, waits)
    assert again.snapshot() == group.snapshot()
    assert online(shifting(seed + 100, 300), group) == online(shifting(seed + 100, 300), again)
    assert again.snapshot() == group.snapshot()


def test_most_of_these_change() -> None:
    assert sum(any(online(shifting(seed, 900), WaitGroup(MAX_JOBS, KEEP))) for seed in range(10)) >= 5


def test_ranks_are_those_of_the_binomial_method() -> None:
    assert ranks(300).tolist() == [upper_rank(count, 0.95, 0.95) or 0 for count in range(301)]


def test_misses_in_a_row_are_a_change_point_and_the_last_waits_are_kept() -> None:
    group = filled(list(range(100, 200)))
    group.change_points.limit = 3
    assert [group.add(wait, 300) for wait in (301, 302, 300, 301, 302)] == [0, 0, 0, 0, 0], "not in a row"
    assert group.add(303, 300) == 3
    assert waits_of(group.history) == [*range(147, 200), 301, 302, 300, 301, 302, 303]
    assert group.add(301, 300) == 0, "counted anew"


def test_a_wait_without_a_bound_is_no_hit_and_no_miss() -> None:
    group = filled([5] * 20)
    assert [group.add(100, 50), group.add(100, 50), group.add(1, None), group.add(100, 50)] == [0, 0, 0, 3]


def test_as_long_as_the_bound_is_within_it() -> None:
    group = filled([5] * 20)
    assert [group.add(50, 50) for _ in range(10)] == [0] * 10


def test_correlated_waits_may_miss_more_often() -> None:
    group = WaitGroup(MAX_JOBS, KEEP)
    assert group.change_points.limit == RUNS[0] == 3
    for wait in [1] * (EVERY // 2) + [100_000] * (EVERY // 2 - 1):
        group.add(wait, None)
    assert group.change_points.limit == 3, "not yet taken anew"
    group.add(100_000, None)
    limit = group.change_points.limit
    assert limit > 10
    assert [group.add(9, 1) for _ in range(limit)] == [0] * (limit - 1) + [limit]


def test_no_more_waits_are_remembered_than_said() -> None:
    group = filled(list(range(250)), most=100)
    assert waits_of(group.history) == list(range(150, 250))


@given(st.integers(0, 400), st.integers(0, 200))
@examples(20)
def test_a_restored_group_goes_on(before: int, after: int) -> None:
    waits = shifting(before, 601)
    group, again = WaitGroup(MAX_JOBS, KEEP), filled([1, 2, 3])
    online(waits[:before], group)
    again.restore(orjson.loads(orjson.dumps(group.snapshot())))
    rest = waits[before : before + after]
    assert online(rest, group) == online(rest, again)
    assert group.snapshot() == again.snapshot()


SIZES = st.lists(st.integers(0, 70), min_size=1, max_size=6)


@given(SIZES, st.data())
def test_borrowing_goes_up_then_down_and_takes_no_more_than_it_needs(sizes: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(sizes) - 1))
    groups = [filled([1000 * each + wait for wait in range(size)]) for each, size in enumerate(sizes)]
    order = [at, *range(at + 1, len(sizes)), *range(at - 1, -1, -1)]
    taken = order[:1]
    while sum(sizes[each] for each in taken) < 59 and len(taken) < len(order):
        taken = order[: len(taken) + 1]
    assert [history is groups[each].history for history, each in zip(borrowed(groups, at, 59), taken, strict=True)] == [
        True
    ] * len(taken)
    waits = sorted(wait for each in taken for wait in waits_of(groups[each].history))
    rank = upper_rank(len(waits), 0.95, 0.95)
    assert bound(groups, at, 0.95, 0.95) == (None if rank is None else waits[rank - 1], len(waits))
    levels = (0.05, 0.5, 0.95, 0.99)
    assert bounds(groups, at, levels, 0.95) == [bound(groups, at, level, 0.95)[0] for level in levels]


def test_how_much_is_borrowed_follows_the_quantile() -> None:
    groups = [filled([each] * 60) for each in range(6)]
    assert bound(groups, 4, 0.5, 0.95) == (4, 60)
    assert bound(groups, 4, 0.95, 0.95) == (4, 60)
    assert minimum_history(0.99, 0.95) == 299
    assert bound(groups, 4, 0.99, 0.95) == (5, 300)
    assert bound(groups[:4], 0, 0.99, 0.95) == (None, 240)


def test_bounds_change_nothing() -> None:
    groups = [filled([3, 1, 2] * 10) for _ in range(3)]
    before = [group.snapshot() for group in groups]
    bound(groups, 1, 0.95, 0.95)
    assert [group.snapshot() for group in groups] == before


@given(st.lists(st.lists(st.integers(0, 50), max_size=90), min_size=1, max_size=4), st.data())
@examples(60)
def test_a_bound_from_below_mirrors_one_from_above(waits: list[list[int]], data: st.DataObject) -> None:
    """It is the upper bound of the opposite quantile, of negative waits in groups in the opposite order."""
    quantile, confidence = data.draw(st.sampled_from([0.05, 0.5, 0.95])), data.draw(st.sampled_from([0.8, 0.95]))
    at = data.draw(st.integers(0, len(waits) - 1))
    groups, mirrored = ([WaitGroup(1000, 59) for _ in waits] for _ in range(2))
    for group, other, its in zip(groups, reversed(mirrored), waits, strict=True):
        for wait in its:
            group.add(wait, None)
            other.add(-wait, None)
    upper, _ = bound(mirrored, len(waits) - 1 - at, round(1 - quantile, 12), confidence)
    assert lower_bound(groups, at, quantile, confidence) == (None if upper is None else -upper)
