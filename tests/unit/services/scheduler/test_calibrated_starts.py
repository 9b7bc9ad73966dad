"""Calibrated quantiles against the rule written out one by one, and against waits of which they tell too little."""

import json
import math
import random
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.forecasting import sampled as sampled_futures
from shadowtime.services.scheduler.forecasting.calibrated import LEVELS, STEP, CalibratedStarts, Within
from shadowtime.shared.kernels.arrays import Integers
from shadowtime.shared.messages.base import MAX_DURATION
from shadowtime.shared.statistics import NEAR


def within(seconds: list[int]) -> Within:
    return tuple(zip(LEVELS, seconds, strict=True))


class OneByOne:
    """The rule of docs/algorithms.md#calibrated-starts, a number at a time."""

    def __init__(self) -> None:
        self.shifts = {sure: [0.0] * len(LEVELS) for sure in (True, False)}
        self.waiting: dict[int, tuple[int, list[int], set[int]]] = {}

    def bound(self, table: list[int], level: int) -> float:
        shift = self.shifts[table[0] == table[-1]][level]
        return max(math.log(table[level] + NEAR) + shift, math.log(NEAR))

    def passed(self, number: int, now: int) -> None:
        told, table, known = self.waiting[number]
        for level, share in enumerate(LEVELS):
            if level not in known and math.log(now - told + NEAR) > self.bound(table, level):
                known.add(level)
                self.shifts[table[0] == table[-1]][level] += STEP * share

    def tell(self, number: int, now: int, table: list[int]) -> list[int]:
        for each in list(self.waiting):
            self.passed(each, now)
        self.waiting[number] = now, table, set()
        limit = math.log(MAX_DURATION)
        shifts = self.shifts[table[0] == table[-1]]
        logs = (math.log(each + NEAR) + shift for each, shift in zip(table, shifts, strict=True))
        return sorted(max(0, round(math.exp(min(each, limit)) - NEAR)) for each in logs)

    def start(self, number: int, now: int) -> None:
        self.passed(number, now)
        told, table, known = self.waiting.pop(number)
        for level, share in enumerate(LEVELS):
            exact = now == told and round(math.exp(self.bound(table, level)) - NEAR) == 0
            if level not in known and not exact:
                self.shifts[table[0] == table[-1]][level] -= STEP * (1 - share)


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_rule_also_when_restored_at_any_point(seed: int) -> None:
    chance, rule, starts, now = random.Random(seed), OneByOne(), CalibratedStarts(), 0
    order: list[int] = []  # in which the arrays have the waiting jobs: that of the sums
    for number in range(400):
        now += chance.choice([0, 1, 60, 600, 10_000])
        for each in chance.sample(order, k=len(order) // 3):
            rule.waiting = {at: rule.waiting[at] for at in order}
            starts.start(each, now)
            rule.start(each, now)
            last, place = order[-1], order.index(each)
            order[place] = last
            order.pop()
        rule.waiting = {at: rule.waiting[at] for at in order}
        table = sorted(chance.choices([0, 30, 500, 4_000, 90_000], k=len(LEVELS)))
        if chance.random() < 0.4:
            table = [table[0]] * len(LEVELS)
        assert [each for _, each in starts.tell(number, now, within(table))] == rule.tell(number, now, table)
        order.append(number)
        if chance.random() < 0.1:
            other = CalibratedStarts()
            other.restore(json.loads(json.dumps(starts.snapshot())))
            starts = other
    assert starts.shifts.tolist() == [rule.shifts[True], rule.shifts[False]]


def test_quantiles_that_are_far_too_narrow_hold_as_often_as_they_say() -> None:
    draws, starts = np.random.default_rng(1), CalibratedStarts()
    within_each = np.zeros(len(LEVELS))
    jobs, learned = 12_000, 4_000
    for number in range(jobs):
        middle = float(draws.choice([300, 3_000, 30_000]))
        table = [round(middle * math.exp(0.1 * (level - 0.5))) for level in LEVELS]
        told = [each for _, each in starts.tell(number, 10**6 * number, within(table))]
        assert told == sorted(told)
        wait = round(middle * math.exp(draws.normal()))
        starts.start(number, 10**6 * number + wait)
        if number >= learned:
            within_each += np.array([wait <= each for each in told])
    assert within_each / (jobs - learned) == pytest.approx(np.array(LEVELS), abs=0.02)


def test_a_quantile_that_is_too_low_is_known_while_its_job_waits() -> None:
    starts, table = CalibratedStarts(), within([100] * 7 + [200] * 8)
    starts.tell(1, 0, table)
    starts.tell(2, 100, table)
    assert not starts.shifts.any()
    starts.tell(3, 150, table)
    after = starts.shifts.copy()
    assert after[1].tolist() == [STEP * level for level in LEVELS[:7]] + [0.0] * 8
    starts.tell(4, 190, table)
    assert (starts.shifts == after).all()  # each quantile of a job counts once


def test_what_is_certain_and_comes_true_stays_and_what_leaves_teaches_nothing() -> None:
    starts, at_once = CalibratedStarts(), within([0] * len(LEVELS))
    for number in range(50):
        starts.tell(number, number, at_once)
        starts.start(number, number)
        starts.tell(1_000 + number, number, within(list(range(15))))
        starts.withdraw(1_000 + number)
    starts.start(7, 10**6)  # a second start
    starts.withdraw(8)
    assert not starts.shifts.any()
    assert starts.snapshot()["numbers"] == []


def test_however_long_nothing_starts_quantiles_are_numbers() -> None:
    starts, table = CalibratedStarts(), within(list(range(10**6, 10**6 + 15)))
    for number in range(3_000):
        told = starts.tell(number, 10**7 * number, table)
    assert told[-1][1] <= MAX_DURATION


def remembered(function: Callable[..., Integers]) -> Callable[..., Integers]:
    """Return a pure function that works nothing out twice."""
    known: dict[bytes, Integers] = {}

    def answer(*arguments: Any) -> Integers:
        key = blake2b()
        for each in arguments:
            key.update(repr(each).encode() if isinstance(each, int) else repr(each.shape).encode() + each.tobytes())
        if key.digest() not in known:
            known[key.digest()] = function(*arguments)
        return known[key.digest()].copy()

    return answer


@pytest.mark.nightly
def test_intervals_of_a_run_hold_better_than_those_of_the_futures_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The futures of both runs are the same: half of the time goes into them."""
    monkeypatch.setattr(sampled_futures, "starts_in_futures", remembered(sampled_futures.starts_in_futures))
    workload, found = prepare(read_swf(BUNDLED)), []
    for forecast in ("sampled", "calibrated"):
        plan = RunPlan("easy", "bundled", workload, configure(f"easy:forecast={forecast},runtime=experts"))
        scores = EmbeddedReplay(plan.opened(), plan.source()).run_to_end().scores
        assert scores is not None
        assert scores.starts is not None
        found.append([abs(each.covered_by_chance - each.level) for each in scores.starts[0].intervals])
    assert sum(found[1]) < sum(found[0])


def test_nothing_is_told_where_there_is_no_telling() -> None:
    starts: Any = CalibratedStarts()
    assert starts.tell(1, 0, ()) == ()
    assert starts.snapshot()["numbers"] == []
