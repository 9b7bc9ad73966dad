"""Ranks against the definition, by scipy's binomial distribution."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy.stats import binom

from shadowtime.services.wait_bound.binomial_ranks import (
    BLOCK,
    covering_ranks,
    lower_rank,
    minimum_history,
    rank_block,
    upper_rank,
    upper_ranks,
)
from shadowtime.testing.examples import examples
from tests.support.plain_formulas import two_sided_ranks

COUNTS = st.integers(0, 3000)
QUANTILES = st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999]) | st.floats(0.01, 0.999)
CONFIDENCES = st.sampled_from([0.01, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999]) | st.floats(0.01, 0.999)


def upper_by_definition(count: int, quantile: float, confidence: float) -> int | None:
    """Return the least rank r with P(Bin(count, quantile) <= r - 1) at least the confidence."""
    enough = binom.cdf(np.arange(count), count, quantile) >= confidence
    return int(enough.argmax()) + 1 if enough.any() else None


def is_close(count: int, quantile: float, confidence: float) -> bool:
    """Return whether rounding decides: two ways of summing may then differ."""
    return bool(np.any(np.abs(binom.cdf(np.arange(count), count, quantile) - confidence) < 1e-9))


@given(COUNTS, QUANTILES, CONFIDENCES)
@examples(300)
def test_upper_rank(count: int, quantile: float, confidence: float) -> None:
    if not is_close(count, quantile, confidence):
        assert upper_rank(count, quantile, confidence) == upper_by_definition(count, quantile, confidence)


@given(st.integers(0, 800), QUANTILES, CONFIDENCES)
@examples(100)
def test_ranks_of_a_block_are_those_of_each_count_alone(block: int, quantile: float, confidence: float) -> None:
    counts = range(BLOCK * block, BLOCK * (block + 1))
    alone = [int(covering_ranks(count, 1, quantile, confidence)[0]) for count in counts]
    enough = [rank if rank <= count else None for count, rank in zip(counts, alone, strict=True)]
    assert rank_block(block, quantile, confidence) == enough


@given(COUNTS, st.lists(QUANTILES, min_size=1, max_size=5).map(tuple), CONFIDENCES)
@examples(50)
def test_ranks_of_several_quantiles(count: int, quantiles: tuple[float, ...], confidence: float) -> None:
    expected = tuple(upper_rank(count, quantile, confidence) for quantile in quantiles)
    assert upper_ranks(count, quantiles, confidence) == expected


@pytest.mark.parametrize("count", [1, 7, 59, 1001, 30_001, 200_001])
def test_what_is_as_probable_as_asked_is_enough(count: int) -> None:
    """Of an odd number of waits, no more than half lie below the median with exactly one half."""
    assert upper_rank(count, 0.5, 0.5) == (count + 1) // 2


@pytest.mark.parametrize("quantile", [1e-6, 1 - 1e-6])
@pytest.mark.parametrize("confidence", [1e-9, 1 - 1e-9])
def test_of_a_million_waits(quantile: float, confidence: float) -> None:
    assert upper_rank(1_000_000, quantile, confidence) == upper_by_definition(1_000_000, quantile, confidence)


@given(COUNTS, QUANTILES, CONFIDENCES)
@examples(200)
def test_lower_rank(count: int, quantile: float, confidence: float) -> None:
    """It is the largest r of which at least so surely r or more lie at or below the quantile."""
    quantile = round(quantile, 6)
    if is_close(count, 1 - quantile, confidence):
        return
    enough = binom.sf(np.arange(count), count, quantile) >= confidence  # of ranks 1, 2, …: P(r or more below)
    expected = int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else None
    assert lower_rank(count, quantile, confidence) == expected


@given(COUNTS, QUANTILES, CONFIDENCES)
@examples(200)
def test_two_sides_share_the_doubt(count: int, quantile: float, confidence: float) -> None:
    lower, upper = two_sided_ranks(count, quantile, confidence)
    assert lower == lower_rank(count, quantile, (1 + confidence) / 2)
    assert upper == upper_rank(count, quantile, (1 + confidence) / 2)
    if lower is not None and upper is not None:
        assert 1 <= lower < upper <= count
        between = binom.cdf(upper - 1, count, quantile) - binom.cdf(lower - 1, count, quantile)
        assert between >= confidence - 1e-9


@given(QUANTILES, CONFIDENCES)
@examples(300)
def test_fewest_waits(quantile: float, confidence: float) -> None:
    least = minimum_history(quantile, confidence)
    assert 1 - quantile**least >= confidence
    assert least == 1 or 1 - quantile ** (least - 1) < confidence
    assert upper_rank(least - 1, quantile, confidence) is None
    assert upper_rank(least, quantile, confidence) is not None


@pytest.mark.parametrize(("quantile", "confidence", "least"), [(0.5, 0.75, 2), (0.5, 0.875, 3), (0.5, 0.5, 1)])
def test_a_confidence_that_is_met_exactly_is_met(quantile: float, confidence: float, least: int) -> None:
    assert minimum_history(quantile, confidence) == least
    assert upper_rank(least, quantile, confidence) == least


def test_more_is_bounded_by_more() -> None:
    ranks = [upper_rank(count, 0.95, 0.95) for count in range(59, 20_001)]
    steps = {after - before for before, after in pairwise(ranks) if before and after}
    assert None not in ranks
    assert steps == {0, 1}
    by_quantile = [upper_rank(1000, quantile, 0.95) or 0 for quantile in (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)]
    assert by_quantile == sorted(by_quantile)
    by_confidence = [upper_rank(1000, 0.95, confidence) or 0 for confidence in (0.05, 0.5, 0.8, 0.95, 0.99)]
    assert by_confidence == sorted(by_confidence)


@pytest.mark.parametrize(("quantile", "count"), [(0.95, 59), (0.95, 200), (0.5, 5), (0.5, 31), (0.99, 299), (0.05, 9)])
def test_bounds_hold_as_often_as_they_say(quantile: float, count: int) -> None:
    trials = 4000
    uniform = np.sort(Generator(PCG64([count])).random((trials, count)), axis=1)
    upper = upper_rank(count, quantile, 0.95)
    assert upper is not None
    noise = 4 * math.sqrt(0.95 * 0.05 / trials)
    assert np.mean(uniform[:, upper - 1] >= quantile) >= 0.95 - noise
    if upper > 1:
        assert np.mean(uniform[:, upper - 2] >= quantile) < 0.95 + noise, "a smaller one would do"


@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 2.0**-53, 1 - 40 * 2.0**-53, 5e-324])
@pytest.mark.parametrize("bits", [1, 8, 20, 29, 44, 51])
def test_finding_11_the_fewest_waits_are_found_however_near_to_1_the_quantile_is(bits: int, confidence: float) -> None:
    """It went on one by one for ever, where rounding kept the power from falling."""
    need = minimum_history(1 - 2.0**-bits, confidence)
    assert need >= 1
    assert minimum_history(1 - 2.0 ** -(bits + 1), confidence) >= need
