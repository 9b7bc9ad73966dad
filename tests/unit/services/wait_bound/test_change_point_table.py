"""The committed table is what the Monte Carlo finds."""

from collections import Counter

import pytest

from shadowtime.services.wait_bound.groups.change_point_table import (
    OBSERVATIONS,
    THRESHOLDS,
    rare_run,
    run_lengths,
)


def test_more_autocorrelation_never_needs_fewer_misses() -> None:
    assert list(THRESHOLDS) == sorted(THRESHOLDS)
    assert list(THRESHOLDS.values()) == sorted(THRESHOLDS.values())


def test_runs_are_rare_from_the_length_on_which_few_enough_reach() -> None:
    # 1.05 in 8000 of 80,000 observations are 10.5 runs.
    assert rare_run(Counter({1: 100, 3: 6, 7: 4}), 80_000) == 2
    assert rare_run(Counter({1: 100, 3: 6, 7: 5}), 80_000) == 4
    assert rare_run(Counter(), 80_000) == 1


def test_runs_without_correlation_are_geometric() -> None:
    runs = run_lengths(0.0, 200_000)
    assert sum(length * number for length, number in runs.items()) / 200_000 == pytest.approx(0.05, rel=0.04)
    assert runs[1] / runs.total() == pytest.approx(0.95, abs=0.01)


def test_same_seed_same_runs() -> None:
    assert run_lengths(0.5, 20_000) == run_lengths(0.5, 20_000) != run_lengths(0.4, 20_000)


def test_odd_numbers_of_observations_are_drawn_whole() -> None:
    fewer, more = (run_lengths(0.9, count) for count in (100_000, 150_001))
    assert sum(length * number for length, number in fewer.items()) < sum(
        length * number for length, number in more.items()
    )


@pytest.mark.parametrize("autocorrelation", [0.2, 0.4, 0.9])
def test_the_table_in_the_small(autocorrelation: float) -> None:
    assert rare_run(run_lengths(autocorrelation, 400_000), 400_000) == THRESHOLDS[autocorrelation]


@pytest.mark.archive
def test_the_table() -> None:
    assert {key: rare_run(run_lengths(key, OBSERVATIONS), OBSERVATIONS) for key in THRESHOLDS} == THRESHOLDS
