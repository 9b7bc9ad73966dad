"""The probability of delaying the head, against enumeration, the worked examples and its plain twin."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shadowtime.services.scheduler.kernels.release_walk import READY, UNBOUNDED, add_job, below, by_time, walk
from shadowtime.services.scheduler.probabilistic.delay_probability import (
    delay_bound,
    delay_probability,
    walk_over,
)
from tests.conformance.vectors.vector import vector
from tests.unit.services.scheduler.enumeration import Job, enumerated, enumerated_bound

Case = tuple[int, list[Job], Job]


def random_case(chance: np.random.Generator, jobs: int, times: int) -> Case:
    """Return an instance; few times make many terminations share their instant."""

    def job(size: int, outcomes: int) -> Job:
        chosen = chance.choice(times, size=min(outcomes, times), replace=False)
        return size, dict(zip((chosen + 1.0).tolist(), chance.dirichlet(np.ones(len(chosen))).tolist(), strict=True))

    running = [job(int(chance.integers(1, 9)), int(chance.integers(1, 4))) for _ in range(jobs)]
    needed = int(chance.integers(1, sum(size for size, _ in running) + 1))
    return needed, running, job(int(chance.integers(1, 9)), int(chance.integers(1, 4)))


def test_a_certain_end_has_the_probability_1() -> None:
    """A whole number raised an error of the compiler."""
    running: list[tuple[int, dict[float, float]]] = [(2, {10: 1})]
    assert [delay_probability(2, running, (1, {end: 1})) for end in (5, 10, 15)] == [0, 0, 1]
    assert delay_bound(2, running, (1, {15: 1})) == 1


@pytest.mark.parametrize("times", [4, 1000])
def test_equals_enumeration(times: int) -> None:
    """1,200 instances with shared instants and 1,200 without, up to 7 running jobs."""
    chance = np.random.default_rng(times)
    bounds = 0
    for number in range(1200):
        case = random_case(chance, 1 + number % 7, times)
        exact = delay_probability(*case)
        assert exact == pytest.approx(enumerated(*case), abs=1e-12)
        bound = delay_bound(*case)
        assert bound <= exact + 1e-12
        if number % 7 < 4:
            bounds += 1
            assert bound == pytest.approx(enumerated_bound(*case), abs=1e-12)
    assert bounds > 500


def ends(pmf: dict[str, str]) -> dict[float, float]:
    return {float(time): float(Fraction(p)) for time, p in pmf.items()}


def running_of(example: dict[str, Any]) -> list[Job]:
    return [(job["size"], ends(job["end_pmf"])) for job in example["running"]]


def test_the_worked_example_of_three_jobs() -> None:
    example = vector("p0_prob_backfill_3jobs")
    assert example["cq"] == example["head_size"] - example["idle"]
    case = example["cq"], running_of(example), (example["cand_size"], ends(example["cand_end_pmf"]))
    assert delay_probability(*case) == pytest.approx(example["exact_float"], abs=1e-15)
    assert delay_bound(*case) == pytest.approx(example["paper_max_bound_float"], abs=1e-15)


def test_the_bound_flips_a_decision() -> None:
    example = vector("p0_bound_flips_decision")
    case = example["cq"], running_of(example), (example["cand_size"], {1e9: 1.0})
    assert delay_bound(*case) == pytest.approx(example["paper_bound"], abs=1e-15)
    assert delay_probability(*case) == pytest.approx(example["exact"], abs=1e-15)
    assert delay_bound(*case) < example["tau"] < delay_probability(*case)


def test_the_bound_of_the_worked_example_bin_by_bin() -> None:
    example = vector("p0_alg2_trace")
    jobs = vector(example["running"])
    walked = walk_over(jobs["cq"], running_of(jobs), [jobs["cand_size"]])
    result = 0.0
    for each, most, expected in zip(
        example["cand_bins"], example["pMax_after_bin"], example["result_after_bin"], strict=True
    ):
        row = int(np.searchsorted(walked.times, each["end"])) - 1
        assert walked.bounds[row, 0] == pytest.approx(most)
        result += each["p"] * walked.bounds[row, 0]
        assert result == pytest.approx(expected)


def test_released_processors_of_the_worked_example() -> None:
    """Its M[c] is the probability that at least c processors have been released."""
    example = vector("p0_dp_M")
    length = sum(example["sizes"]) + 1
    released, with_one_more, top = np.zeros(length), np.zeros(length), 0
    released[0] = 1.0
    for size, p in zip(example["sizes"], example["P"], strict=True):
        top = add_job(released, top, size, float(Fraction(p)), 0, length, with_one_more)
        released, with_one_more = with_one_more, released
    at_least = np.cumsum(released[::-1])[::-1]
    assert at_least == pytest.approx([float(Fraction(m)) for m in example["M"]], abs=1e-15)


def test_how_loose_the_bound_is_on_random_instances() -> None:
    """The worked figures' own instances are not known: these are of the form of the example that flips a decision."""
    example = vector("p0_bound_tightness_random")
    chance = np.random.default_rng(7)
    ratios: list[float] = []
    while len(ratios) < example["instances"]:
        jobs = int(chance.integers(3, 7))
        times = chance.choice(60, size=2 * jobs + 1, replace=False) + 1.0
        tenths = chance.integers(1, 10, jobs) / 10
        running = [
            (int(chance.integers(1, 5)), {times[2 * job]: tenths[job], times[2 * job + 1]: 1 - tenths[job]})
            for job in range(jobs)
        ]
        needed = int(chance.integers(1, sum(size for size, _ in running) + 1))
        case = needed, running, (int(chance.integers(1, 3)), {1e9: 1.0})
        exact = delay_probability(*case)
        if exact > 1e-9:
            ratios.append(delay_bound(*case) / exact)
    assert np.mean(ratios) == pytest.approx(example["bound_over_exact_mean"], abs=0.02)
    assert np.quantile(ratios, 0.05) == pytest.approx(example["p05"], abs=0.06)
    assert min(ratios) == pytest.approx(example["min"], abs=0.1)
    assert max(ratios) <= 1 + 1e-9


def test_two_jobs_that_share_their_instants() -> None:
    """One after the other (docs/algorithms.md#exact-delay-probability): for a moment the candidate is in the way."""
    either = {10.0: 0.5, 20.0: 0.5}
    assert delay_probability(2, [(2, either), (2, either)], (2, {30.0: 1.0})) == 1.0
    certain = {10.0: 1.0}
    assert delay_probability(2, [(2, certain), (2, certain)], (2, {30.0: 1.0})) == 0.0


@pytest.mark.parametrize(("jobs", "largest"), [(100, 1), (60, 4), (30, 60)])
def test_keeps_its_digits_over_a_long_walk(jobs: int, largest: int) -> None:
    """Small jobs are where dividing a job out of the distribution loses them all."""
    chance = np.random.default_rng(jobs)
    sizes = chance.integers(1, largest + 1, jobs)
    events = [
        (time, job, p)
        for job in range(jobs)
        for time, p in zip(np.sort(chance.uniform(0, 1e5, 8)), chance.dirichlet(np.ones(8)), strict=True)
    ]
    times, who, masses = (np.array(column) for column in zip(*events, strict=True))
    times, who, masses = by_time(times, who, masses)
    needed, candidates = int(sizes.sum() // 2), np.array([1, 5])
    at, _, _, delays, _, _ = walk(needed, sizes, times, who, masses, candidates, UNBOUNDED)
    ended = np.zeros(jobs, dtype=np.longdouble)
    for row in range(len(at)):
        job = who[row]
        if row % 25 == 0:
            others = np.zeros(sizes.sum() + 1, dtype=np.longdouble)
            others[0] = 1
            for each in np.flatnonzero(ended):
                if each != job:
                    grown = others * (1 - ended[each])
                    grown[sizes[each] :] += others[: -sizes[each]] * ended[each]
                    others = grown
            low = max(needed - sizes[job], 0)
            for d, size in enumerate(candidates):
                expected = masses[row] * others[low : max(min(needed, needed + size - sizes[job]), low)].sum()
                assert float(delays[row, d]) == pytest.approx(float(expected), abs=1e-14)
        ended[job] += masses[row]
    assert len(at) > 100


def test_no_more_is_delayed_than_is_ready() -> None:
    chance = np.random.default_rng(11)
    for number in range(40):
        needed, running, (size, _) = random_case(chance, 1 + number % 5, 6)
        events = [(time, job, p) for job, (_, pmf) in enumerate(running) for time, p in pmf.items()]
        columns = [np.array(column) for column in zip(*events, strict=True)]
        ordered = by_time(*columns)
        sizes = np.array([each for each, _ in running])
        kinds = np.unique(np.array([size, 3]))
        _, _, ready, delays, _, _ = walk(needed, sizes, *ordered, kinds, UNBOUNDED)
        assert ready.sum() == pytest.approx(1.0)
        assert (delays <= ready[:, None] + 1e-12).all()
    sums = np.array([0.0, 0.2, 0.7, 1.0])
    for value, expected in ((-3, 0.2), (2, 0.7), (9, 1.0)):
        assert below(value, sums, 1, 2) == expected
    assert READY < 1e-12


@pytest.mark.parametrize("jobs", [256, 1024])
def test_the_work_of_a_step_does_not_grow_with_the_jobs(jobs: int) -> None:
    """Beyond the processors that matter: eight steps of each job, of one processor each, half of which are needed."""
    chance = np.random.default_rng(3)
    times = np.sort(chance.random((jobs, 8)), axis=1).ravel()
    ordered = by_time(times, np.repeat(np.arange(jobs), 8), np.full(8 * jobs, 1 / 8))
    needed = jobs // 2
    *found, work = walk(needed, np.ones(jobs, dtype=np.int64), *ordered, np.array([1]), UNBOUNDED)
    assert work < 2 * len(found[0]) * (needed + 1)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ((0, [(2, {1.0: 1.0})], (1, {2.0: 1.0})), "not blocked"),
        ((1, [(2, {1.0: 0.9})], (1, {2.0: 1.0})), "running job 0 has probabilities that add up to 0.9, expected 1"),
        (
            (1, [(2, {1.0: 1.5, 3.0: -0.5})], (1, {2.0: 1.0})),
            "running job 0 has the probability -0.5, expected at least 0",
        ),
        ((1, [(2, {})], (1, {2.0: 1.0})), "running job 0 has probabilities that add up to 0, expected 1"),
        ((1, [(2, {1.0: 1.0})], (0, {2.0: 1.0})), "the candidate has 0 processors"),
        ((1, [(2, {float("nan"): 1.0})], (1, {2.0: 1.0})), "running job 0 has the end NaN"),
    ],
)
def test_what_is_no_instance_is_named(case: Case, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        delay_probability(*case)


def test_nothing_runs() -> None:
    """A machine that has shrunk below the head: it cannot be delayed."""
    assert delay_probability(3, [], (2, {9.0: 1.0})) == 0.0
    assert delay_probability(9, [(2, {5.0: 1.0})], (2, {9.0: 1.0})) == 0.0
