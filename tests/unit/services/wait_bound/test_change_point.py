"""Change points against a plain twin, and autocorrelation against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound.groups.change_point import (
    EVERY,
    LEVELS,
    RUNS,
    WINDOW,
    autocorrelation,
    logarithms,
    misses_that_count,
    replay,
)
from shadowtime.services.wait_bound.groups.change_point_table import THRESHOLDS
from shadowtime.services.wait_bound.groups.group_bound import ranks
from shadowtime.shared.kernels.arrays import Integers
from shadowtime.testing.examples import examples

KEEP = 59


def twin(waits: list[int], keep: int = KEEP) -> tuple[int, int, int, int]:
    """Return what `replay` should, with a sorted list made anew for each wait."""
    history = list[int]()
    first, misses, limit, since = 0, 0, int(RUNS[0]), 0
    for position, wait in enumerate(waits):
        rank = int(ranks(1000)[len(history)])
        miss = rank > 0 and wait > sorted(history)[rank - 1]
        history.append(wait)
        since += 1
        if since == EVERY:
            limit, since = misses_that_count(logarithms(np.array(history[-WINDOW:])), LEVELS, RUNS), 0
        misses = misses + 1 if miss else 0
        if misses >= limit:
            history = history[-keep:]
            first, misses = position + 1 - len(history), 0
    return first, misses, limit, since


def made(seed: int, count: int) -> Integers:
    """Return waits whose level, spread and correlation shift now and then."""
    chance = Generator(PCG64([seed]))
    value, waits = 0.0, []
    level, spread, kept = chance.normal(4, 2), chance.exponential(1.5), chance.choice([0.0, 0.5, 0.95])
    for _ in range(count):
        if chance.random() < 0.01:
            level, spread, kept = chance.normal(4, 2), chance.exponential(1.5), chance.choice([0.0, 0.5, 0.95])
        value = kept * value + chance.normal()
        waits.append(int(np.expm1(np.clip(level + spread * value, 0, 20))))
    return np.array(waits, dtype=np.int64)


@pytest.mark.parametrize("seed", range(12))
def test_replay(seed: int) -> None:
    waits = made(seed, 700)
    assert replay(waits, ranks(1000), KEEP, LEVELS, RUNS) == twin(waits.tolist())


def test_some_of_these_change() -> None:
    firsts = [replay(made(seed, 700), ranks(1000), KEEP, LEVELS, RUNS)[0] for seed in range(12)]
    assert 0 < sum(first > 0 for first in firsts) < 12


@given(st.lists(st.sampled_from([0, 0, 0, 1, 60, 3600, 86_400]), max_size=200), st.integers(1, 100))
@examples(60)
def test_replay_of_ties(waits: list[int], keep: int) -> None:
    assert replay(np.array(waits, dtype=np.int64), ranks(1000), keep, LEVELS, RUNS) == twin(waits, keep)


def test_three_misses_after_a_hundred_hits() -> None:
    waits = np.array([10, 20] * 50 + [500, 600, 700], dtype=np.int64)
    one_more = np.append(waits[:-1], 10)
    # Waits that alternate are correlated negatively: three misses count.
    assert replay(waits, ranks(1000), KEEP, LEVELS, RUNS) == (103 - KEEP, 0, 3, 3)
    assert replay(waits[:-1], ranks(1000), KEEP, LEVELS, RUNS) == (0, 2, 3, 2)
    assert replay(one_more, ranks(1000), KEEP, LEVELS, RUNS) == (0, 0, 3, 3)


@pytest.mark.parametrize("count", [0, 1, 2, 58])
def test_too_few_waits_have_no_bound_to_miss(count: int) -> None:
    waits = np.arange(count, dtype=np.int64) ** 2
    assert replay(waits, ranks(1000), KEEP, LEVELS, RUNS)[:2] == (0, 0)


def test_replay_leaves_its_input_alone() -> None:
    waits = made(1, 300)
    before = waits.copy()
    replay(waits, ranks(1000), KEEP, LEVELS, RUNS)
    assert waits.tolist() == before.tolist()


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=100))
def test_autocorrelation(waits: list[int]) -> None:
    logs = np.log1p(np.array(waits, dtype=np.float64))
    logs -= logs.mean()
    total = np.dot(logs, logs)
    expected = np.dot(logs[1:], logs[:-1]) / total if total > 1e-12 else 0.0
    found = autocorrelation(logarithms(np.array(waits, dtype=np.int64)))
    assert found == pytest.approx(expected, abs=1e-9)
    assert -1 <= found <= 1


@pytest.mark.parametrize("planted", [0.0, 0.4, 0.8, 0.95])
def test_a_planted_autocorrelation_is_found(planted: float) -> None:
    noise = Generator(PCG64([5])).standard_normal(20_000)
    value, values = 0.0, []
    for each in noise.tolist():
        value = planted * value + (1 - planted**2) ** 0.5 * each
        values.append(value)
    waits = np.expm1(8 + np.array(values)).astype(np.int64)
    assert autocorrelation(logarithms(waits)) == pytest.approx(planted, abs=0.03)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=100))
def test_as_many_misses_as_the_nearest_of_the_table(waits: list[int]) -> None:
    series = np.array(waits, dtype=np.int64)
    found = autocorrelation(logarithms(series))
    expected = THRESHOLDS[min(THRESHOLDS, key=lambda level: abs(level - found))]
    assert misses_that_count(logarithms(series), LEVELS, RUNS) == expected


def test_waits_that_are_all_alike_are_not_correlated() -> None:
    for wait in (0, 1, 86_400):
        assert autocorrelation(logarithms(np.full(500, wait))) == 0.0
        assert misses_that_count(logarithms(np.full(500, wait)), LEVELS, RUNS) == 3
