"""The intervals of the report hold what they promise, where neighbours are alike too."""

import numpy as np

from shadowtime.replayer.block_bootstrap import MIN_BLOCKS, WEEK, block_length, mean_of_blocks
from shadowtime.shared.arrays import Floats

JOBS = 2_000
SPAN = 40 * WEEK


def alike(seed: int, how: float = 0.9) -> Floats:
    """Return values with mean 0, each much like the one before."""
    draws = np.random.default_rng(seed).normal(size=JOBS)
    values = np.empty(JOBS)
    values[0] = draws[0] / np.sqrt(1 - how**2)
    for place in range(1, JOBS):
        values[place] = how * values[place - 1] + draws[place]
    return values


def test_it_covers_the_mean_where_one_job_at_a_time_would_not() -> None:
    times = np.linspace(0, SPAN, JOBS).astype(np.int64)
    held, held_alone = 0, 0
    for seed in range(100):
        values = alike(seed)
        found = mean_of_blocks(values, times, key=seed)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
        half = 1.96 * values.std() / np.sqrt(JOBS)
        held_alone += abs(values.mean()) <= half
    assert held >= 80  # what hangs together over some 20 jobs mostly lies within a block of 50
    assert held_alone <= 40


def test_the_same_key_gives_the_same_interval() -> None:
    values, times = alike(1), np.linspace(0, SPAN, JOBS).astype(np.int64)
    assert mean_of_blocks(values, times, key=3) == mean_of_blocks(values, times, key=3)
    assert mean_of_blocks(values, times, key=3) != mean_of_blocks(values, times, key=4)


def test_blocks_are_weeks_unless_the_log_is_short() -> None:
    assert block_length(np.array([5, SPAN])) == WEEK
    short = np.arange(0, 3 * WEEK, 60)
    assert len(np.unique((short - short[0]) // block_length(short))) == MIN_BLOCKS


def test_too_few_blocks_have_no_interval() -> None:
    found = mean_of_blocks(np.array([1.0, 3.0]), np.array([0, 10]), key=1)
    assert found == (2.0, None, None)
