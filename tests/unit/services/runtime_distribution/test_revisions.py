"""Predictions made anew: equal to those of a twin that asks for every job at every event, without looking ahead."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.runtime_distribution.handler import PREDICTORS, RuntimeDistribution
from shadowtime.services.runtime_distribution.revisable import Conditioned, PointOutlook, Revisable
from shadowtime.services.runtime_distribution.revisions import Revisions, asked_about, is_estimate, whole_seconds
from shadowtime.shared.bounds import MAX_REVISIONS
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, RunTimeRevision
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.jobs_in_system import JobsInSystem
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import workloads
from tests.support.strategies.logs import PROCESSORS, eventful_logs

RUNNING = "templates:set=mean(key=user,running=64);linear(key=queue,running=256,history=8);mean(running=128),history=40"
SPECS = (
    *("templates", RUNNING, "gibbons:history=30", "gibbons:degree=2", "downey-mean", "downey-median:history=25"),
    *("class-p90:key=user,history=20", "class-mean-sigma", "last-two", "queue-maximum", "empirical"),
)


def anew(spec: str) -> str:
    """Return a SPEC of a run whose predictions are made anew."""
    parsed = parse(spec)
    return str(PREDICTORS.canonical(type(parsed)(parsed.name, {**parsed.keys, "predict": "anew"})))


class Twin:
    """Every job in the system is asked about at every submission and pass."""

    def __init__(self, predictor: Any) -> None:
        self.predictor = predictor if isinstance(predictor, Revisable) else Conditioned(predictor)
        self.last: dict[int, int | None] = {}

    def add(self, number: int, prediction: RunTimePrediction | None) -> None:
        self.last[number] = None if prediction is None else whole_seconds(prediction.point)

    def touch(self, number: int) -> None:
        assert number in self.last

    def forget(self, number: int) -> None:
        self.last.pop(number, None)

    def learn(self, ended: JobSubmitted) -> None:
        pass

    def take(self, now: int, jobs: JobsInSystem) -> tuple[RunTimeRevision, ...] | None:
        revised = []
        for number in sorted(self.last):
            asked = asked_about(number, now, jobs)
            if asked is None:
                continue
            made = self.predictor.predict_one(asked.job, asked.elapsed or 0)
            if made is None or not is_estimate(made.point, asked.elapsed):
                continue
            if whole_seconds(made.point) != self.last[number]:
                self.last[number] = whole_seconds(made.point)
                revised.append(RunTimeRevision(job_number=number, point=made.point, histogram=made.histogram))
        return tuple(revised) or None


def by_number(envelope: Envelope) -> list[RunTimeRevision]:
    return sorted(envelope.revisions or (), key=lambda revision: revision.job_number)


def twins(opened: ClusterOpened) -> tuple[RuntimeDistribution, RuntimeDistribution]:
    """Return the stage, and the stage with a twin in the place of its revisions."""
    stage, other = RuntimeDistribution(opened), RuntimeDistribution(opened)
    other.revisions = Twin(other.predictor)  # type: ignore[assignment]
    return stage, other


def assert_equal(opened: ClusterOpened, log: Iterator[Envelope]) -> int:
    """Feed both with a log, and return the number of revisions."""
    stage, other = twins(opened)
    count = 0
    for envelope in log:
        mine, theirs = stage.handle(envelope), other.handle(envelope)
        assert by_number(mine) == by_number(theirs)
        assert mine.run_time == theirs.run_time
        count += len(mine.revisions or ())
    return count


@pytest.mark.parametrize("spec", SPECS)
def test_few_are_asked_and_all_that_change_are_found_on_the_bundled_log(spec: str) -> None:
    opened = ClusterOpened(time=0, cluster="c", processors=128, policy="easy-sjbf", runtime=anew(spec))
    chain = Chain(opened)
    for _ in chain.play(Machine(prepare(read_swf(BUNDLED), limit=400))):
        pass
    assert assert_equal(opened, iter(chain.read["runtime_distribution"][1:])) > 10


@pytest.mark.parametrize("spec", SPECS)
@given(log=eventful_logs())
@examples(25)
def test_the_same_whatever_real_clusters_do(spec: str, log: tuple[ClusterOpened, list[Event]]) -> None:
    opened = log[0].model_copy(update={"runtime": anew(spec)})
    assert_equal(opened, (Envelope(run="r", sequence=n, event=event) for n, event in enumerate(log[1], 1)))


# No look-ahead: what is published before an instant does not depend on what happens after it.


def published(opened: ClusterOpened, jobs: Workload) -> list[tuple[int, Any]]:
    chain = Chain(opened)
    return [
        (answer.event.time, answer.model_dump(include={"event", "run_time", "revisions", "forecast"}))
        for _, answer in chain.play(Machine(jobs))
    ]


@pytest.mark.parametrize("spec", ["templates", RUNNING, "gibbons", "downey-median", "class-p90:key=user", "empirical"])
@given(jobs=workloads(processors=PROCESSORS), data=st.data())
@examples(25)
def test_nothing_depends_on_run_times_that_are_not_known_yet(spec: str, jobs: Workload, data: st.DataObject) -> None:
    policy = data.draw(st.sampled_from(["easy-sjbf:forecast=yes", "conservative", "lwf:forecast=yes", "probabilistic"]))
    opened = ClusterOpened(time=0, cluster="c", processors=PROCESSORS, policy=policy, runtime=anew(spec))
    before = published(opened, jobs)
    ends = sorted(time for time, answer in before if answer["event"]["kind"] == "JobEnded")
    if not ends:
        return
    cut = data.draw(st.sampled_from(ends))
    early = {
        answer["event"]["job_number"] for time, answer in before if answer["event"]["kind"] == "JobEnded" and time < cut
    }
    numbers, run_times = jobs.columns["job_number"], jobs.columns["run_time"]
    late = ~np.isin(numbers, list(early))  # a job still ends at its request, so never sooner than before
    longer = dataclasses.replace(jobs, columns=dict(jobs.columns) | {"run_time": run_times + 1_000 * late})
    after = published(opened, longer)
    assert [answer for answer in before if answer[0] < cut] == [answer for answer in after if answer[0] < cut]


def job(number: int, user: int = 1, **fields: Any) -> JobSubmitted:
    values: dict[str, Any] = {"requested_processors": 1, "requested_time": 7_200, "user_id": user} | fields
    return JobSubmitted(time=0, job_number=number, **values)


class Counting(Conditioned):
    """Counts how often it is asked."""

    always = False
    asked = 0

    def outlook(self, x: JobSubmitted, elapsed: int) -> PointOutlook:
        self.asked += 1
        return super().outlook(x, elapsed)._replace(groups=((x.user_id or 0,),))

    def changed_by(self, x: JobSubmitted) -> tuple[tuple[int, ...], ...]:
        return ((x.user_id or 0,),)


def test_only_jobs_of_a_changed_group_are_asked_about() -> None:
    inner = PREDICTORS.build(parse("last-two"))
    predictor = Counting(inner)
    revisions, jobs = Revisions(predictor), JobsInSystem()
    for number in range(1, 101):
        jobs.submit(job(number, user=number % 10))
        revisions.add(number, None)
    assert revisions.take(0, jobs) is None
    assert predictor.asked == 100
    assert revisions.take(0, jobs) is None
    assert predictor.asked == 100
    for run_time in (60, 120):
        revisions.learn(job(0, user=3))
        inner.learn_one(job(0, user=3), run_time)
    assert [(each.job_number, each.point) for each in revisions.take(5, jobs) or ()] == [
        (number, 90.0) for number in range(3, 101, 10)
    ]
    assert predictor.asked == 110


def test_an_event_asks_for_so_many_jobs_and_the_next_ones_for_the_others() -> None:
    predictor = PREDICTORS.build(parse("last-two"))
    assert isinstance(predictor, Revisable)
    revisions, jobs = Revisions(predictor), JobsInSystem()
    for number in range(1, 2 * MAX_REVISIONS + 11):
        jobs.submit(job(number))
        revisions.add(number, None)
    for run_time in (60, 120):
        predictor.learn_one(job(0), run_time)
    taken = [[each.job_number for each in revisions.take(5, jobs) or ()] for _ in range(4)]
    assert [len(each) for each in taken] == [MAX_REVISIONS, MAX_REVISIONS, 10, 0]
    assert [number for numbers in taken for number in numbers] == list(range(1, 2 * MAX_REVISIONS + 11))


def test_a_job_that_has_outlived_what_is_known_keeps_its_prediction() -> None:
    stage = RuntimeDistribution(ClusterOpened(time=0, cluster="c", processors=9, runtime=anew("last-two")))

    def handled(event: Event) -> Envelope:
        return stage.handle(Envelope(run="r", sequence=0, event=event))

    for number in (1, 2):
        handled(job(number))
        handled(JobStarted(time=0, job_number=number, processors=1))
    handled(job(3))
    handled(JobStarted(time=0, job_number=3, processors=1))
    for number, run_time in ((1, 60), (2, 120)):
        handled(JobEnded(time=run_time, job_number=number, run_time=run_time))
    assert handled(SchedulingPoint(time=120)).revisions is None  # 90 s: job 3 has run for 120
    handled(JobSubmitted(time=120, job_number=4, requested_processors=1, user_id=1))
    assert handled(SchedulingPoint(time=130)).revisions is None


def test_the_time_that_a_job_has_run_leaves_out_its_suspension() -> None:
    stage = RuntimeDistribution(ClusterOpened(time=0, cluster="c", processors=9, runtime=anew("downey-median")))

    def handled(event: Event) -> Envelope:
        return stage.handle(Envelope(run="r", sequence=0, event=event))

    for number in (1, 2, 3):
        handled(job(number))
        handled(JobStarted(time=0, job_number=number, processors=1))
    handled(job(4))
    for number, run_time in ((1, 60), (2, 600), (3, 3_000)):
        handled(JobEnded(time=run_time, job_number=number, run_time=run_time))
    handled(JobStarted(time=3_000, job_number=4, processors=1))
    assert [each.job_number for each in handled(SchedulingPoint(time=3_300)).revisions or ()] == [4]
    handled(JobSuspended(time=3_400, job_number=4))
    assert handled(SchedulingPoint(time=5_000)).revisions is None
    handled(JobResumed(time=6_000, job_number=4))
    (revision,) = handled(SchedulingPoint(time=6_100)).revisions or ()
    made = stage.predictor.predict_one(job(4), 500)  # type: ignore[call-arg]
    assert made is not None
    assert revision.point == made.point


def test_nothing_is_left_of_jobs_that_are_gone() -> None:
    stage = RuntimeDistribution(ClusterOpened(time=0, cluster="c", processors=9, runtime=anew(RUNNING)))
    for event in (
        job(1),
        job(2),
        JobStarted(time=1, job_number=1, processors=1),
        SchedulingPoint(time=2),
        JobWithdrawn(time=3, job_number=2, reason="cancelled"),
        JobEnded(time=9, job_number=1, run_time=8),
    ):
        stage.handle(Envelope(run="r", sequence=0, event=event))
    assert stage.revisions is not None
    assert stage.revisions.snapshot() == {"jobs": [], "pending": []}
