"""The intervals of the report hold what they promise, where neighbours are alike too."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.statistics.bootstrap import BLOCKS, MIN_BLOCKS, Interval, mean_over_time, ratio_over_time

DAYS = 365

Series = Callable[[np.random.Generator], tuple[Floats, Floats]]
"""Returns the sums of each day, and the number of its jobs; the sums divided by the jobs have mean 0."""


def alike(chance: np.random.Generator, count: int, rho: float) -> Floats:
    """Return values with mean 0 and variance 1, each much like the one before."""
    draws = chance.normal(size=count) * np.sqrt(1 - rho**2)
    values = np.empty(count)
    values[0] = draws[0] / np.sqrt(1 - rho**2)
    for place in range(1, count):
        values[place] = rho * values[place - 1] + draws[place]
    return values


def autoregressive(rho: float) -> Series:
    return lambda chance: (alike(chance, DAYS, rho), np.ones(DAYS))


def heavy_tailed(chance: np.random.Generator) -> tuple[Floats, Floats]:
    """Waits of jobs whose days differ: log-normal with sigma 1.5."""
    jobs = chance.poisson(30, DAYS).astype(np.float64)
    waits = np.exp(1.5 * alike(chance, DAYS, 0.5)) - np.exp(1.5**2 / 2)
    return waits * jobs, jobs


def of_two_policies(chance: np.random.Generator) -> tuple[Floats, Floats]:
    """Differences of daily means of the same jobs: large on days of a long queue, in either direction."""
    jobs = 30 * np.exp(0.6 * alike(chance, DAYS, 0.3))
    return np.exp(1.2 * alike(chance, DAYS, 0.7)) * chance.normal(size=DAYS) * jobs, jobs


SERIES: dict[str, Series] = {
    "independent": autoregressive(0.0),
    "rho 0.5": autoregressive(0.5),
    "rho 0.8": autoregressive(0.8),
    "heavy-tailed waits": heavy_tailed,
    "differences of two policies": of_two_policies,
}


def test_there_is_no_interval_if_nearly_all_lies_in_one_block() -> None:
    """An interval of the twin was -919172 to 920187 %."""
    sums = np.concatenate((np.full(90, 1.0), np.full(10, 1e6))) + np.arange(100) * 1e-4
    found = ratio_over_time(sums, np.ones(100), np.arange(100), key=7)
    assert (found.low, found.high) == (None, None)
    assert found.mean == pytest.approx(sums.mean())


@pytest.mark.parametrize("kind", SERIES)
def test_95_of_100_intervals_hold_the_mean(kind: str) -> None:
    held = 0
    for seed in range(100):
        sums, jobs = SERIES[kind](np.random.default_rng(seed))
        found = ratio_over_time(sums, jobs, np.arange(DAYS), key=seed)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    assert 90 <= held <= 98


def test_an_interval_is_that_of_all_draws_of_five_blocks() -> None:
    sums, counts = np.array([3.0, 8.0, 1.0, 9.0, 4.0]), np.array([2.0, 1.0, 1.0, 3.0, 2.0])
    mean = sums.sum() / counts.sum()

    def ratio_and_error(drawn: tuple[int, ...]) -> tuple[float, float]:
        over, under = sums[list(drawn)], counts[list(drawn)]
        ratio = over.sum() / under.sum()
        return ratio, float(np.sqrt(5 * np.var(over - ratio * under, ddof=1)) / under.sum())

    draws = [ratio_and_error(drawn) for drawn in product(range(5), repeat=5)]
    off = sorted(abs(ratio - mean) / error if error > 1e-12 else np.inf for ratio, error in draws)
    reach = off[int(0.95 * len(off))] * ratio_and_error((0, 1, 2, 3, 4))[1]
    found = ratio_over_time(sums, counts, np.arange(5), key=7)
    assert found == pytest.approx((mean, mean - reach, mean + reach), rel=0.05)
    at_90 = off[int(0.9 * len(off))] * ratio_and_error((0, 1, 2, 3, 4))[1]
    assert at_90 < 0.8 * reach  # an interval of 90 % is another one


def test_an_interval_of_single_jobs_would_not_hold_the_mean() -> None:
    held_alone = 0
    for seed in range(100):
        values, _ = autoregressive(0.8)(np.random.default_rng(seed))
        held_alone += abs(values.mean()) <= 1.96 * values.std() / np.sqrt(DAYS)
    assert held_alone <= 60


def test_the_same_key_gives_the_same_interval() -> None:
    values, times = alike(np.random.default_rng(1), DAYS, 0.8), np.arange(DAYS)
    assert mean_over_time(values, times, key=3) == mean_over_time(values, times, key=3)
    assert mean_over_time(values, times, key=3) != mean_over_time(values, times, key=4)


def test_blocks_are_tenths_of_the_time() -> None:
    times = np.arange(1_000, 2_000)
    by_block: Floats = (np.repeat(np.arange(BLOCKS), 100) % 2).astype(np.float64)
    assert mean_over_time(by_block, times, key=1) == mean_over_time(by_block[::100], times[::100], key=1)


def test_what_is_the_same_in_every_block_is_sure() -> None:
    values = np.tile([0.1, 0.7], 500)
    assert mean_over_time(values, np.arange(1_000), key=1) == pytest.approx((0.4, 0.4, 0.4))


def test_too_few_blocks_have_no_interval() -> None:
    values, times = np.arange(MIN_BLOCKS, dtype=np.float64), np.arange(MIN_BLOCKS)
    assert mean_over_time(values[:-1], times[:-1], key=1) == (1.5, None, None)
    assert mean_over_time(values, times, key=1).low is not None


def test_a_single_block_that_differs_has_no_interval() -> None:
    values = np.where(np.arange(100) < BLOCKS, 1.0, 0.0)  # a third of the draws are without it
    assert mean_over_time(values, np.arange(100), key=1) == Interval(0.1, None, None)
