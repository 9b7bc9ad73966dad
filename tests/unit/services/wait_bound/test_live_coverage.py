"""The live coverage against a list of everything."""

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound import coverage_monitor as live_coverage
from shadowtime.services.wait_bound.coverage_monitor import EVERY, LAST, LiveCoverage, allowed, band
from shadowtime.testing.examples import examples


def place(covered: list[bool], quantile: float, last: int) -> str:
    """Return where the share of the last ones lies."""
    counted = covered[-last:]
    share = sum(counted) / len(counted)
    spread = 3 * math.sqrt(quantile * (1 - quantile) / len(counted))
    if share < max(quantile - spread, 0):
        return "below"
    return "above" if share > min(quantile + spread, 1) else "within"


def place_of(live: LiveCoverage) -> str:
    return live.place


def check(live: LiveCoverage, covered: list[bool], quantile: float, last: int) -> int:
    """Let it see everything, and return how often it told."""
    untold, before, told = 0, "within", 0
    for count in range(1, len(covered) + 1):
        tells = live.add(covered=covered[count - 1])
        seen = covered[max(count - last, 0) : count]
        now = place(seen, quantile, last)
        untold += 1
        assert live.message("plain", None).revealed == len(seen)
        assert live.share == pytest.approx(sum(seen) / len(seen))
        assert live.place == now
        assert tells == (now != before or untold == EVERY)
        if tells:
            untold, told = 0, told + 1
        before = now
    return told


@given(st.lists(st.sampled_from([True, True, True, False]), max_size=300), st.sampled_from([0.25, 0.5, 0.75, 0.95]))
@examples(60)
def test_the_last_ones_count(covered: list[bool], quantile: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_coverage, "LAST", 50)
        # A queue of the real length would be filled by no example.
        live = LiveCoverage(quantile)
        live.restore(["", 0, "within"])
        check(live, covered, quantile, 50)


@given(st.integers(1, LAST), st.floats(0.001, 0.999))
@examples(100)
def test_allowed_numbers_are_those_whose_share_is_in_the_band(count: int, quantile: float) -> None:
    low, high = band(quantile, count)
    within = [covered for covered in range(count + 1) if low <= covered / count <= high]
    assert allowed(quantile, count) == (within[0], within[-1])


def test_the_last_thousand_count() -> None:
    chance = Generator(PCG64([4])).random(3500)
    covered = [bool(chance[at] < (0.95, 0.7, 1.0)[min(at // 1200, 2)]) for at in range(3500)]
    assert LAST == 1000
    assert 35 <= check(LiveCoverage(0.95), covered, 0.95, 1000) <= 60


def test_it_tells_each_hundred_and_when_it_leaves_its_band() -> None:
    live = LiveCoverage(0.5)
    told = [count for count in range(1, 1001) if live.add(covered=count % 2 == 0)]
    assert told == list(range(100, 1001, 100))
    assert live.place == "within"
    left = next(count for count in range(1, 500) if live.add(covered=False) and live.share < 0.49)
    assert place_of(live) == "below"
    assert left == pytest.approx(1000 * 3 * math.sqrt(0.25 / 1000) / 0.5, abs=3)


def test_the_band_is_within_0_and_1() -> None:
    live = LiveCoverage(0.95)
    assert live.band == pytest.approx((0.95 - 3 * math.sqrt(0.95 * 0.05), 1.0))
    for _ in range(1000):
        live.add(covered=True)
    assert live.band == pytest.approx((0.9293, 0.9707), abs=1e-4)
    assert live.place == "above"


@given(st.lists(st.booleans(), max_size=300), st.lists(st.booleans(), max_size=120))
@examples(40)
def test_a_restored_one_goes_on(before: list[bool], after: list[bool]) -> None:
    live, again = LiveCoverage(0.75), LiveCoverage(0.75)
    for each in before:
        live.add(covered=each)
    again.add(covered=False)  # to be forgotten
    again.restore(orjson.loads(orjson.dumps(live.snapshot())))
    assert [live.add(covered=each) for each in after] == [again.add(covered=each) for each in after]
    assert live.snapshot() == again.snapshot()
