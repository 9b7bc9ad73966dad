"""Errors over all predictions that are made: as if each were written down at its event."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.scoreboard.scores.prediction_workload import (
    COLUMNS,
    MAX_CHANGES,
    PredictionWorkload,
)
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import workloads
from tests.support.strategies.logs import PROCESSORS

RUNTIMES = ["requested", "last-two", "last-two(predict=anew)", "downey-mean(predict=anew)", "gibbons(predict=anew)"]


@given(
    jobs=workloads(processors=PROCESSORS),
    runtime=st.sampled_from(RUNTIMES),
    policy=st.sampled_from(["lwf", "easy", "conservative:speculate=0.5"]),
)
@examples(80)
def test_it_is_the_mean_over_all_predictions_that_were_made(jobs: Workload, runtime: str, policy: str) -> None:
    opened = ClusterOpened(time=0, cluster="c", processors=PROCESSORS, policy=policy, runtime=runtime)
    chain, last, waiting = Chain(opened), dict[int, float | None](), set[int]()
    made: dict[str, list[tuple[int, float | None]]] = {"submissions": [], "passes": [], "passes_waiting": []}
    run_times: dict[int, int] = {}
    for _, answer in chain.play(Machine(jobs)):
        event = answer.event
        last |= {revision.job_number: revision.point for revision in answer.revisions or ()}
        if isinstance(event, JobSubmitted):
            last[event.job_number] = event.requested_time if answer.run_time is None else answer.run_time.point
            waiting.add(event.job_number)
            made["submissions"] += last.items()
        elif isinstance(event, JobStarted):
            waiting.discard(event.job_number)
        elif isinstance(event, JobEnded) and event.requeued:
            waiting.add(event.job_number)
        elif isinstance(event, JobEnded):
            run_times[event.job_number] = event.own_run_time
            del last[event.job_number]
        elif isinstance(event, Decided):
            made["passes"] += last.items()
            made["passes_waiting"] += [(number, last[number]) for number in waiting]

    assert answer.scores is not None
    scores = answer.scores.prediction_workload
    if not any(run_times.values()):
        assert scores is None
        return
    assert scores is not None
    mean = sum(run_times.values()) / len(run_times)
    for name, predictions in made.items():
        errors = [abs(point - run_times[number]) for number, point in predictions if point is not None]
        of_name = getattr(scores, name)
        assert of_name.predictions == len(errors)
        if errors:
            assert of_name.mean_absolute_error == pytest.approx(sum(errors) / len(errors))
            assert of_name.error_share == pytest.approx(sum(errors) / len(errors) / mean)


def test_many_changes_of_one_job_take_bounded_memory_and_lose_no_use() -> None:
    workload = PredictionWorkload()
    workload.submit(1, 10.0)
    for change in range(10 * MAX_CHANGES):
        workload.decide()
        workload.replace(1, 20.0 + change)
        assert len(workload.jobs[1].counted) <= COLUMNS * MAX_CHANGES
    again = PredictionWorkload()
    again.restore(orjson.loads(orjson.dumps(workload.snapshot())))
    for each in (workload, again):
        each.end(1, 10_000)  # beyond all of them: merging changes little
        scores = each.scores(10_000.0)
        assert scores is not None
        assert scores.passes.predictions == scores.passes_waiting.predictions == 10 * MAX_CHANGES
        points = [10.0, *(20.0 + change for change in range(10 * MAX_CHANGES - 1))]
        assert scores.passes.mean_absolute_error == pytest.approx(10_000 - sum(points) / len(points), rel=1e-4)


def test_a_job_without_request_and_prediction_does_not_count() -> None:
    workload = PredictionWorkload()
    workload.submit(1, None)
    workload.decide()
    workload.end(1, 60)
    scores = workload.scores(60.0)
    assert scores is not None
    assert scores.submissions.predictions == scores.passes.predictions == 0
    assert scores.passes.error_share is None
