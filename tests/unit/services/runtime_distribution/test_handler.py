"""The stage adds predictions to submissions and learns from ends."""

import pytest

from shadowtime.services.runtime_distribution.handler import RuntimeDistribution
from shadowtime.shared.messages import (
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
)
from shadowtime.shared.messages.predictions import RunTimePrediction


def opened_stage() -> RuntimeDistribution:
    return RuntimeDistribution(ClusterOpened(time=0, cluster="c", processors=8, runtime="last-two"))


def handle(stage: RuntimeDistribution, event: Event) -> Envelope:
    return stage.handle(Envelope(run="r", sequence=1, event=event))


def submit(stage: RuntimeDistribution, job_number: int, requested_time: int = 500) -> Envelope:
    job = JobSubmitted(
        time=stage.time, job_number=job_number, requested_processors=1, requested_time=requested_time, user_id=7
    )
    return handle(stage, job)


def run(
    stage: RuntimeDistribution,
    job_number: int,
    run_time: int,
    outcome: Outcome = "completed",
    *,
    requeued: bool = False,
) -> None:
    submit(stage, job_number)
    handle(stage, JobStarted(time=stage.time, job_number=job_number, processors=1, limit=500))
    time = stage.time + run_time
    handle(stage, JobEnded(time=time, job_number=job_number, run_time=run_time, outcome=outcome, requeued=requeued))


def test_a_submission_gets_its_prediction_and_keeps_the_rest() -> None:
    stage = opened_stage()
    assert submit(stage, 1).run_time is None
    run(stage, 2, 100)
    run(stage, 3, 200)
    answer = submit(stage, 4)
    assert answer.run_time == RunTimePrediction(point=150.0, observations=2)
    assert answer.model_copy(update={"run_time": None}) == Envelope(run="r", sequence=1, event=answer.event)
    assert submit(stage, 5, requested_time=120).run_time == RunTimePrediction(point=120.0, observations=2)


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled", "limit"])
def test_it_learns_from_every_job_that_came_to_its_end(outcome: Outcome) -> None:
    stage = opened_stage()
    run(stage, 1, 100, outcome)
    run(stage, 2, 200, outcome)
    assert submit(stage, 3).run_time == RunTimePrediction(point=150.0, observations=2)


@pytest.mark.parametrize(("outcome", "requeued"), [("killed", False), ("killed", True), ("limit", True)])
def test_it_learns_nothing_from_what_the_scheduler_cut_short(outcome: Outcome, requeued: bool) -> None:
    stage = opened_stage()
    for job_number in (1, 2):
        run(stage, job_number, 5, outcome, requeued=requeued)
    assert submit(stage, 3).run_time is None
