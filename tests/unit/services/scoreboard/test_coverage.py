"""Bounds on the wait against the waits: the sums against their definitions over the whole log at once."""

from math import sqrt
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.scores import bound_coverage
from shadowtime.services.scoreboard.scores.bound_coverage import WINDOW, BoundKind, CoverageSums, WaitBoundCoverage
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.messages.scores import WaitBoundScores
from shadowtime.testing.examples import examples


class Waited(NamedTuple):
    """A job with its bounds, of the cluster and of its queue, and its wait; seconds."""

    wait: int
    queue: int | None
    bounds: dict[str, int | None]


JOBS = st.builds(
    Waited,
    wait=st.integers(0, 30),
    queue=st.none() | st.integers(0, 2),
    bounds=st.dictionaries(st.sampled_from(["plain", "static", "ensemble"]), st.none() | st.integers(0, 30)),
)


def bounds_of(job: Waited) -> tuple[WaitBound, ...]:
    queues = {None, job.queue}
    return tuple(
        WaitBound(grouping=grouping, queue=queue, quantile=0.5, confidence=0.95, bound=bound)
        for queue in sorted(queues, key=str)
        for grouping, bound in job.bounds.items()
    )


@given(st.lists(JOBS, max_size=15), st.data())
@examples(200)
def test_scores_are_their_definitions(jobs: list[Waited], data: st.DataObject) -> None:
    coverage = WaitBoundCoverage()
    for number, job in enumerate(jobs):
        coverage.submit(number, bounds_of(job))
    cut = data.draw(st.integers(0, len(jobs)))
    for number, job in enumerate(jobs):
        if number == cut:
            saved, coverage = coverage, WaitBoundCoverage()
            coverage.restore(orjson.loads(orjson.dumps(saved.snapshot())))
            assert coverage.snapshot() == saved.snapshot()
        coverage.reveal(number, job.wait)
    assert not coverage.waiting
    told = {BoundKind(each.grouping, each.queue, 0.5, 0.95): each for each in coverage.scores()}
    pairs: dict[BoundKind, list[tuple[int | None, int]]] = {}
    for job in jobs:
        for each in bounds_of(job):
            pairs.setdefault(BoundKind(each.grouping, each.queue, 0.5, 0.95), []).append((each.bound, job.wait))
    assert set(told) == set(pairs)
    for kind, scored in pairs.items():
        with_bound = [(bound, wait) for bound, wait in scored if bound is not None]
        over = [bound - wait for bound, wait in with_bound if bound >= wait]
        assert told[kind].predictions == len(with_bound)
        assert told[kind].without == len(scored) - len(with_bound)
        assert told[kind].coverage == (pytest.approx(len(over) / len(with_bound)) if with_bound else None)
        assert told[kind].over_rms == (pytest.approx(sqrt(sum(o * o for o in over) / len(over))) if over else None)


def test_the_cluster_comes_first_then_queues_by_number() -> None:
    coverage = WaitBoundCoverage()
    for number, queue in enumerate((7, 2, None, 0)):
        coverage.submit(number, bounds_of(Waited(0, queue, {"static": 1, "plain": 1})))
    assert [(each.queue, each.grouping) for each in coverage.scores()] == [
        (queue, grouping) for queue in (None, 0, 2, 7) for grouping in ("static", "plain")
    ]


def disjoint(hits: list[bool]) -> list[list[bool]]:
    return [hits[first : first + WINDOW] for first in range(0, len(hits) - WINDOW + 1, WINDOW)]


@given(st.lists(st.integers(0, WINDOW), max_size=4), st.integers(0, WINDOW - 1))
@examples(30)
def test_windows_are_disjoint_and_complete(misses: list[int], rest: int) -> None:
    sums = CoverageSums(quantile=0.95)
    hits = [position >= missed for missed in misses for position in range(WINDOW)] + [True] * rest
    for position, hit in enumerate(hits):
        sums.add(10, 10 if hit else 11)
        if position % 3 == 0:
            sums.add(None, 10)  # what has no bound is in no window
    shares = [sum(window) / WINDOW for window in disjoint(hits)]
    assert sums.summary()["windows"] == len(shares)
    assert sums.summary()["windows_within"] == sum(abs(share - 0.95) <= 0.02 + 1e-9 for share in shares)


@pytest.mark.parametrize(("misses", "within"), [(29, 0), (30, 1), (50, 1), (70, 1), (71, 0)])
def test_a_window_is_within_two_hundredths(misses: int, within: int) -> None:
    sums = CoverageSums(quantile=0.95)
    for position in range(WINDOW):
        sums.add(10, 11 if position < misses else 9)
    assert (sums.windows, sums.windows_within) == (1, within)


def told_to(board: Scoreboard, event: Event, bounds: tuple[WaitBound, ...] = ()) -> Envelope:
    return board.handle(Envelope(run="r", sequence=1, event=event, wait_bounds=bounds))


def scores_at(board: Scoreboard, time: int) -> tuple[WaitBoundScores, ...]:
    scores = told_to(board, ClusterClosed(time=time)).scores
    assert scores is not None
    return scores.wait_bounds


def test_only_the_first_start_of_a_job_is_scored() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=8))
    submitted = JobSubmitted(time=5, job_number=1, requested_processors=1)
    told_to(board, submitted, bounds_of(Waited(0, None, {"plain": 10})))
    told_to(board, JobStarted(time=15, job_number=1, processors=1))
    told_to(board, JobEnded(time=20, job_number=1, run_time=5, outcome="killed", requeued=True))
    told_to(board, JobStarted(time=90, job_number=1, processors=1))
    told_to(board, JobEnded(time=95, job_number=1, run_time=5))
    [scores] = scores_at(board, 95)
    assert (scores.predictions, scores.without, scores.coverage, scores.over_rms) == (1, 0, 1.0, 0.0)


def test_a_job_that_still_waits_is_not_scored_but_its_bounds_have_a_row() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=8))
    told_to(
        board,
        JobSubmitted(time=5, job_number=1, requested_processors=1),
        bounds_of(Waited(0, None, {"plain": 10, "nodes": None})),
    )
    rows = [(each.grouping, each.predictions, each.without, each.coverage) for each in scores_at(board, 99)]
    assert rows == [("plain", 0, 0, None), ("nodes", 0, 0, None)]


def test_without_bounds_there_is_nothing_to_keep() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=8))
    told_to(board, JobSubmitted(time=5, job_number=1, requested_processors=1))
    assert not board.tally.coverage.waiting
    assert scores_at(board, 5) == ()


def test_bounds_from_below_are_scored_apart() -> None:
    coverage = WaitBoundCoverage()
    both = WaitBound(grouping="plain", quantile=0.8, confidence=0.9, bound=50, lower=20, side="both")
    alone = WaitBound(grouping="static", quantile=0.8, confidence=0.9, lower=30, side="lower")
    none = alone.model_copy(update={"lower": None, "reason": "not enough history"})
    for number, wait in enumerate((10, 30, 60)):
        coverage.submit(number, (both, none if number == 2 else alone))
        again = WaitBoundCoverage()
        again.restore(orjson.loads(orjson.dumps(coverage.snapshot())))
        again.reveal(number, wait)
        coverage = again
    rows = {row.grouping: (row.quantile, row.predictions, row.without, row.coverage) for row in coverage.scores()}
    assert rows == {
        "plain": (0.8, 3, 0, 2 / 3),
        "plain (lower)": (0.2, 3, 0, 2 / 3),
        "static (lower)": (0.2, 2, 1, 0.5),
    }
    coverage.submit(9, (both,))
    coverage.withdraw(9, waited=25)
    assert {row.grouping: row.predictions for row in coverage.scores()}["plain (lower)"] == 4
    assert not coverage.snapshot()["lower"]


def test_sequences_of_kinds_that_were_forgotten_are_found_again() -> None:
    """Two queues take turns, so that with room for one sequence each job is the first of its own."""

    def states(most: int) -> list[Any]:
        coverage, made = WaitBoundCoverage(), []
        with patch.object(bound_coverage, "MAX_SHAPES", most):
            for number in range(12):
                bounds = {"static": number, "plain": None if number % 3 else 2 * number}
                coverage.submit(number, bounds_of(Waited(0, number % 2, bounds)))
                coverage.reveal(number - 4, 6)
                made.append(coverage.snapshot())
        return made

    assert states(1) == states(1_000)
