"""Accuracy of requests: the four classes, the median and its resolution."""

from math import exp
from statistics import geometric_mean, median_low

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scoreboard.scores.request_accuracy import STEPS, WalltimeAccuracy
from shadowtime.shared.messages.predictions import accuracy, adjustment_class
from shadowtime.shared.statistics.slowdown import bounded_slowdown, unclamped_slowdown
from tests.support.plain_formulas import geometric_term

SECONDS = st.integers(1, 200_000)


@given(SECONDS, SECONDS)
def test_accuracy_is_a_share_and_the_same_both_ways(run_time: int, estimate: int) -> None:
    assert 0 < accuracy(run_time, estimate) <= 1
    assert accuracy(run_time, estimate) == accuracy(estimate, run_time)
    assert accuracy(run_time, run_time) == 1


def test_a_job_of_no_time_at_all_has_no_accuracy() -> None:
    assert accuracy(0, 60) == 0


@pytest.mark.parametrize(
    ("run_time", "adjusted_time", "expected"),
    [
        (3600, 7200, "none"),
        (9000, 7200, "none"),  # also when it ran beyond its request
        (3600, 3600, "over"),
        (3599, 3600, "over"),
        (3601, 3600, "under"),
        (3600 + 1799, 3600, "under"),
        (3600 + 1800, 3600, "bad"),
        (3600 + 1801, 3600, "bad"),
        (3600, 9000, "over"),
    ],
)
def test_classes(run_time: int, adjusted_time: int, expected: str) -> None:
    assert adjustment_class(run_time, 7200, adjusted_time) == expected


@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=1, max_size=30))
def test_the_median_is_within_half_a_step(jobs: list[tuple[int, int, int]]) -> None:
    running = WalltimeAccuracy()
    for job in jobs:
        running.add(*job)
    exact = median_low(accuracy(run_time, adjusted) for run_time, _, adjusted in jobs)
    assert running.scores().median_accuracy == pytest.approx(exact, abs=0.5 / STEPS + 1e-12)


@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS)), st.lists(st.tuples(SECONDS, SECONDS, SECONDS)))
def test_restored_sums_go_on(before: list[tuple[int, int, int]], after: list[tuple[int, int, int]]) -> None:
    running, again = WalltimeAccuracy(), WalltimeAccuracy()
    for job in before:
        running.add(*job)
    snapshot = running.snapshot()
    again.restore(orjson.loads(orjson.dumps(snapshot)))
    for job in after:
        running.add(*job)
        again.add(*job)
    assert again.scores() == running.scores()
    assert again.snapshot() == running.snapshot()


def test_memory_is_bounded_by_the_steps() -> None:
    running = WalltimeAccuracy()
    for run_time in range(1, 40_000):
        running.add(run_time, 40_000, 39_999)
    assert len(running.steps) <= STEPS + 1


@given(st.lists(st.integers(0, 100_000), min_size=1))
def test_the_geometric_mean_counts_at_least_ten_seconds(waits: list[int]) -> None:
    got = exp(sum(map(geometric_term, waits)) / len(waits))
    assert got == pytest.approx(geometric_mean([max(wait, 10) for wait in waits]))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_slowdown_is_the_plain_one_for_longer_jobs(wait: int, run_time: int) -> None:
    slowdown = unclamped_slowdown(wait, run_time)
    assert bounded_slowdown(wait, run_time) == max(slowdown, 1)
    if run_time >= 10:
        assert slowdown == pytest.approx(1 + wait / run_time)
    else:
        assert slowdown == (wait + run_time) / 10
