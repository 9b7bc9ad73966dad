"""A distribution that is told how often jobs end by their adjusted requests."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.tables.enqueue import reweighted
from shadowtime.services.scheduler.tables.job_table import NEVER
from shadowtime.shared.distributions.histogram import EDGES, bin_of
from shadowtime.shared.messages.predictions import WalltimeAdjustment

MASSES = st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.25, 1.0]), max_size=25).map(
    lambda masses: tuple(mass / sum(masses) for mass in masses) if any(masses) else ()
)
ADJUSTED = st.tuples(st.integers(1, 500_000), st.integers(1, 500_000)).map(lambda drawn: (drawn[0], sum(drawn)))
"""Adjusted and requested time."""


def adjustment(adjusted_time: int, percentile: int | None) -> WalltimeAdjustment:
    return WalltimeAdjustment(adjusted_time=adjusted_time, observations=12, percentile=percentile)


def twin(histogram: tuple[float, ...], adjusted: int, requested: int, probability: float) -> dict[int, float]:
    """Return the new mass of each bin that has any."""
    below: dict[int, float] = {}
    above: dict[int, float] = {}
    for j, mass in enumerate(histogram):
        low, high = EDGES[j], EDGES[j + 1]
        if high <= adjusted:
            share = 1.0
        elif low >= adjusted:
            share = 0.0
        else:
            share = math.log(adjusted / low) / math.log(high / low)
        if mass * share > 0:
            below[j] = mass * share
        if mass * (1 - share) > 0:
            above[j] = mass * (1 - share)
    if histogram and sum(below.values()) >= probability:
        return {j: mass for j, mass in enumerate(histogram) if mass}
    below = below or {bin_of(adjusted): 1.0}
    above = above or {bin_of(requested): 1.0}
    scaled = [
        {j: mass * part / sum(side.values()) for j, mass in side.items()}
        for side, part in ((below, probability), (above, 1 - probability))
    ]
    return {j: scaled[0].get(j, 0.0) + scaled[1].get(j, 0.0) for j in below | above}


@given(histogram=MASSES, times=ADJUSTED, percentile=st.integers(1, 100))
def test_is_its_plain_twin(histogram: tuple[float, ...], times: tuple[int, int], percentile: int) -> None:
    adjusted, requested = times
    masses = reweighted(histogram, requested, adjustment(adjusted, percentile))
    expected = twin(histogram, adjusted, requested, percentile / 100)
    assert dict(enumerate(masses)) == pytest.approx({j: expected.get(j, 0.0) for j in range(len(masses))}, abs=1e-9)
    assert sum(masses) == pytest.approx(1)
    assert min(masses) >= 0
    assert masses is histogram or masses[-1] > 0


@given(histogram=MASSES, times=ADJUSTED, percentile=st.integers(1, 100))
def test_the_percentile_is_reached_within_the_bin_of_the_adjusted_request(
    histogram: tuple[float, ...], times: tuple[int, int], percentile: int
) -> None:
    adjusted, requested = times
    masses, at = reweighted(histogram, requested, adjustment(adjusted, percentile)), bin_of(adjusted)
    assert masses is histogram or sum(masses[:at]) <= percentile / 100 + 1e-9
    assert sum(masses[: at + 1]) >= percentile / 100 - 1e-9


@given(times=ADJUSTED, percentile=st.integers(1, 99))
def test_without_a_histogram_there_are_two_bins(times: tuple[int, int], percentile: int) -> None:
    adjusted, requested = times
    masses = reweighted((), requested, adjustment(adjusted, percentile))
    first, second = bin_of(adjusted), bin_of(requested)
    assert {j for j, mass in enumerate(masses) if mass} == {first, second}
    assert masses[first] == pytest.approx(1 if first == second else percentile / 100)


@given(histogram=MASSES, requested=st.integers(1, 500_000) | st.just(NEVER))
def test_what_adjusts_nothing_changes_nothing(histogram: tuple[float, ...], requested: int) -> None:
    assert reweighted(histogram, requested, None) is histogram
    if requested < NEVER:
        assert reweighted(histogram, requested, adjustment(requested, 85)) is histogram
    assert reweighted(histogram, requested, adjustment(min(requested, 500), None)) is histogram


def test_one_empty_side() -> None:
    """All mass below 100 s stays there; of a mass all above, what is missing falls to the adjusted bin."""
    low, high = (0.0, 0.0, 1.0), (*[0.0] * 12, 1.0)
    assert reweighted(low, 3600, adjustment(100, 75)) is low
    told = reweighted(high, 3600, adjustment(100, 75))
    assert (told[bin_of(100.0)], told[12], len(told)) == (0.75, 0.25, 13)


def test_the_highest_percentile_leaves_nothing_above() -> None:
    assert reweighted((0.0, 0.5, 0.0, 0.0, 0.5), 100, adjustment(2, 100)) == (0.0, 1.0)


def test_shares_below_and_above_keep_their_proportions() -> None:
    masses = reweighted((0.1, 0.3, 0.0, 0.0, 0.2, 0.4), 1000, adjustment(3, 90))
    assert masses == pytest.approx((0.9 * 0.25, 0.9 * 0.75, 0.0, 0.0, 0.1 / 3, 0.2 / 3))
