"""Strongly adaptive quantiles against the rule a number at a time, and against waits that change at once."""

import math
import random
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import orjson
import pytest

from shadowtime.services.wait_bound import strongly_adaptive
from shadowtime.services.wait_bound.aged_experts import AGES, REACH, SHORTEST
from shadowtime.services.wait_bound.strongly_adaptive import StronglyAdaptive
from shadowtime.services.wait_bound.tracked_quantiles import FARTHEST, NEAR

LEVELS = (0.25, 0.5, 0.95)
SOURCES = 2


@dataclass(eq=False)
class Expert:
    """One expert of one level and source."""

    source: int
    born: int
    shift: float
    squares: float = 0.0
    won: list[float] = field(default_factory=list)
    bet: float = 0.0
    weight: float = 0.0


@dataclass
class Job:
    """What was told of a job at one level, by each expert that lived, and by all of them; the longest of all."""

    since: float
    experts: list[tuple[Expert, float]]
    mixture: float
    most: float
    wait: float | None = None
    gone: bool = False


class OneByOne:
    """The rule of docs/algorithms.md#strongly-adaptive-quantiles, a number at a time, for one level."""

    def __init__(self, level: float) -> None:
        self.level, self.step = level, SHORTEST // 2
        self.experts = [Expert(source, self.step, 0.0, level**2) for source in range(SOURCES)]
        self.jobs: dict[int, Job] = {}

    def shares(self) -> list[float]:
        priors = [1 / (each.born**2 * (1 + math.floor(math.log2(each.born)))) for each in self.experts]
        heard = [prior * max(each.weight, 0.0) for prior, each in zip(priors, self.experts, strict=True)]
        heard = heard if sum(heard) > 0 else priors
        return [each / sum(heard) for each in heard]

    def told(self, quantiles: list[float]) -> tuple[list[float], float]:
        told = [max(quantiles[each.source] + each.shift, math.log(NEAR)) for each in self.experts]
        return told, sum(share * each for share, each in zip(self.shares(), told, strict=True))

    def tell(self, number: int, since: float, quantiles: list[float]) -> None:
        told, mixture = self.told(quantiles)
        unborn = {(source, age) for source, age in product(range(SOURCES), range(AGES))}
        unborn -= {(each.source, age_of(each.born)) for each in self.experts}
        most = max(*told, mixture, *(max(quantiles[source], math.log(NEAR)) for source, _ in unborn))
        self.jobs[number] = Job(since, list(zip(self.experts, told, strict=True)), mixture, most)

    def advance(self, now: float) -> None:
        while self.jobs:
            number, job = next(iter(self.jobs.items()))
            log_wait = math.log(max(now - job.since, 0.0) + NEAR) if job.wait is None else math.log(job.wait + NEAR)
            if job.wait is None and not job.gone and log_wait <= job.most:
                return
            del self.jobs[number]
            if not job.gone:
                self.learn(job, log_wait)

    def loss(self, told: float, log_wait: float) -> float:
        return max(self.level * (log_wait - told), (self.level - 1) * (log_wait - told))

    def learn(self, job: Job, log_wait: float) -> None:
        shares = self.shares()
        for expert, told in job.experts:
            if expert not in self.experts:  # its life is over
                continue
            won = (self.loss(job.mixture, log_wait) - self.loss(told, log_wait)) / REACH
            won = min(max(won, -1.0), 1.0) if expert.weight > 0 else min(max(won, 0.0), 1.0)
            expert.won.append(won)
            expert.bet += won * expert.weight
            expert.weight = sum(expert.won) / (len(expert.won) + 1) * (1 + expert.bet)
            gradient = -self.level if log_wait > told else 1 - self.level
            expert.squares += gradient**2 * (1 + 2 * len(self.jobs))
            expert.shift -= REACH / math.sqrt(3) * gradient / math.sqrt(expert.squares)
            expert.shift = min(max(expert.shift, -FARTHEST), FARTHEST)
        self.step += 1
        if self.step % (SHORTEST // 2):
            return
        newborn = list[Expert]()
        for source in range(SOURCES):
            heard = sum(share for share, each in zip(shares, self.experts, strict=True) if each.source == source)
            pairs = [
                (share, each.shift) for share, each in zip(shares, self.experts, strict=True) if each.source == source
            ]
            shift = sum(a * b for a, b in pairs) / heard if heard > 0 else 0.0
            newborn.append(Expert(source, self.step, shift, self.level**2))
        alive = [each for each in self.experts if self.step < each.born + SHORTEST * 2 ** age_of(each.born)]
        self.experts = alive + newborn


def age_of(born: int) -> int:
    turn = born // (SHORTEST // 2)
    return (turn & -turn).bit_length() - 1


def test_it_follows_the_rule_also_when_taken_up_again() -> None:
    chance, adaptive = random.Random(1), StronglyAdaptive(LEVELS, SOURCES)
    twins = [OneByOne(level) for level in LEVELS]
    now, waiting = 0, dict[int, int]()
    for number in range(1_000):
        now += chance.randint(0, 400)
        adaptive.advance(now)
        for twin in twins:
            twin.advance(now)
        for each in [each for each in waiting if chance.random() < 0.3]:
            wait = now - waiting.pop(each)
            adaptive.start(each, wait)
            for twin in twins:
                if each in twin.jobs:
                    twin.jobs[each].wait = wait
                twin.advance(now)
        if waiting and chance.random() < 0.05:
            gone = chance.choice(list(waiting))
            del waiting[gone]
            adaptive.withdraw(gone)
            for twin in twins:
                if gone in twin.jobs:
                    twin.jobs[gone].gone = True
        if chance.random() < 0.1:
            again = StronglyAdaptive(LEVELS, SOURCES)
            again.restore(orjson.loads(orjson.dumps(adaptive.snapshot())))
            adaptive = again
        quantiles = np.array([sorted(chance.uniform(4.1, 9.0) for _ in LEVELS) for _ in range(SOURCES)]).T.copy()
        seconds = [math.exp(twin.told(row.tolist())[1]) - NEAR for twin, row in zip(twins, quantiles, strict=True)]
        told = adaptive.seconds(quantiles).tolist()
        assert told == pytest.approx(np.maximum.accumulate(seconds).tolist(), abs=1.0)
        adaptive.tell(number, now, quantiles)
        for twin, row in zip(twins, quantiles, strict=True):
            twin.tell(number, now, row.tolist())
        waiting[number] = now


def test_levels_hold_in_short_stretches_when_waits_change_at_once() -> None:
    """Each stretch of 500 jobs has waits of its own; all are known at the next job."""
    chance, adaptive, covered = random.Random(2), StronglyAdaptive((0.9,), 1), np.zeros(20_000)
    quantiles = np.log(np.array([[600.0]]) + NEAR)
    for number in range(len(covered)):
        wait = 300.0 * 4.0 ** (number // 500 % 3) * chance.lognormvariate(0.0, 0.5)
        covered[number] = wait <= adaptive.seconds(quantiles)[0]
        adaptive.tell(number, 1e6 * number, quantiles)
        adaptive.start(number, wait)
    assert covered.mean() == pytest.approx(0.9, abs=0.02)
    assert abs(covered.reshape(-1, 500).mean(axis=1) - 0.9).max() < 0.06


def test_short_waits_that_are_known_first_do_not_pull_it_down() -> None:
    """As long as what is told is waited for, hundreds of jobs come: those that start at once would be heard first."""
    chance, adaptive, covered = random.Random(4), StronglyAdaptive((0.9,), 1), np.zeros(20_000)
    quantiles, starts = np.log(np.array([[5_000.0]]) + NEAR), list[tuple[float, int, float]]()
    for number in range(len(covered)):
        now = 20.0 * number
        for start in sorted(each for each in starts if each[0] <= now):
            adaptive.start(*start[1:])
            starts.remove(start)
        adaptive.advance(now)
        wait = chance.choice([0.0, 10_000.0]) * chance.random()
        covered[number] = wait <= adaptive.seconds(quantiles)[0]
        adaptive.tell(number, now, quantiles)
        starts.append((now + wait, number, wait))
    assert covered[2_000:].mean() == pytest.approx(0.9, abs=0.02)


def test_memory_is_bounded_and_a_job_that_never_starts_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strongly_adaptive, "MAX_JOBS", 50)
    adaptive = StronglyAdaptive((0.5,), 1)
    quantiles = np.log(np.array([[1e9]]) + NEAR)
    adaptive.tell(0, 0.0, quantiles)
    for number in range(1, 500):
        adaptive.tell(number, float(number), quantiles)
        adaptive.start(number, 10.0)
    assert len(adaptive.snapshot()["numbers"]) <= 50
    assert adaptive.seconds(quantiles)[0] < 1e9


def test_a_job_that_was_withdrawn_and_comes_again_is_learned_from() -> None:
    """As one that was held: what is forgotten of its first time leaves the second alone."""
    adaptive, quantiles = StronglyAdaptive((0.5,), 1), np.log(np.array([[1e9]]) + NEAR)
    for number in (5, 6, 7):
        adaptive.tell(number, 0.0, quantiles)
        adaptive.withdraw(number)
    adaptive.tell(7, 10.0, quantiles)
    adaptive.advance(20.0)
    adaptive.tell(8, 30.0, quantiles)  # those that are gone are forgotten now
    adaptive.start(7, 40.0)
    adaptive.start(8, 40.0)
    adaptive.tell(9, 100.0, quantiles)
    assert adaptive.snapshot()["numbers"] == [9]
