"""Tracked quantiles against the rule written out a number at a time, and against waits that drift."""

import math
import random

import numpy as np
import orjson
import pytest

from shadowtime.services.wait_bound.futures.online_quantiles import FARTHEST, LAST, STEPS, TrackedQuantiles
from shadowtime.shared.statistics import NEAR

LEVELS = (0.25, 0.5, 0.95)
SOURCES = 2


class OneByOne:
    """The rule of docs/algorithms.md#tracked-quantiles, a number at a time."""

    def __init__(self) -> None:
        self.experts = [(source, step) for source in range(SOURCES) for step in STEPS.tolist()]
        self.shifts = {(level, expert): 0.0 for level in LEVELS for expert in self.experts}
        self.weights = {key: 1 / len(self.experts) for key in self.shifts}
        self.squares = dict.fromkeys(LEVELS, 1.0)
        self.waiting: dict[int, tuple[float, dict[tuple[float, tuple[int, float]], float], set[object]]] = {}

    def told(self, quantiles: list[list[float]]) -> dict[tuple[float, tuple[int, float]], float]:
        at = dict(zip(LEVELS, quantiles, strict=True))
        return {(level, e): max(at[level][e[0]] + self.shifts[level, e], math.log(NEAR)) for level, e in self.shifts}

    def seconds(self, quantiles: list[list[float]]) -> list[float]:
        told, found = self.told(quantiles), list[float]()
        for level in LEVELS:
            log = sum(self.weights[level, e] * told[level, e] for e in self.experts)
            found.append(max(round(math.exp(log) - NEAR), found[-1] if found else 0.0))
        return found

    def tell(self, number: int, since: float, quantiles: list[list[float]]) -> None:
        self.waiting[number] = since, self.told(quantiles), set()

    def outwaited(self, number: int, now: float) -> None:
        since, told, known = self.waiting[number]
        for key in self.shifts:
            if key not in known and math.log(max(now - since, 0) + NEAR) > told[key] + 1e-9:
                known.add(key)
                self.shifts[key] = min(self.shifts[key] + key[1][1] * key[0], FARTHEST)

    def start(self, number: int, wait: float) -> None:
        self.outwaited(number, self.waiting[number][0] + wait)
        _, told, known = self.waiting.pop(number)
        for level in LEVELS:
            losses = dict[tuple[int, float], float]()
            for e in self.experts:
                if (level, e) not in known:
                    self.shifts[level, e] = max(self.shifts[level, e] - e[1] * (1 - level), -FARTHEST)
                short = math.log(wait + NEAR) - told[level, e]
                losses[e] = max(level * short, (level - 1) * short)
            square = sum(self.weights[level, e] * losses[e] ** 2 for e in self.experts)
            self.squares[level] += (square - self.squares[level]) / LAST
            rate = math.sqrt((math.log(2 * len(self.experts) * LAST) + 1) / (LAST * self.squares[level] + 1e-12))
            new = {e: self.weights[level, e] * math.exp(-rate * losses[e]) for e in self.experts}
            total, shared = sum(new.values()), 0.5 / LAST
            self.weights |= {
                (level, e): (1 - shared) * each / total + shared / len(self.experts) for e, each in new.items()
            }


def test_it_follows_the_rule_also_when_taken_up_again() -> None:
    chance, tracked, twin = random.Random(1), TrackedQuantiles(LEVELS, SOURCES), OneByOne()
    now, waiting = 0, dict[int, int]()
    for number in range(400):
        now += chance.randint(0, 400)
        tracked.advance(now)
        for each in sorted(twin.waiting):
            twin.outwaited(each, now)
        for each in [each for each in waiting if chance.random() < 0.3]:
            wait = now - waiting.pop(each)
            tracked.start(each, wait)
            twin.start(each, wait)
        quantiles = [sorted(chance.uniform(4.1, 9.0) for _ in LEVELS) for _ in range(SOURCES)]
        rows = [list(row) for row in zip(*quantiles, strict=True)]
        table = np.array(rows)
        assert tracked.seconds(table).tolist() == pytest.approx(twin.seconds(rows), abs=1.0)
        tracked.tell(number, now, table)
        twin.tell(number, now, rows)
        waiting[number] = now
        if chance.random() < 0.05:
            gone = chance.choice(list(waiting))
            del waiting[gone], twin.waiting[gone]
            tracked.withdraw(gone)
        if chance.random() < 0.1:
            again = TrackedQuantiles(LEVELS, SOURCES)
            again.restore(orjson.loads(orjson.dumps(tracked.snapshot())))
            tracked = again


def test_levels_hold_while_waits_grow_and_fall_and_never_cross() -> None:
    """Waits are known only after they have passed, many jobs later; they grow to 64 times and fall again."""
    chance, tracked, covered = random.Random(2), TrackedQuantiles(LEVELS, 1), np.zeros((40_000, len(LEVELS)))
    starts = list[tuple[float, int, float]]()
    for number in range(len(covered)):
        now = 60.0 * number
        for start, each, wait in [each for each in starts if each[0] <= now]:
            tracked.start(each, wait)
            starts.remove((start, each, wait))
        tracked.advance(now)
        wait = 300.0 * 8 ** math.sin(math.tau * number / 8_000) * chance.lognormvariate(0.0, 1.0)
        quantiles = np.log(np.array([[100.0], [300.0], [1000.0]]) + NEAR)
        told = tracked.seconds(quantiles)
        assert (np.diff(told) >= 0).all()
        covered[number] = wait <= told
        tracked.tell(number, now, quantiles)
        starts.append((now + wait, number, wait))
    assert covered.mean(axis=0).tolist() == pytest.approx(LEVELS, abs=0.015)


def test_the_source_that_comes_nearer_has_the_weight() -> None:
    chance, tracked = random.Random(3), TrackedQuantiles((0.9,), sources=2)
    for number in range(3_000):
        scale = chance.choice([100.0, 10_000.0])  # the first source knows it, the second does not
        quantiles = np.log(np.array([[2.3 * scale, 12_000.0]]) + NEAR)
        tracked.tell(number, 1e6 * number, quantiles)
        tracked.start(number, scale * chance.expovariate(1.0))
    assert tracked.weights[0, : len(STEPS)].sum() > 0.9
