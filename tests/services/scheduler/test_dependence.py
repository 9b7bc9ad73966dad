"""What jobs of one user tell of each other: states add up, a planted dependence is found and makes statements true."""

from functools import cache
from typing import Any, Literal

import numpy as np
import orjson
import pytest
from numpy.random import PCG64, Generator

from shadowtime.services.scheduler.candidates import Candidates, Evaluation, Rule, evaluate_candidates
from shadowtime.services.scheduler.conditioning import condition
from shadowtime.services.scheduler.dependence import EACH_USER, Dependence
from shadowtime.services.scheduler.dependent_ends import over_states
from shadowtime.services.scheduler.enqueued import enqueue
from shadowtime.services.scheduler.job_table import Queue, Running
from shadowtime.services.scheduler.probabilistic import Probabilistic
from shadowtime.services.scheduler.probabilistic_settings import ProbabilisticSettings
from shadowtime.services.scheduler.rank_states import HEEDLESS, STATES, normal, ranks_of
from shadowtime.services.scheduler.recalibration import NOTHING_LEARNED
from shadowtime.services.scheduler.terminations import Distributions, RunningEnds, refined_edges
from shadowtime.services.scheduler.tilted import CELLS, WAITS, InPlay, by_state, cell_of
from shadowtime.shared.decisions import Evaluated
from shadowtime.shared.events import Envelope, JobEnded, JobStarted, JobSubmitted, JobWithdrawn
from shadowtime.shared.predictions import RunTimePrediction
from shadowtime.shared.run_time_bins import BINS, EDGES
from tests.services.scheduler.enumeration import enumerated

CENSORED = 1 << 40
FLAT = (*[0.0] * 8, *[0.1] * 10)
"""Any of ten bins, from 61 s to six hours."""
ENDS = EDGES[8:19]
REQUEST = 86_400


def in_play(chance: Generator, jobs: int, running: int) -> InPlay:
    masses = np.zeros((jobs, BINS))
    masses[:, 4:12] = chance.dirichlet(np.ones(8), jobs)
    elapsed = np.full(jobs, WAITS)
    elapsed[:running] = chance.integers(0, 100, running)
    users = chance.integers(0, 3, jobs)
    return InPlay(users, chance.integers(0, 2, jobs), elapsed, masses, chance.normal(0, 0.5, (jobs, STATES)))


@pytest.mark.parametrize("loading", [0.3, 0.8])
def test_over_all_joint_states_each_job_has_the_distribution_that_it_has_alone(loading: float) -> None:
    """Of a running job: of what is left of it."""
    edges, chance = refined_edges(3), Generator(PCG64([1]))
    for _ in range(20):
        jobs = in_play(chance, 8, 5)
        alone = by_state(jobs, ranks_of(loading), 3, False)
        joint = by_state(jobs, ranks_of(loading), 3, True)
        assert joint.shape == (CELLS * 8, len(edges) - 1)
        for job in range(8):
            elapsed = max(jobs.elapsed[job], 0.0)
            expected = left_of(alone[job], edges, elapsed)
            mixed = sum(left_of(joint[state * 8 + job], edges, elapsed) for state in range(CELLS)) / CELLS
            assert mixed == pytest.approx(expected, abs=0.02)  # a rank within a bin is not quite what a cut leaves
            assert expected.sum() == pytest.approx(1.0)


def left_of(masses: Any, edges: Any, elapsed: float) -> Any:
    """Return the probability of each second of the grid's edges, of a job that has run for so long."""
    times, probabilities = condition(masses, edges, elapsed, np.inf, True)
    found = np.zeros(len(edges))
    found[np.searchsorted(edges, times)] = probabilities
    return found


def test_each_users_factor_is_in_each_cell_once_and_two_users_are_not_alike() -> None:
    orders = [[cell_of(user, joint) for joint in range(CELLS)] for user in range(20)]
    assert all(sorted(order) == list(range(CELLS)) for order in orders)
    assert len({tuple(order) for order in orders}) == 20


def test_states_are_averaged_as_all_outcomes_say() -> None:
    chance, edges = Generator(PCG64([2])), refined_edges(1)
    for _ in range(30):
        running, states = 3, 4
        sizes = chance.integers(1, 4, running + 1)
        masses = np.zeros((states * (running + 1), len(edges) - 1))
        masses[:, 5:9] = chance.dirichlet(np.ones(4), len(masses))
        needed, limits = int(chance.integers(1, sizes[:3].sum() + 1)), np.full(4, CENSORED)
        found = Evaluation(
            *evaluate_candidates(
                0,
                needed,
                60.0,
                RunningEnds(sizes[:3].copy(), np.zeros(3, dtype=np.int64), limits[:3], limits[:3], np.arange(3)),
                Candidates(sizes[3:].copy(), np.array([60]), limits[3:], np.array([3]), np.array([True])),
                Distributions(masses, edges, True, states),
                Rule(0, 1.0, 1.0, NOTHING_LEARNED, False),
                1 << 62,
            )
        )
        expected = []
        for rows in np.split(masses, states):
            ends = [dict(zip(edges[1:].tolist(), each.tolist(), strict=True)) for each in rows]
            ends = [{time: p for time, p in each.items() if p > 0} for each in ends]
            jobs = list(zip(sizes.tolist(), ends, strict=True))
            expected.append(enumerated(needed, jobs[:3], jobs[3]))
        assert found.measures[0, 0] == pytest.approx(np.mean(expected), abs=2e-6)
        added = over_states(found)
        assert added.risks.sum() == pytest.approx(found.measures[0, 0], abs=2e-6)
        told = list(zip(added.times.tolist(), added.jobs.tolist(), strict=True))
        assert len(set(told)) == len(told)


class Users:
    """Users one after another, each with six jobs submitted at once, whose ranks share a Gaussian factor.

    Five of them start at once; when some have ended, the sixth is weighed: its head waits for the next one to end.
    """

    def __init__(self, loading: float, dependence: Literal["no", "posterior", "joint"]) -> None:
        self.policy = Probabilistic(ProbabilisticSettings(tau=1e-9, mass="censor", points=16, dependence=dependence))
        self.loading, self.chance = loading, Generator(PCG64([3]))
        self.number = 0
        self.told: list[tuple[float, bool]] = []
        """Of each candidate the stated probability of delay, and whether it happened."""

    @property
    def dependence(self) -> Dependence:
        assert self.policy.dependence is not None
        return self.policy.dependence

    def run_times(self) -> list[int]:
        factor, own = self.chance.normal(), self.chance.normal(size=6)
        heeds = self.chance.random(6) >= HEEDLESS
        scores = np.where(heeds, self.loading**0.5 * factor + (1 - self.loading) ** 0.5 * own, own)
        ranks = [normal(each) for each in scores.tolist()]
        return [max(round(float(np.exp(np.interp(10 * rank, range(11), np.log(ENDS))))), 1) for rank in ranks]

    def submit(self, queue: Queue, time: int, user: int | None, processors: int) -> int:
        self.number += 1
        job = JobSubmitted(
            time=time,
            job_number=self.number,
            user_id=user,
            requested_processors=processors,
            requested_time=REQUEST,
        )
        told = RunTimePrediction(point=600.0, observations=1, histogram=FLAT)
        enqueue(queue, job, Envelope(run="r", sequence=1, event=job, run_time=told), self.policy.settings)
        self.policy.observe(job)
        return self.number

    def one(self, user: int) -> None:
        queue = Queue(settings=self.policy.settings)
        running = Running((), queue.histograms, self.policy.settings)
        begin, run_times, ended = user * 10**6, self.run_times(), int(self.chance.integers(1, 5))
        head = self.submit(queue, begin, None, 2 * ended + 2)
        *five, candidate = [self.submit(queue, begin, user, 2 if each < 5 else 1) for each in range(6)]
        self.policy.schedule(begin, queue, running, 0)
        for number in five:
            running.add((*queue.remove(number), begin))
            self.policy.observe(JobStarted(time=begin, job_number=number, processors=2))
        now = 0
        for place, (run_time, number) in enumerate(sorted(zip(run_times, five, strict=False))):
            if place == ended:
                self.weigh(begin + now, queue, running, 2 * ended, run_times[5] > run_time - now)
            now = run_time
            running.remove(number)
            self.policy.observe(JobEnded(time=begin + now, job_number=number, run_time=run_time))
        self.policy.observe(JobStarted(time=begin + now, job_number=candidate, processors=1))
        self.policy.observe(JobEnded(time=begin + now + 9, job_number=candidate, run_time=run_times[5]))
        self.policy.observe(JobWithdrawn(time=begin + now, job_number=head))

    def weigh(self, now: int, queue: Queue, running: Running, free: int, delayed: bool) -> None:
        decisions = self.policy.schedule(now, queue, running, free)
        evaluated = next(each for each in decisions if isinstance(each, Evaluated))
        self.told.append((evaluated.probabilities[0], delayed))

    def error(self) -> float:
        """Return the calibration error of what was stated."""
        stated, happened = np.array(self.told, dtype=np.float64).T
        tenths = np.minimum((stated * 10).astype(int), 9)
        off = [abs((stated - happened)[tenths == each].sum()) for each in range(10)]
        return float(sum(off) / len(stated))

    def brier_score(self) -> float:
        stated, happened = np.array(self.told, dtype=np.float64).T
        return float(((stated - happened) ** 2).mean())


@cache
def planted(loading: float, dependence: Literal["no", "posterior", "joint"]) -> Users:
    users = Users(loading, dependence)
    for user in range(1, 2_001):
        users.one(user)
    return users


@pytest.mark.parametrize("dependence", ["posterior", "joint"])
def test_a_planted_dependence_is_found_and_makes_what_is_stated_true(
    dependence: Literal["posterior", "joint"],
) -> None:
    independent, dependent = planted(0.7, "no"), planted(0.7, dependence)
    print(independent.error(), dependent.error(), independent.brier_score(), dependent.brier_score())
    assert [each for _, each in independent.told] == [each for _, each in dependent.told]
    assert dependent.dependence.loading in (0.7, 0.8)
    assert independent.error() > 0.1
    assert dependent.error() < 0.04
    assert dependent.brier_score() < 0.9 * independent.brier_score()


def test_where_there_is_none_none_is_found() -> None:
    independent, dependent = planted(0.0, "no"), planted(0.0, "joint")
    print(independent.error(), dependent.error(), dependent.dependence.scores)
    assert dependent.dependence.loading == 0.0
    assert dependent.told[-1000:] == independent.told[-1000:]


def test_restored_it_knows_what_it_knew() -> None:
    policy = planted(0.7, "joint").policy
    before = orjson.dumps(policy.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)
    again = Probabilistic(policy.settings)
    again.restore(orjson.loads(before))
    assert orjson.dumps(again.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY) == before


def test_memory_is_of_the_jobs_in_the_system_so_many_of_each_user() -> None:
    dependence = Dependence()
    for number in range(EACH_USER + 9):
        dependence.observe(JobSubmitted(time=0, job_number=number, user_id=1, requested_processors=1))
    assert len(dependence.jobs) == EACH_USER
    for number in range(EACH_USER + 9):
        dependence.observe(JobWithdrawn(time=0, job_number=number))
    assert not dependence.jobs
    assert not dependence.mates
    assert not dependence.unseen
