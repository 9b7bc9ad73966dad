"""The scores of a run against their definitions, computed over the whole log at once."""

from math import exp, log
from statistics import fmean, median_low
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.shared.messages import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, WalltimeAdjustment
from shadowtime.shared.messages.scores import Scores
from shadowtime.shared.statistics.slowdown import slowdown
from shadowtime.testing.examples import examples

MACHINE = 64


class Logged(NamedTuple):
    """What became of a job; times in seconds."""

    submit_time: int
    wait: int
    run_time: int
    processors: int
    requested_time: int | None
    predicted_time: float | None
    adjusted_time: int | None
    killed: bool
    wasted_before: int | None  # run time of an execution that was cut short and requeued
    cut_by: Outcome

    @property
    def start_time(self) -> int:
        return self.submit_time + self.wait + (0 if self.wasted_before is None else self.wasted_before)

    @property
    def end_time(self) -> int:
        return self.start_time + self.run_time


JOBS = st.builds(
    Logged,
    submit_time=st.integers(0, 10_000),
    wait=st.sampled_from([0, 0, 3, 10, 60]) | st.integers(0, 100_000),
    run_time=st.integers(0, 20) | st.integers(0, 50_000),
    processors=st.integers(1, MACHINE),
    requested_time=st.none() | st.integers(1, 50_000),
    predicted_time=st.none() | st.floats(0, 50_000),
    adjusted_time=st.none() | st.integers(1, 50_000),
    killed=st.booleans(),
    wasted_before=st.none() | st.integers(0, 500),
    cut_by=st.sampled_from(["killed", "limit"]),
)


def story(jobs: list[Logged]) -> list[Envelope]:
    """Return the log of these jobs, in order of time."""
    told: list[tuple[int, int, int, Event, dict[str, Any]]] = []
    for number, job in enumerate(jobs):
        added: dict[str, Any] = {}
        if job.predicted_time is not None:
            added["run_time"] = RunTimePrediction(point=job.predicted_time, observations=1)
        if job.adjusted_time is not None:
            added["adjustment"] = WalltimeAdjustment(adjusted_time=job.adjusted_time, observations=1)
        submitted = JobSubmitted(
            time=job.submit_time,
            job_number=number,
            requested_processors=job.processors,
            requested_time=job.requested_time,
        )
        told.append((job.submit_time, number, 0, submitted, added))
        if job.wasted_before is not None:
            first = job.submit_time + job.wait
            started = JobStarted(time=first, job_number=number, processors=job.processors)
            killed = JobEnded(
                time=job.start_time, job_number=number, run_time=job.wasted_before, outcome=job.cut_by, requeued=True
            )
            told += [(first, number, 1, started, {}), (job.start_time, number, 2, killed, {})]
        started = JobStarted(time=job.start_time, job_number=number, processors=job.processors)
        ended = JobEnded(
            time=job.end_time,
            job_number=number,
            run_time=job.run_time,
            outcome="killed" if job.killed else "completed",
        )
        told += [(job.start_time, number, 3, started, {}), (job.end_time, number, 4, ended, {})]
    told.sort(key=lambda each: each[:3])
    return [
        Envelope(run="r", sequence=sequence, event=event).model_copy(update=added)
        for sequence, (_, _, _, event, added) in enumerate(told, 1)
    ]


def scores_of(envelopes: list[Envelope]) -> Scores:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=MACHINE))
    time = 0
    for envelope in envelopes:
        assert board.handle(envelope) == envelope
        time = envelope.event.time
    scores = board.handle(Envelope(run="r", sequence=10**6, event=ClusterClosed(time=time))).scores
    assert scores is not None
    assert not board.predictions
    assert not board.adjusted_times
    return scores


@given(st.lists(JOBS, min_size=1, max_size=8), st.data())
@examples(150)
def test_scores_are_the_same_when_interrupted(jobs: list[Logged], data: st.DataObject) -> None:
    log = story(jobs)
    cut = data.draw(st.integers(0, len(log)))
    opened = ClusterOpened(time=0, cluster="c", processors=MACHINE)
    board, again = Scoreboard(opened), Scoreboard(opened)
    for envelope in log[:cut]:
        board.handle(envelope)
    again.restore(orjson.loads(orjson.dumps(board.snapshot())))
    for envelope in log[cut:]:
        again.handle(envelope)
    closed = Envelope(run="r", sequence=10**6, event=ClusterClosed(time=log[-1].event.time))
    assert again.handle(closed).scores == scores_of(log)


def mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


@given(st.lists(JOBS, max_size=12))
@examples(200)
def test_policy_scores_are_their_definitions(jobs: list[Logged]) -> None:
    got = scores_of(story(jobs)).policy.model_dump()
    waits = [job.start_time - job.submit_time for job in jobs]
    slowdowns = [(wait + job.run_time) / max(job.run_time, 10) for wait, job in zip(waits, jobs, strict=True)]
    weights = [
        (wait / (job.requested_time or max(job.run_time, 1))) ** 3 * job.processors
        for wait, job in zip(waits, jobs, strict=True)
    ]
    makespan = max(job.end_time for job in jobs) - min(job.submit_time for job in jobs) if jobs else 0
    work = sum(job.processors * job.run_time for job in jobs)
    cut_short = [job.processors * job.wasted_before for job in jobs if job.wasted_before is not None]
    cut_short += [job.processors * job.run_time for job in jobs if job.killed]
    weighted = sum(weight * wait for weight, wait in zip(weights, waits, strict=True))
    expected = {
        "jobs": len(jobs),
        "mean_wait": mean(list(map(float, waits))),
        "geometric_mean_wait": exp(fmean(log(max(wait, 10)) for wait in waits)) if jobs else None,
        "max_wait": max(waits, default=None),
        "zero_wait_share": waits.count(0) / len(jobs) if jobs else None,
        "mean_bounded_slowdown": mean([max(each, 1.0) for each in slowdowns]),
        "mean_bounded_slowdown_unclamped": mean(slowdowns),
        "mean_slowdown": mean([slowdown(wait, job.run_time) for wait, job in zip(waits, jobs, strict=True)]),
        "mean_response": mean([float(wait + job.run_time) for wait, job in zip(waits, jobs, strict=True)]),
        "weighted_mean_wait": weighted / sum(weights) if any(weights) else None,
        "wait_weighted_mean_wait": sum(wait * wait for wait in waits) / sum(waits) if any(waits) else None,
        "utilization": work / (MACHINE * makespan) if makespan else None,
        "makespan": makespan,
        "killed": len(cut_short),
        "wasted_processor_seconds": sum(cut_short),
        "scheduling_points": 0,
    }
    ends = [each.event for each in story(jobs) if isinstance(each.event, JobEnded)]
    expected["ended_at_limit"] = sum(end.outcome == "limit" and not end.requeued for end in ends)
    assert set(got) == set(expected)
    for name, value in expected.items():
        assert got[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name


@given(st.lists(JOBS, max_size=12))
@examples(200)
def test_run_time_scores_are_their_definitions(jobs: list[Logged]) -> None:
    scores = scores_of(story(jobs)).run_time
    predicted = [
        (job.requested_time if job.predicted_time is None else job.predicted_time, job.run_time) for job in jobs
    ]
    pairs = [(prediction, run_time) for prediction, run_time in predicted if prediction is not None]
    assert scores.jobs == len(pairs)
    assert scores.predictions == sum(job.predicted_time is not None for job in jobs)
    assert scores.mean_absolute_error == pytest.approx(mean([abs(each - run_time) for each, run_time in pairs]))
    assert scores.mean_run_time == pytest.approx(mean([float(run_time) for _, run_time in pairs]))
    assert (scores.log_score, scores.crps, scores.pit) == (None, None, ())  # nothing predicted a distribution


def accuracy(run_time: int, estimate: int) -> float:
    return min(run_time, estimate) / max(run_time, estimate)


@given(st.lists(JOBS, max_size=12))
@examples(200)
def test_adjustment_scores_are_their_definitions(jobs: list[Logged]) -> None:
    scores = scores_of(story(jobs)).adjustment
    asked = [
        (job.run_time, job.requested_time, job.requested_time if job.adjusted_time is None else job.adjusted_time)
        for job in jobs
        if job.requested_time is not None and not job.killed
    ]
    adjusted = [accuracy(run_time, estimate) for run_time, _, estimate in asked]
    assert scores.mean_accuracy == pytest.approx(mean(adjusted))
    assert scores.mean_accuracy_requested == pytest.approx(mean([accuracy(run, req) for run, req, _ in asked]))
    if not asked:
        assert set(scores.model_dump().values()) == {None}
        return
    assert scores.median_accuracy == pytest.approx(median_low(adjusted), abs=0.5e-4 + 1e-12)
    changed = [(run, estimate) for run, requested, estimate in asked if estimate != requested]
    shares = {
        "none": len(asked) - len(changed),
        "over": sum(run <= estimate for run, estimate in changed),
        "under": sum(0 < run - estimate < 1800 for run, estimate in changed),
        "bad": sum(run - estimate >= 1800 for run, estimate in changed),
    }
    for name, count in shares.items():
        assert getattr(scores, name) == pytest.approx(count / len(asked)), name


def test_passes_are_counted() -> None:
    decided = [Envelope(run="r", sequence=sequence, event=Decided(time=sequence)) for sequence in (1, 2, 3)]
    assert scores_of(decided).policy.scheduling_points == 3


def test_a_job_that_still_runs_is_not_scored() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=MACHINE))
    job = JobSubmitted(time=5, job_number=1, requested_processors=1, requested_time=60)
    for event in (job, JobStarted(time=9, job_number=1, processors=1)):
        board.handle(Envelope(run="r", sequence=1, event=event))
    answer = board.handle(Envelope(run="r", sequence=2, event=ClusterClosed(time=9)))
    assert answer.scores is not None
    assert answer.scores.policy.jobs == 0
    assert answer.scores.policy.mean_wait is None
    assert answer.scores.policy.makespan == 0
