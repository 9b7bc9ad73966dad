"""The stage adds an adjusted request where its scheme has one."""

from typing import Any

import pytest

from shadowtime.services.walltime_adjustment.handler import ADJUSTERS, WalltimeAdjustments
from shadowtime.shared.messages import (
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
)
from shadowtime.shared.messages.predictions import WalltimeAdjustment
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.predictor import Passthrough


class Halved(Passthrough):
    """An adjuster that keeps what it has learned."""

    def __init__(self) -> None:
        self.learned: list[tuple[int, int]] = []

    def predict_one(self, x: JobSubmitted) -> WalltimeAdjustment:  # type: ignore[override]
        return WalltimeAdjustment(adjusted_time=(x.requested_time or 2) // 2, observations=len(self.learned))

    def learn_one(self, x: JobSubmitted, y: JobEnded) -> None:  # type: ignore[override]
        self.learned.append((x.job_number, y.run_time))


def submitted(job_number: int) -> JobSubmitted:
    return JobSubmitted(time=0, job_number=job_number, requested_processors=1, requested_time=600)


def handle(stage: WalltimeAdjustments, event: Event) -> Envelope:
    return stage.handle(Envelope(run="r", sequence=1, event=event))


def test_no_adjustment_is_the_default() -> None:
    stage = WalltimeAdjustments(ClusterOpened(time=0, cluster="c", processors=8))
    envelope = Envelope(run="r", sequence=1, event=submitted(1))
    assert stage.handle(envelope) == envelope
    assert ADJUSTERS.build(parse("none")).predict_one(submitted(1)) is None


def test_it_adds_the_adjustment_and_learns_run_times_at_the_end() -> None:
    stage = WalltimeAdjustments(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = halved = Halved()
    assert handle(stage, submitted(1)).adjustment == WalltimeAdjustment(adjusted_time=300, observations=0)
    handle(stage, JobStarted(time=50, job_number=1, processors=1))
    assert halved.learned == []
    handle(stage, JobEnded(time=90, job_number=1, run_time=40))
    assert halved.learned == [(1, 40)]


@pytest.mark.parametrize(
    ("run_time", "outcome"), [(200, "over"), (300, "over"), (301, "under"), (2099, "under"), (2100, "bad")]
)
def test_the_end_tells_what_the_adjustment_turned_out_to_be(run_time: int, outcome: Any) -> None:
    stage = WalltimeAdjustments(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = Halved()
    handle(stage, submitted(1))
    handle(stage, JobStarted(time=50, job_number=1, processors=1))
    answer = handle(stage, JobEnded(time=50 + run_time, job_number=1, run_time=run_time))
    assert answer.adjustment == WalltimeAdjustment(adjusted_time=300, observations=0, outcome=outcome)
    assert not stage.adjustments


def test_a_job_cut_short_by_the_scheduler_teaches_nothing() -> None:
    stage = WalltimeAdjustments(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = halved = Halved()
    handle(stage, submitted(1))
    ends: list[tuple[Outcome, bool]] = [("limit", True), ("killed", True), ("killed", False)]
    for outcome, requeued in ends:
        handle(stage, JobStarted(time=50, job_number=1, processors=1))
        end = JobEnded(time=50, job_number=1, run_time=0, outcome=outcome, requeued=requeued)
        assert handle(stage, end).adjustment is None
        assert bool(stage.adjustments) == requeued
    assert halved.learned == []
