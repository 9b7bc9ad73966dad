"""Merging by a heap is merging by search, and the ends hold what they must."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound.groups.clustering import Clusters, clusterings, cut, initial, merge_order
from tests.support.plain_formulas import merge_deltas

Group = tuple[int, float]


def joint(groups: list[Group]) -> float:
    """Return the joint log-likelihood of clusters as (waits, sum), written anew; a sum of 0 as if it were tiny."""
    return math.fsum(n * math.log(n / (s or n * 1e-9)) - n for n, s in groups)


def merged(groups: list[Group], i: int) -> list[Group]:
    """Return the clusters with cluster `i` and the next as one."""
    (n, s), (m, t) = groups[i : i + 2]
    return [*groups[:i], (n + m, s + t), *groups[i + 2 :]]


def grouped(values: list[int], waits: list[int], offset: float) -> dict[int, Group]:
    return {
        each: (
            values.count(each),
            sum(wait + offset for value, wait in zip(values, waits, strict=True) if value == each),
        )
        for each in sorted(set(values))
    }


def ends_merged(groups: dict[int, Group], minimum: int) -> dict[int, Group]:
    """Return clusters by upper end, after merging one by one at either end what is too few."""
    ends, rest = list(groups), list(groups.values())
    while len(rest) > 1 and rest[0][0] < minimum:
        rest = merged(rest, 0)
        del ends[0]
    while len(rest) > 1 and rest[-1][0] < minimum:
        rest = merged(rest, len(rest) - 2)
        del ends[-2]
    return dict(zip(ends, rest, strict=True))


def searched(values: list[int], waits: list[int], offset: float, minimum: int, most: int) -> list[int]:
    """Return what `cut` should, in cubic time."""
    left = ends_merged(grouped(values, waits, offset), minimum)
    ends, groups = list(left), list(left.values())
    best, found = -math.inf, list[int]()
    while True:
        bic = joint(groups) - (2 * len(groups) - 1) / 2 * math.log(len(values))
        if len(groups) <= most and bic >= best:
            best, found = bic, ends[:-1]
        if len(groups) == 1:
            return found
        chosen = max(range(len(groups) - 1), key=lambda i: joint(merged(groups, i)))
        groups = merged(groups, chosen)
        del ends[chosen]


jobs = st.lists(st.tuples(st.integers(1, 12), st.sampled_from([0, 0, 0, 1, 5, 60, 61, 900, 86_400])), min_size=1)


@given(jobs, st.sampled_from([0.0, 1.0]))
def test_each_merge_costs_least(jobs: list[tuple[int, int]], offset: float) -> None:
    values, waits = (np.array(each) for each in zip(*jobs, strict=True))
    clusters = initial(values, waits, offset=offset, minimum_end=0)
    groups = list(zip(clusters.counts.tolist(), clusters.totals.tolist(), strict=True))
    assert groups == list(grouped(values.tolist(), waits.tolist(), offset).values())
    left = list(range(len(groups)))
    for each in merge_order(clusters.counts, clusters.totals).tolist():
        chosen = left.index(each)
        costs = [joint(groups) - joint(merged(groups, i)) for i in range(len(groups) - 1)]
        assert costs[chosen] == pytest.approx(min(costs), abs=1e-6)
        groups = merged(groups, chosen)
        del left[chosen]
    assert len(groups) == 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("offset", "minimum", "most"), [(0.0, 0, 15), (1.0, 59, 15), (1.0, 20, 3), (1.0, 5, 1)])
def test_same_cuts_as_by_search(seed: int, offset: float, minimum: int, most: int) -> None:
    chance = Generator(PCG64([seed]))
    values = chance.integers(1, 40, 300)
    means = chance.choice([5.0, 300.0, 20_000.0], 40)
    waits = np.ceil(chance.exponential(means[values])).astype(np.int64)
    found = cut(values, waits, offset=offset, minimum_end=minimum, most=most)
    assert found == searched(values.tolist(), waits.tolist(), offset, minimum, most)
    assert len(found) < most


@given(jobs, st.integers(0, 30), st.integers(1, 5))
def test_both_ends_hold_enough(jobs: list[tuple[int, int]], minimum: int, most: int) -> None:
    values, waits = (np.array(each) for each in zip(*jobs, strict=True))
    start = initial(values, waits, offset=1.0, minimum_end=minimum)
    assert start.counts.sum() == len(jobs)
    assert start.totals.sum() == waits.sum() + len(jobs)
    expected = ends_merged(grouped(values.tolist(), waits.tolist(), 1.0), minimum)
    assert start.ends.tolist() == list(expected)
    ends = cut(values, waits, minimum_end=minimum, most=most)
    assert all(lower < upper for lower, upper in pairwise(ends))
    assert set(ends) <= set(values.tolist())
    if ends:
        assert np.count_nonzero(values <= ends[0]) >= minimum
        assert np.count_nonzero(values > ends[-1]) >= minimum


def test_planted_clusters_are_found() -> None:
    chance = Generator(PCG64([1]))
    values = chance.integers(1, 401, 20_000)
    waits = chance.exponential(np.select([values <= 100, values <= 250], [10.0, 4000.0], 300.0)).astype(np.int64)
    assert cut(values, waits) == [100, 250]


def test_order_of_jobs_says_nothing() -> None:
    chance = Generator(PCG64([2]))
    values = chance.integers(1, 50, 2000)
    waits = chance.exponential(10.0 * values).astype(np.int64)
    order = chance.permutation(2000)
    assert cut(values, waits) == cut(values[order], waits[order]) != []


def test_inputs_are_left_alone() -> None:
    counts, totals = np.array([1, 2, 3]), np.array([10.0, 300.0, 9.0])
    merge_order(counts, totals)
    assert (counts.tolist(), totals.tolist()) == ([1, 2, 3], [10.0, 300.0, 9.0])


def test_one_value_is_one_cluster() -> None:
    assert cut(np.full(500, 3600), np.arange(500)) == []


def test_no_waits_are_one_cluster() -> None:
    assert cut(np.array([], np.int64), np.array([], np.int64)) == []


@pytest.mark.parametrize(("low", "high", "expected"), [(59, 59, [1]), (58, 60, []), (60, 58, []), (1, 0, [])])
def test_too_few_waits_are_one_cluster(low: int, high: int, expected: list[int]) -> None:
    values = np.repeat([1, 2], [low, high])
    assert cut(values, np.where(values == 1, 10, 100_000)) == expected


def test_few_waits_at_the_ends_join_the_next_values() -> None:
    values = np.repeat([1, 2, 3, 4, 5], [10, 49, 1, 58, 1])
    start = initial(values, np.zeros(len(values), np.int64), offset=1.0, minimum_end=59)
    assert start.ends.tolist() == [2, 3, 5]
    assert start.counts.tolist() == [59, 1, 59]


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_zeros_alone_are_one_cluster(offset: float) -> None:
    assert cut(np.arange(300) % 3, np.zeros(300, np.int64), offset=offset) == []


def test_zeros_stand_apart_without_an_offset() -> None:
    values = np.repeat([1, 2, 3, 4], 60)
    waits = np.repeat([0, 0, 1, 1], 60)
    assert cut(values, waits, offset=0.0) == [2]
    start = clusterings(initial(values, waits, offset=0.0, minimum_end=0), least=1, most=15)[-1]
    assert math.isfinite(start.log_likelihood)
    assert merge_deltas(start)[0] == pytest.approx(0.0, abs=1e-6)
    assert merge_deltas(start)[1] < -1000


def test_of_equal_pairs_the_lowest_is_merged() -> None:
    assert merge_order(np.full(4, 2), np.full(4, 8.0)).tolist() == [0, 1, 2]
    assert merge_order(np.full(4, 1), np.array([2.0, 8.0, 2.0, 8.0])).tolist()[0] == 0


def test_of_equal_criteria_the_fewest_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = np.repeat([1, 2, 3], 60), np.repeat([1, 100, 1], 60)
    assert cut(*jobs) == [1, 2]
    monkeypatch.setattr(Clusters, "bic", 0.0)
    assert cut(*jobs) == []
