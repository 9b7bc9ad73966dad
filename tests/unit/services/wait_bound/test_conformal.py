"""The conformal bound against a twin that goes through the log second by second."""

import math
from collections import Counter
from typing import NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.wait_bound.conformal import MAX_AIM, MIN_WAITS, Conformal
from shadowtime.testing.examples import examples


class Job(NamedTuple):
    submit: int
    wait: int
    bounded: bool = True

    @property
    def start(self) -> int:
        return self.submit + self.wait


JOBS = st.lists(
    st.builds(
        Job,
        st.integers(0, 60),
        st.sampled_from([0, 0, 1, 2, 5, 10, 30, 200]) | st.integers(0, 60),
        st.sampled_from([True, True, True, False]),
    ),
    max_size=60,
)
GAMMAS = st.sampled_from([0.05, 0.3, 1.0])
FULL = [Job(0, wait % 4, bounded=False) for wait in range(MIN_WAITS)]
"""Enough waits for there to be bounds, soon."""


def bounds_by_twin(jobs: list[Job], quantile: float, gamma: float, most: int) -> tuple[list[int | None], float]:
    """Return the bound of each job and the level at the end.

    Of each second: first what was overdue before it, then the starts in it, in order of submission, then submissions.
    """
    alpha, scored, history = 1 - quantile, 0, list[int]()
    open_deadlines = dict[int, int]()
    bounds: list[int | None] = [None] * len(jobs)
    submissions = sorted(range(len(jobs)), key=lambda number: jobs[number].submit)
    for now in range(max((job.start for job in jobs), default=0) + 2):
        scores = []
        for number in [number for number, deadline in open_deadlines.items() if deadline < now]:
            del open_deadlines[number]
            scores.append(1)
        for number, job in enumerate(jobs):
            if job.start == now and job.wait:
                scores += start(number, job, open_deadlines, history)
        alpha, scored = moved(alpha, scored, scores, 1 - quantile, gamma)
        for number in submissions:
            job = jobs[number]
            if job.submit != now:
                continue
            count = len(history[-most:])
            if count >= MIN_WAITS and job.bounded:
                at = min(max(math.ceil((1 - alpha) * count - 1e-9), 1), count)
                issued = bounds[number] = sorted(history[-most:])[at - 1]
                open_deadlines[number] = now + issued
            if job.wait == 0:  # it starts at once, and before the next is submitted
                alpha, scored = moved(alpha, scored, start(number, job, open_deadlines, history), 1 - quantile, gamma)
    return bounds, alpha


def start(number: int, job: Job, open_deadlines: dict[int, int], history: list[int]) -> list[int]:
    history.append(job.wait)
    return [] if open_deadlines.pop(number, None) is None else [0]


def moved(alpha: float, scored: int, scores: list[int], aim: float, gamma: float) -> tuple[float, int]:
    for miss in scores:
        scored += 1
        alpha = min(max(alpha + gamma / math.sqrt(scored) * (aim - miss), 0.0), max(0.5, min(2 * aim, 1.0)))
    return alpha, scored


def in_order(jobs: list[Job]) -> list[tuple[int, int, str, int]]:
    """Return starts and submissions as they happen, in the order of the twin."""
    submissions = sorted(range(len(jobs)), key=lambda number: jobs[number].submit)
    happen = [(job.start, 0, "start", number) for number, job in enumerate(jobs) if job.wait]
    for place, number in enumerate(submissions):
        job = jobs[number]
        happen.append((job.submit, 1 + 2 * place, "submit", number))
        if job.wait == 0:
            happen.append((job.submit, 2 + 2 * place, "start", number))
    return sorted(happen)


class Online:
    """A conformal bound that sees jobs submitted and started."""

    def __init__(self, jobs: list[Job], quantile: float, gamma: float, most: int) -> None:
        self.keys = quantile, gamma, most
        self.jobs = jobs
        self.conformal = Conformal(*self.keys)
        self.bounds: list[int | None] = [None] * len(jobs)

    def see(self, time: int, what: str, number: int) -> None:
        job = self.jobs[number]
        if what == "start":
            self.conformal.start(number, time, job.wait)
            return
        before = self.conformal.snapshot()
        found = self.conformal.bound(time)
        assert self.conformal.bound(time) == found
        assert self.conformal.snapshot() == before
        self.conformal.advance(time)
        assert self.conformal.bound(time) == found, "time that has passed was reckoned with"
        if job.bounded and found is not None:
            self.bounds[number] = found
            self.conformal.submit(number, time, found)


@given(JOBS, st.sampled_from([0.5, 0.75, 0.95]), GAMMAS, st.sampled_from([30, 1000]))
@examples(150)
def test_same_as_second_by_second(jobs: list[Job], quantile: float, gamma: float, most: int) -> None:
    jobs = [*FULL, *jobs]
    online = Online(jobs, quantile, gamma, most)
    for time, _, what, number in in_order(jobs):
        online.see(time, what, number)
    online.conformal.advance(max(job.start for job in jobs) + 1)
    bounds, alpha = bounds_by_twin(jobs, quantile, gamma, most)
    assert online.bounds == bounds
    assert online.conformal.snapshot()["alpha"] == pytest.approx(alpha)
    assert online.conformal.snapshot()["open"] == []
    assert Counter(bounds)[None] == len(jobs) - online.conformal.snapshot()["scored"], "each bound is scored once"


@given(JOBS, st.integers(0, 150))
@examples(60)
def test_a_restored_one_goes_on(jobs: list[Job], cut: int) -> None:
    jobs = [*FULL, *jobs]
    online, again = Online(jobs, 0.75, 0.3, 50), Online(jobs, 0.75, 0.3, 50)
    for count, (time, _, what, number) in enumerate(in_order(jobs)):
        if count == cut:
            again.conformal.start(1, 1, 1)  # to be forgotten
            again.conformal.restore(orjson.loads(orjson.dumps(online.conformal.snapshot())))
        online.see(time, what, number)
        if count >= cut:
            again.see(time, what, number)
    if cut < count:
        assert again.conformal.snapshot() == online.conformal.snapshot()


def ready(gamma: float = 0.05, quantile: float = 0.95) -> Conformal:
    conformal = Conformal(quantile, gamma, most=1000)
    for number in range(100):
        conformal.start(number, time=number, wait=number)
    return conformal


def test_no_bound_before_there_are_enough_waits() -> None:
    conformal = Conformal(0.95, 0.05, most=1000)
    for number in range(MIN_WAITS):
        assert conformal.bound(now=number) is None
        conformal.start(number, time=number, wait=number)
    assert conformal.bound(now=MIN_WAITS) == MIN_WAITS - 1 - 1
    assert Conformal(0.95, 0.05, most=1000).bound(0) is None


def test_steps_shrink_with_the_root_of_how_many_were_scored() -> None:
    conformal = ready(gamma=0.01)
    alpha = 0.05
    for n in range(1, 200):
        conformal.submit(n, time=1000, bound=50)
        conformal.start(n, time=1010, wait=10)
        alpha += 0.01 / math.sqrt(n) * 0.05
        assert conformal.snapshot()["alpha"] == pytest.approx(alpha)


def test_a_miss_is_noticed_when_the_bound_has_passed_and_not_at_the_start_again() -> None:
    conformal = ready()
    conformal.submit(1, time=1000, bound=50)
    conformal.advance(1050)
    assert conformal.snapshot()["scored"] == 0, "the bound is within it"
    conformal.advance(1051)
    assert conformal.snapshot()["scored"] == 1
    assert conformal.snapshot()["alpha"] == pytest.approx(0.05 + 0.05 * (0.05 - 1))
    conformal.start(1, time=2000, wait=1000)
    assert conformal.snapshot()["scored"] == 1


def test_a_start_at_the_deadline_is_a_hit() -> None:
    conformal = ready()
    conformal.submit(1, time=1000, bound=50)
    conformal.start(1, time=1050, wait=50)
    assert conformal.snapshot()["alpha"] > 0.05


def test_the_level_stays_within_its_limits() -> None:
    conformal = ready(gamma=1.0, quantile=0.95)
    for n in range(300):
        conformal.submit(1000 + n, time=1000, bound=0)
    conformal.advance(1001)
    assert conformal.snapshot()["alpha"] == 0.0
    assert conformal.bound(1001) == 99, "the longest"
    low = ready(gamma=1.0, quantile=0.9)
    for n in range(300):
        low.submit(1000 + n, time=1000, bound=5)
        low.start(1000 + n, time=1000, wait=0)
    assert low.snapshot()["alpha"] == MAX_AIM == 0.5


def test_jobs_without_a_bound_only_teach_their_waits() -> None:
    conformal = ready()
    conformal.start(7, time=500, wait=10_000)
    assert conformal.snapshot()["scored"] == 0
    assert len(conformal.history) == 101


def test_waits_that_are_all_zero_are_bounded_by_zero() -> None:
    conformal = Conformal(0.95, 0.05, most=1000)
    for number in range(300):
        bound = conformal.bound(number)
        if bound is not None:
            assert bound == 0
            conformal.submit(number, number, bound)
        conformal.start(number, number, 0)
    assert conformal.snapshot()["scored"] == 280
