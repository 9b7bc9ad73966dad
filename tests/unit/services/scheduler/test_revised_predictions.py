"""Predictions that were made anew, as the scheduler takes them over."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.shared.distributions import BINS
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobChanged,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, RunTimeRevision, WalltimeAdjustment
from shadowtime.testing.examples import examples

SETTINGS = ["", "distribution=prior", "running=yes", "distribution=ignore,adjust_queue=no"]
HISTOGRAMS = st.lists(st.floats(0.05, 1), min_size=0, max_size=20).map(
    lambda masses: tuple(mass / sum(masses) for mass in masses)
)
POINTS = st.floats(0, 4_000)


def job(number: int, **fields: Any) -> JobSubmitted:
    values: dict[str, Any] = {"time": 0, "requested_processors": 4, "requested_time": 3_000} | fields
    return JobSubmitted(job_number=number, **values)


class Pushed:
    """A scheduler, and what it answers."""

    def __init__(self, policy: str) -> None:
        self.stage = Scheduler(ClusterOpened(time=0, cluster="c", processors=10, policy=policy))

    def push(self, event: Event, **fields: Any) -> Envelope:
        return self.stage.handle(Envelope(run="r", sequence=1, event=event, **fields))

    def columns(self) -> list[Any]:
        """Return what passes, orders and forecasts read of the first pool."""
        pool = self.stage.pools[0]
        queue, running = pool.queue, pool.running
        lists = [
            *(queue.predicted_time, queue.limit_time, queue.order_point, queue.order_request),
            *(running.predicted_time, running.limit_time, running.start_time),
        ]
        slots = [slot for table in (queue, running) for slot in table.slot.tolist()]
        masses = [np.zeros(BINS) if slot < 0 else queue.histograms.masses[slot] for slot in slots]
        return [values.tolist() for values in (*lists, *masses)]


@pytest.mark.parametrize("settings", SETTINGS)
@given(
    first=st.tuples(POINTS, HISTOGRAMS),
    later=st.lists(st.tuples(st.sampled_from([1, 2, 3]), POINTS, HISTOGRAMS), max_size=6),
    adjusted=st.none() | st.integers(1, 3_000),
)
@examples(40)
def test_the_tables_are_those_of_jobs_that_were_predicted_so_at_submission(
    settings: str, first: tuple[float, Any], later: list[tuple[int, float, Any]], adjusted: int | None
) -> None:
    policy = f"easy:{settings}" if settings else "easy"
    revised, twin = Pushed(policy), Pushed(policy)
    adjustment = None
    if adjusted is not None:
        adjustment = WalltimeAdjustment(adjusted_time=adjusted, observations=9, percentile=80)
    last = dict.fromkeys((1, 2, 3), first)
    for number in last:
        made = RunTimePrediction(point=first[0], observations=1, histogram=first[1])
        revised.push(job(number), run_time=made, adjustment=adjustment)
    revised.push(JobStarted(time=5, job_number=2, processors=4))
    for number, point, histogram in later:
        last[number] = point, histogram or last[number][1]
        revision = RunTimeRevision(job_number=number, point=point, histogram=histogram)
        answer = revised.push(SchedulingPoint(time=6), revisions=(revision,))
        assert isinstance(answer.event, Decided)
        assert answer.revisions == (revision,)
    for number, (point, histogram) in last.items():
        made = RunTimePrediction(point=point, observations=1, histogram=histogram)
        twin.push(job(number), run_time=made, adjustment=adjustment)
    twin.push(JobStarted(time=5, job_number=2, processors=4))
    assert revised.columns() == twin.columns()
    again = Pushed(policy)
    again.stage.restore(revised.stage.snapshot())
    assert again.columns() == revised.columns()
    assert again.stage.snapshot() == revised.stage.snapshot()


def starts(answer: Envelope) -> list[int]:
    assert isinstance(answer.event, Decided)
    return [start.job_number for start in answer.event.starts]


@pytest.mark.parametrize("policy", ["easy", "all-reserve", "conservative", "probabilistic:tau=0.001"])
def test_a_pass_backfills_by_the_prediction_of_now(policy: str) -> None:
    """Job 3 fits before the head only if the running job runs for longer than was first predicted."""
    pushed = Pushed(policy)
    histogram = (*[0.0] * 10, 1.0)  # up to 357 s
    pushed.push(job(1, requested_processors=8), run_time=RunTimePrediction(point=100.0, observations=1))
    pushed.push(JobStarted(time=0, job_number=1, processors=8, limit=3_000))
    pushed.push(job(2, requested_processors=10), run_time=RunTimePrediction(point=100.0, observations=1))
    third = RunTimePrediction(point=300.0, observations=1, histogram=histogram)
    pushed.push(job(3, requested_processors=2), run_time=third)
    longer = RunTimeRevision(job_number=1, point=2_000.0, histogram=(*[0.0] * 13, 1.0))
    if policy.startswith("probabilistic"):
        assert starts(pushed.push(SchedulingPoint(time=10))) == []
    else:
        assert starts(pushed.push(SchedulingPoint(time=10))) == []
        assert starts(pushed.push(SchedulingPoint(time=20), revisions=(longer,))) == [3]


def test_a_forecast_uses_the_prediction_of_now() -> None:
    pushed = Pushed("fcfs:forecast=yes")
    made = RunTimePrediction(point=100.0, observations=1)
    pushed.push(job(1, requested_processors=10), run_time=made)
    pushed.push(JobStarted(time=0, job_number=1, processors=10, limit=3_000))
    waits = []
    for number, revisions in ((2, None), (3, (RunTimeRevision(job_number=1, point=500.0),))):
        event = job(number, time=10, requested_processors=10)
        answer = pushed.push(event, run_time=made, revisions=revisions)
        assert answer.forecast is not None
        waits.append(answer.forecast.wait)
    assert waits == [90, 590]  # job 3 waits for job 2, too
    event = job(4, time=10, requested_processors=10)
    answer = pushed.push(event, run_time=made, revisions=(RunTimeRevision(job_number=2, point=300.0),))
    assert answer.forecast is not None
    assert answer.forecast.wait == 490 + 300 + 100


def test_a_blocked_job_enters_the_queue_with_its_last_prediction() -> None:
    pushed = Pushed("easy")
    pushed.push(job(1, blocked=True), run_time=RunTimePrediction(point=100.0, observations=1))
    pushed.push(job(2, blocked=True))
    revisions = tuple(RunTimeRevision(job_number=number, point=200.0 + number) for number in (1, 2))
    pushed.push(SchedulingPoint(time=5), revisions=revisions)
    for number in (1, 2):
        pushed.push(JobStarted(time=6, job_number=number, processors=4))
    assert pushed.stage.pools[0].running.predicted_time.tolist() == [201, 202]


def test_a_limit_of_a_running_job_bounds_later_predictions() -> None:
    pushed = Pushed("easy")
    pushed.push(job(1), run_time=RunTimePrediction(point=100.0, observations=1))
    pushed.push(JobStarted(time=0, job_number=1, processors=4, limit=3_000))
    pushed.push(JobChanged(time=1, job_number=1, requested_time=50))
    pushed.push(SchedulingPoint(time=5), revisions=(RunTimeRevision(job_number=1, point=400.0),))
    assert pushed.stage.pools[0].running.predicted_time.tolist() == [50]


def test_revisions_of_unknown_jobs_change_nothing() -> None:
    pushed = Pushed("easy")
    before = pushed.stage.snapshot()
    pushed.push(SchedulingPoint(time=0), revisions=(RunTimeRevision(job_number=9, point=400.0),))
    assert pushed.stage.snapshot() == before
