"""Worked examples of the binomial bound on waits."""

import math

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.stats import binom

from shadowtime.services.wait_bound.binomial_ranks import lower_rank, minimum_history, upper_rank
from shadowtime.services.wait_bound.groups.group_bound import WaitGroup, borrowed, bound
from tests.conformance.vectors.vector import vector


def more_than(k: int, n: int, quantile: float) -> float:
    """Return equation 1 of Brevik 2006: the probability that more than `k` of `n` observations exceed the quantile."""
    return float(binom.sf(k, n, 1 - quantile))


def group_of(waits: list[int]) -> WaitGroup:
    group = WaitGroup(most=1000, keep=59)
    for wait in waits:
        assert group.add(wait, bound=None) == 0
    return group


def test_fewest_waits() -> None:
    example = vector("p2_min_history")
    for row in example["table"]:
        assert minimum_history(row["q"], row["C"]) == row["n_min"], row
    for power, value in zip((59, 58), example["check_59"].values(), strict=True):
        assert 0.95**power == pytest.approx(value, abs=1e-8)
    assert 1 - 0.95**59 >= 0.95 > 1 - 0.95**58


def test_ranks() -> None:
    example = vector("p2_binomial_index_q95_C95")
    for row in example["table"]:
        count, rank = row["n"], row["ascending_rank"]
        assert upper_rank(count, 0.95, 0.95) == rank
        # Brevik 2006 also has an approximation for long histories; it is never further off than one.
        assert 0.95 * count + 1.645 * math.sqrt(count * 0.95 * 0.05) == pytest.approx(
            row["asc_rank_float_approx"], abs=0.01
        )
        if rank is not None:
            assert (row["k_exceed"], row["rank_from_top"]) == (count - rank, count - rank + 1)
            assert more_than(count - rank, count, 0.95) >= 0.95 > more_than(count - rank + 1, count, 0.95)


def test_the_smallest_k_of_the_paper_is_always_none() -> None:
    """Equation 1 falls in k; therefore the largest is meant, and the smallest would be the longest wait always."""
    literal = vector("p2_binomial_index_q95_C95")["literal_eq1_smallest_k"]
    smallest = next(k for k in range(1000) if more_than(k, 1000, 0.95) > 0.95)
    assert smallest == literal["n=1000"]
    assert more_than(smallest, 1000, 0.95) == pytest.approx(literal["value"])
    rank = upper_rank(1000, 0.95, 0.95)
    assert rank is not None
    assert 1000 - smallest == 1000 > rank


def test_bounds() -> None:
    example = vector("p2_bound_example")
    waits = list(range(10, 1001, 10))
    groups = [group_of(waits)]
    assert bound(groups, 0, example["q"], example["C"]) == (example["bound"], 100)
    assert bound(groups, 0, 0.5, 0.95) == (example["median_bound_q50"], 100)
    lower = lower_rank(100, 0.05, 0.95)
    assert lower is not None
    assert waits[lower - 1] == example["lower_5pct_bound_q05"]


def test_coverage_by_monte_carlo() -> None:
    """The bound reaches the true quantile as often as the binomial distribution says."""
    example = vector("p2_mc_coverage")
    count, trials = example["n"], 4000
    rank = upper_rank(count, 0.95, 0.95)
    assert rank is not None
    theory = float(binom.cdf(rank - 1, count, 0.95))
    assert theory == pytest.approx(example["theory"], abs=1e-6)
    waits = Generator(PCG64([7, count])).lognormal(5, 2, (trials, count))
    bounds = np.partition(waits, rank - 1, axis=1)[:, rank - 1]
    found = float(np.mean(bounds >= math.exp(5 + 2 * 1.6448536269514722)))
    assert found == pytest.approx(theory, abs=4 * math.sqrt(theory * (1 - theory) / trials))
    of_example = 4 * math.sqrt(theory * (1 - theory) / example["trials"])
    assert example["P_bound_ge_true_q95"] == pytest.approx(theory, abs=of_example)


def test_histories_are_borrowed_whole() -> None:
    example = vector("p2_history_borrowing")
    groups = [group_of([cluster["i"]] * cluster["n"]) for cluster in example["clusters"]]
    for at in range(len(groups)):
        histories = borrowed(groups, at, example["need"])
        expected = example[f"history_for_{at}"]
        assert [groups.index(next(each for each in groups if each.history is used)) for used in histories] == expected
        assert sum(map(len, histories)) == example[f"n{at}"]
        assert bound(groups, at, 0.95, 0.95)[1] == example[f"n{at}"]
