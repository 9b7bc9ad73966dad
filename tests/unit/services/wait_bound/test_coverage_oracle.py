"""How often bounds hold on streams of waits whose law is known, and how often changes are seen that are none.

Each job of these streams has started before the next is submitted, so that a bound knows all waits before it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound.conformal import Conformal
from shadowtime.services.wait_bound.groups.change_point import LEVELS, RUNS, replay
from shadowtime.services.wait_bound.groups.group_bound import WaitGroup, bound, ranks
from shadowtime.shared.kernels.arrays import Floats, Integers

Logs = Callable[[Generator], Floats]

MAX_JOBS, KEEP = 20_000, 59
NORMAL_95 = 1.6448536269514722


def keyed(*key: int) -> Generator:
    return Generator(PCG64(list(key)))


def waits_of(logs: Floats) -> Integers:
    """Return whole seconds."""
    return np.exp(np.clip(logs, 0, 24)).astype(np.int64)


def correlated(chance: Generator, count: int, rho: float) -> Floats:
    """Return a stationary AR(1) series of variance 1."""
    value, values = float(chance.standard_normal()), []
    for noise in chance.standard_normal(count).tolist():
        value = rho * value + math.sqrt(1 - rho**2) * noise
        values.append(value)
    return np.array(values)


def levels(chance: Generator, count: int, length: int) -> Floats:
    """Return a level that is drawn anew after each `length` waits."""
    return np.repeat(chance.uniform(3, 9, -(-count // length)), length)[:count]


class Fared(NamedTuple):
    """How bounds on one stream fared: which of them held, and at which waits a change was seen."""

    held: npt.NDArray[np.bool_]
    changes: list[int]
    group: WaitGroup


def plain(waits: Integers) -> Fared:
    """Return how the plain bound fares."""
    group, held, changes = WaitGroup(MAX_JOBS, KEEP), [], []
    for position, wait in enumerate(waits.tolist()):
        issued, _ = bound([group], 0, 0.95, 0.95)
        if issued is not None:
            held.append(wait <= issued)
        if group.add(wait, issued):
            changes.append(position)
    return Fared(np.array(held), changes, group)


def conformal(waits: Integers) -> npt.NDArray[np.bool_]:
    """Return which conformal bounds held."""
    bounds, held, time = Conformal(0.95, 0.05, MAX_JOBS), [], 0
    for number, wait in enumerate(waits.tolist()):
        issued = bounds.bound(time)
        if issued is not None:
            bounds.submit(number, time, issued)
            held.append(wait <= issued)
        time += wait
        bounds.start(number, time, wait)
        time += 1
    return np.array(held)


def coverage(logs: Logs, streams: int = 6) -> tuple[float, int]:
    """Return the share of bounds that held, and how many there were."""
    held = np.concatenate([plain(waits_of(logs(keyed(seed, 11)))).held for seed in range(streams)])
    return float(held.mean()), len(held)


def test_independent_waits_are_covered() -> None:
    """0.960: the confidence costs one hundredth at lengths of some thousand waits."""
    share, count = coverage(lambda chance: 5 + 2 * chance.standard_normal(5000))
    assert count > 29_000
    assert share >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / count)
    assert share <= 0.97, "a bound that is no wider than its confidence needs"


def test_short_histories_are_covered_with_confidence() -> None:
    """Of the first bounds, which are the longest of 59 waits, at least so many reach the quantile."""
    quantile = math.exp(5 + 2 * NORMAL_95)
    first = [max(waits_of(5 + 2 * keyed(seed, 12).standard_normal(59)).tolist()) for seed in range(2000)]
    reached = float(np.mean(np.array(first) >= int(quantile)))
    assert reached == pytest.approx(1 - 0.95**59, abs=4 * math.sqrt(0.95 * 0.05 / 2000))
    assert plain(waits_of(5 + 2 * keyed(0, 12).standard_normal(60))).held.size == 1


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.8, 0.9, 0.95])
def test_correlated_waits_are_covered(rho: float) -> None:
    """Between 0.953 and 0.959 at every correlation; of single streams of 5,000, at least 0.938.

    The confidence is that of independent waits; what correlation takes from it, few change points give back.
    """
    streams = [plain(waits_of(5 + 2 * correlated(keyed(seed, 13), 5000, rho))).held for seed in range(6)]
    assert np.concatenate(streams).mean() >= 0.945
    assert min(each.mean() for each in streams) >= 0.93


@pytest.mark.parametrize("length", [500, 200, 100])
def test_waits_whose_level_shifts_are_covered(length: int) -> None:
    """0.957 to 0.970: a rise is let in after a few misses, and after a fall the bound stays high: that costs width."""
    share, _ = coverage(lambda chance: levels(chance, 5000, length) + chance.standard_normal(5000))
    assert 0.95 <= share <= 0.985


def test_a_planted_rise_is_found_within_a_few_jobs() -> None:
    """Waits become 55 times as long: found at the third in 83 of 100 streams, at the fourth in all."""
    lags = []
    for seed in range(100):
        chance = keyed(seed, 14)
        before, after = 5 + chance.standard_normal(600), 9 + chance.standard_normal(60)
        fared = plain(waits_of(np.concatenate((before, after))))
        lags.append(min(each for each in fared.changes if each >= 600) - 600 + 1)
        assert len(fared.group.history) <= KEEP + 60 - lags[-1]
        assert fared.held[-20:].mean() >= 0.7, "the new level is within the bound"
    assert max(lags) <= 8
    assert np.mean(np.array(lags) <= 4) >= 0.9


def test_a_planted_fall_is_no_change_point() -> None:
    """Only misses tell of changes: the bound stays too high until enough short waits have come."""
    chance = keyed(15)
    fared = plain(waits_of(np.concatenate((9 + chance.standard_normal(600), 5 + chance.standard_normal(600)))))
    assert [each for each in fared.changes if each >= 600] == []
    assert fared.held[-600:].all()


def test_false_alarms_beyond_the_true_quantile_are_one_in_8000() -> None:
    """19 here, one in 13,200, where 26 are expected; three in a row alone are one in 8,420.

    The rest is the autocorrelation: by chance, that of 500 waits is above 0.05 one time in nine, and then four count.
    """
    count, quantile = 250_000, int(math.exp(5 + 2 * NORMAL_95))
    group, alarms, three = WaitGroup(1000, KEEP), 0, 0
    for wait in waits_of(5 + 2 * keyed(7).standard_normal(count)).tolist():
        alarms += group.add(wait, quantile) > 0
        three += group.change_points.limit == 3
    share = three / count
    assert share > 0.8
    expected = count * (share / 8420 + (1 - share) / 168_420)
    assert alarms == pytest.approx(expected, abs=4 * math.sqrt(expected))
    assert count / 16_000 < alarms < count / 6000


def test_false_alarms_beyond_the_bound_are_rarer() -> None:
    """One in 17,000: 52 streams of 200 have an alarm in their 5,000 waits. The bound is above the quantile."""
    streams, count, by_number = 200, 5000, ranks(MAX_JOBS)
    alarmed = sum(
        replay(waits_of(5 + 2 * keyed(seed, 16).standard_normal(count)), by_number, KEEP, LEVELS, RUNS)[0] > 0
        for seed in range(streams)
    )
    rate = -math.log(1 - alarmed / streams) / count  # alarms come singly, and a stream may have several
    assert 1 / 40_000 < rate < 1 / 10_000


def walk(chance: Generator) -> Floats:
    return 6 + np.cumsum(0.03 * chance.standard_normal(10_000)) + chance.standard_normal(10_000)


def seasons(chance: Generator) -> Floats:
    return 6 + 2 * np.sin(np.arange(10_000) * 2 * np.pi / 2500) + chance.standard_normal(10_000)


def rising(chance: Generator) -> Floats:
    return 4 + np.arange(10_000) * 4 / 10_000 + chance.standard_normal(10_000)


def shifting(chance: Generator) -> Floats:
    return levels(chance, 10_000, 1000) + chance.standard_normal(10_000)


def independent(chance: Generator) -> Floats:
    return 6 + chance.standard_normal(10_000)


@pytest.mark.parametrize("logs", [independent, walk, seasons, rising, shifting])
def test_the_conformal_bound_keeps_its_level_on_streams_that_drift(logs: Logs) -> None:
    """0.943 to 0.955 over 10,000 waits of each; a window of 1,000 may be far off, as 0.75 where the level leaps."""
    for seed in range(2):
        held = conformal(waits_of(np.minimum(logs(keyed(seed, 5)), 13)))
        assert held.mean() == pytest.approx(0.95, abs=0.01)
        windows = held[: len(held) // 1000 * 1000].reshape(-1, 1000).mean(axis=1)
        assert windows.min() >= 0.7


def test_independent_waits_are_within_the_conformal_bound_in_every_window() -> None:
    held = conformal(waits_of(6 + keyed(3, 5).standard_normal(20_000)))
    windows = held[:19_000].reshape(-1, 1000).mean(axis=1)
    assert np.abs(windows - 0.95).max() <= 4 * math.sqrt(0.95 * 0.05 / 1000)


def test_waits_that_fall_for_good_leave_the_conformal_bound_behind() -> None:
    """0.982: its steps shrink, and its history is long. It errs on the safe side."""
    falling = 8 - np.arange(10_000) * 4 / 10_000 + keyed(1, 5).standard_normal(10_000)
    assert 0.96 <= conformal(waits_of(falling)).mean() <= 1
