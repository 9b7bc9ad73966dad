"""The stage adds bounds, learns each wait when it is over, at the start, and says what that brought to light."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.pipeline import STAGES
from shadowtime.services.wait_bound.bounder import Unbounded
from shadowtime.services.wait_bound.groups.queue_bounds import ALL, FIVE
from shadowtime.services.wait_bound.handler import BOUNDERS, WaitBounds
from shadowtime.shared.distributions import unpacked_numbers
from shadowtime.shared.messages.base import MAX_DURATION
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Rejected,
)
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.examples import examples
from tests.support.small_logs import job, workload_of
from tests.unit.services.wait_bound.happenings import happenings, made

OPENED = ClusterOpened(time=0, cluster="c", processors=128, mode="recorded", wait_bound="bmbp")


class LongestSoFar(Unbounded):
    """A bounder that keeps what it has learned."""

    def __init__(self) -> None:
        self.learned: list[tuple[int, int]] = []

    def predict_one(self, x: object) -> tuple[WaitBound, ...]:  # type: ignore[override]
        longest = max((wait for _, wait in self.learned), default=None)
        return (WaitBound(grouping="plain", quantile=0.5, confidence=0.5, bound=longest),)

    def learn_one(self, x: JobSubmitted, y: int) -> None:  # type: ignore[override]
        self.learned.append((x.job_number, y))


def submitted(job_number: int, time: int) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=job_number, requested_processors=1)


def handle(stage: WaitBounds, event: Event) -> Envelope:
    return stage.handle(Envelope(run="r", sequence=1, event=event))


def events(jobs: int, seed: int = 1) -> list[Event]:
    return [
        each.job
        if each.wait is None
        else JobStarted(time=each.time, job_number=each.job.job_number, processors=each.job.requested_processors)
        for each in happenings(made(jobs, seed, queues=2))
    ]


def opened(wait_bound: str = OPENED.wait_bound) -> tuple[StageRun, "count[int]"]:
    """Return the stage with a run in it, and the sequence numbers to come."""
    run = StageRun(next(stage for stage in STAGES if stage.name == "wait_bound"))
    opening = OPENED.model_copy(update={"wait_bound": wait_bound})
    run.push(Envelope(run="r", sequence=0, event=opening))
    return run, count(1)


def push(run: StageRun, sequence: int, event: Event) -> Envelope:
    answer = run.push(Envelope(run="r", sequence=sequence, event=event))
    assert answer is not None
    return answer


def test_no_bound_is_the_default() -> None:
    stage = WaitBounds(ClusterOpened(time=0, cluster="c", processors=8))
    envelope = Envelope(run="r", sequence=1, event=submitted(1, 0))
    assert stage.handle(envelope) == envelope
    assert BOUNDERS.build(parse("none")).predict_one(submitted(1, 0)) is None
    started = Envelope(run="r", sequence=2, event=JobStarted(time=9, job_number=1, processors=1))
    assert stage.handle(started) == started
    assert stage.bounds_at(submitted(1, 0), 0.95, 0.95) == ()


def test_a_wait_is_learned_at_the_start_and_not_again_at_the_end() -> None:
    stage = WaitBounds(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = bounder = LongestSoFar()
    assert handle(stage, submitted(1, 10)).wait_bounds[0].bound is None
    handle(stage, JobStarted(time=45, job_number=1, processors=1))
    assert bounder.learned == [(1, 35)]
    handle(stage, JobEnded(time=99, job_number=1, run_time=54))
    assert bounder.learned == [(1, 35)]
    assert handle(stage, submitted(2, 99)).wait_bounds[0].bound == 35


def test_the_wait_before_a_trial_is_learned_once_it_has_ended_for_good() -> None:
    stage = WaitBounds(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = bounder = LongestSoFar()
    for number in (1, 2):
        handle(stage, submitted(number, 10))
    for number in (1, 2):
        handle(stage, JobStarted(time=20, job_number=number, processors=1, limit=30, trial=True))
    handle(stage, JobEnded(time=50, job_number=1, run_time=30, outcome="limit", requeued=True))
    assert bounder.learned == []
    handle(stage, JobEnded(time=50, job_number=2, run_time=30))
    assert bounder.learned == [(2, 10)]
    handle(stage, JobStarted(time=70, job_number=1, processors=1))
    assert bounder.learned == [(2, 10), (1, 60)]


def test_a_requeued_job_waits_from_its_submission_on() -> None:
    stage = WaitBounds(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = bounder = LongestSoFar()
    handle(stage, submitted(1, 10))
    handle(stage, JobStarted(time=20, job_number=1, processors=1))
    handle(stage, JobEnded(time=30, job_number=1, run_time=10, outcome="killed", requeued=True))
    handle(stage, JobStarted(time=70, job_number=1, processors=1))
    assert bounder.learned == [(1, 10), (1, 60)]


def test_news_travel_with_the_start_that_brought_them() -> None:
    stage = WaitBounds(OPENED)
    answers = [handle(stage, event) for event in events(1500)]
    for answer in answers:
        if isinstance(answer.event, JobSubmitted):
            scopes = [None, answer.event.queue_number] if answer.event.queue_number else [None]
            expected = [(queue, name) for queue in scopes for name in ALL]
            assert [(each.queue, each.grouping) for each in answer.wait_bounds] == expected
            assert not answer.coverage
            assert not answer.change_points
        else:
            assert answer.wait_bounds == ()
        assert Envelope.from_bytes(answer.to_bytes()) == answer
    assert {point.grouping for answer in answers for point in answer.change_points} >= {
        "plain",
        "nodes",
        "rtime",
        "rnprod",
    }
    assert {told.grouping for answer in answers for told in answer.coverage} == set(ALL)
    assert {told.queue for answer in answers for told in answer.coverage} == {None, 1, 2}
    assert sum(not answer.coverage and not answer.change_points for answer in answers) > len(answers) / 2


def test_an_answer_is_what_a_submission_would_get_and_changes_nothing() -> None:
    stage = WaitBounds(OPENED)
    for event in events(400):
        handle(stage, event)
    asked = JobSubmitted(time=stage.time, job_number=99_999, requested_processors=8, requested_time=60, queue_number=1)
    before = stage.snapshot()
    assert [each.grouping for each in stage.bounds_at(asked, 0.5, 0.95)] == 2 * [*FIVE, "ensemble"]
    found = stage.bounds_at(asked, 0.95, 0.95)
    assert stage.snapshot() == before
    assert handle(stage, asked).wait_bounds == found


@pytest.mark.parametrize("keys", ["bmbp:publish=all", "bmbp", "futures"])
def test_what_the_waiting_jobs_say_of_a_bound_is_counted_by_their_own_bounds(keys: str) -> None:
    run, sequence = opened(keys)
    own: dict[tuple[int, str, int | None], int] = {}
    beyond = 0
    for at, event in enumerate(events(400)):
        for bound in push(run, next(sequence), event).wait_bounds:
            assert isinstance(event, JobSubmitted)
            if bound.bound is not None:
                own[event.job_number, bound.grouping, bound.queue] = bound.bound
        if at % 20:
            continue
        stage: Any = run.handler
        asked = JobSubmitted(time=stage.time, job_number=99_999, requested_processors=8, queue_number=1)
        for bound in stage.bounds_at(asked, 0.95, 0.95):
            doubt = stage.doubt_at(bound)
            there = [each for each in stage.jobs.waiting.values() if bound.queue in (None, each.queue_number)]
            if bound.bound is None or not there:
                assert doubt is None
                continue
            outwaited = sum(
                stage.time - each.since > own.get((each.job_number, bound.grouping, bound.queue), bound.bound)
                for each in there
            )
            assert (doubt.outwaited, doubt.waiting) == (outwaited, len(there))
            beyond += outwaited
        assert [stage.doubt_at(bound) for bound in stage.bounds_at(asked, 0.9, 0.95)].count(None) > 0
    assert beyond


@given(st.integers(0, 400))
@examples(10)
def test_a_restored_stage_goes_on(cut: int) -> None:
    keys = "bmbp:recut=40"
    run, sequence = opened(keys)
    again, _ = opened(keys)
    logged = events(200)
    for event in logged[:cut]:
        push(run, next(sequence), event)
    again.restore(run.snapshot())
    for number, event in zip(sequence, logged[cut:], strict=False):
        assert push(again, number, event) == push(run, number, event)
    assert again.snapshot() == run.snapshot()


def test_no_wait_is_negative() -> None:
    """A start before its submission is rejected, and teaches nothing."""
    run, sequence = opened()
    push(run, next(sequence), submitted(1, 100))
    for event in (
        JobStarted(time=99, job_number=1, processors=1),
        JobStarted(time=100, job_number=2, processors=1),
        JobStarted(time=100, job_number=1, processors=129),
    ):
        before = run.handler.snapshot() if run.handler else None
        assert isinstance(push(run, next(sequence), event).event, Rejected)
        assert run.handler is not None
        assert run.handler.snapshot() == before
    push(run, next(sequence), JobStarted(time=100, job_number=1, processors=1))
    assert run.handler is not None
    revealed = run.handler.snapshot()["predictor"]["cluster"]["revealed"]
    assert unpacked_numbers(revealed).tolist() == [[1], [1 << 40], [0]]


def test_a_logged_start_before_its_submission_moves_to_it() -> None:
    source = Recorded(workload_of(job(1, 100, wait_time=-5), job(2, 101, wait_time=7)))
    told = list[Event]()
    while source.next_time() is not None:
        told += source.next_instant()
    starts = {each.job_number: each.time for each in told if isinstance(each, JobStarted)}
    assert starts == {1: 100, 2: 108}


def test_a_wait_beyond_all_reason_does_not_end_the_stage() -> None:
    stage = WaitBounds(OPENED)
    for number in range(60):
        handle(stage, submitted(number, 0))
    for number in range(60):
        handle(stage, JobStarted(time=MAX_DURATION + 1, job_number=number, processors=1))
    handle(stage, submitted(100, MAX_DURATION + 1))
