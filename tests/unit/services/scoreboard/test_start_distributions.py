"""Scores of distributions of starts, against their definitions and over a snapshot."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scoreboard.scores.event_probabilities import SaidProbabilities
from shadowtime.services.scoreboard.scores.start_distributions import StartDistributions, crps, rank_of, share_within
from shadowtime.shared.distributions.mass_points import point_masses
from shadowtime.shared.messages.predictions import WaitForecast

TABLES = st.lists(st.tuples(st.floats(0.01, 0.99), st.integers(0, 10**6)), min_size=1, max_size=16)


@given(TABLES, st.integers(0, 10**6))
def test_crps_is_its_definition(table: list[tuple[float, int]], wait: int) -> None:
    masses = point_masses(table)
    assert sum(mass for mass, _ in masses) == pytest.approx(1)
    near = sum(mass * abs(seconds - wait) for mass, seconds in masses)
    spread = sum(mass * other * abs(seconds - apart) for mass, seconds in masses for other, apart in masses)
    assert crps(masses, wait) == pytest.approx(near - spread / 2, abs=1e-3)


@given(TABLES, st.integers(0, 10**6))
def test_a_rank_is_shared_out_between_intervals_that_adjoin(table: list[tuple[float, int]], wait: int) -> None:
    begin, end = rank = rank_of(point_masses(table), wait)
    assert -1e-9 <= begin <= end <= 1 + 1e-9
    if end - begin > 1e-6:
        assert sum(share_within(rank, low / 10, (low + 1) / 10) for low in range(10)) == pytest.approx(1)


def test_a_job_that_surely_starts_at_once_counts_with_its_share() -> None:
    starts = StartDistributions()
    for number in range(10):
        table = tuple((level, 0) for level in (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975))
        starts.submit(number, WaitForecast(wait=0, starts_within=table), ())
        starts.reveal(number, 0)
    sampled, point, bounds = starts.scores() or ()
    assert [each.covered for each in sampled.intervals] == [1, 1, 1]
    assert [each.covered_by_chance for each in sampled.intervals] == pytest.approx([0.5, 0.8, 0.95])
    assert sampled.within is not None
    assert sampled.within.said == 10
    assert sampled.within.mean_probability == pytest.approx(0.975)
    assert (sampled.crps, point.crps, bounds.without) == (0, 0, 10)


def test_nothing_is_scored_where_no_quantiles_are_asked_for() -> None:
    starts = StartDistributions()
    starts.submit(1, WaitForecast(wait=9), ())
    starts.submit(2, None, ())
    starts.reveal(1, 9)
    assert starts.scores() is None


def test_a_snapshot_goes_on_as_if_never_interrupted() -> None:
    one, other = StartDistributions(), StartDistributions()
    for number in range(20):
        table = ((0.1, number), (0.25, 2 * number), (0.75, 5 * number), (0.9, 9 * number))
        one.submit(number, WaitForecast(wait=number, starts_within=table), ())
        if number % 2:
            one.reveal(number, 3 * number)
    other.restore(orjson.loads(orjson.dumps(one.snapshot())))
    for each in (one, other):
        for number in range(0, 20, 4):
            each.reveal(number, 4 * number)
        each.withdraw(2)
    assert one.scores() == other.scores()
    assert one.snapshot() == other.snapshot()


def test_probabilities_by_tenths() -> None:
    said = SaidProbabilities()
    for came in (True, False):
        said.add(0.05, came=came)
        said.add(1.0, came=came)
    scores = said.scores()
    assert scores is not None
    assert [(each.from_probability, each.said, each.came_share) for each in scores.bins] == [(0, 2, 0.5), (0.9, 2, 0.5)]
    assert scores.calibration_error == pytest.approx((0.45 + 0.5) / 2)
    assert SaidProbabilities().scores() is None
