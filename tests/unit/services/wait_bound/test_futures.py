"""Bounds from futures: the machine is followed, arrivals come again, and nothing but the state decides."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given

from shadowtime.services.pipeline import STAGES
from shadowtime.services.wait_bound.futures.arrivals import WEEK, Arrivals
from shadowtime.services.wait_bound.futures.bounder import WIDTH, FuturesBound, FutureSettings
from shadowtime.services.wait_bound.futures.kernels import NEVER
from shadowtime.services.wait_bound.futures.simulation import MachineFutures
from shadowtime.services.wait_bound.handler import WaitBounds
from shadowtime.shared.distributions.outcome_rows import unpacked_rows
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
)
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.examples import examples
from tests.support.strategies.hostile import OPENINGS, STREAMS, Json, events

WAIT_BOUND = STAGES[2]
OPENED = ClusterOpened(time=0, cluster="c", processors=8)


def machine(*, arrivals: bool = False) -> MachineFutures:
    made = MachineFutures(10, arrivals=arrivals)
    made.observe(OPENED)
    return made


def job(number: int, processors: int, limit: int | None = 100, time: int = 0, **asked: Any) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=number, requested_processors=processors, requested_time=limit, **asked)


def started(number: int, processors: int, time: int = 0) -> JobStarted:
    return JobStarted(time=time, job_number=number, processors=processors, limit=100)


@pytest.mark.parametrize("spec", ["futures:futures=10", "futures:futures=10,trees=yes"])
@given(opening=OPENINGS, stream=STREAMS)
@examples(60, suppress_health_check=list(HealthCheck))
def test_whatever_happens_it_knows_what_waits_and_what_is_held(
    spec: str, opening: Json, stream: list[tuple[int, Any]]
) -> None:
    run = StageRun(WAIT_BOUND)
    for sequence, message in enumerate(events({**opening, "wait_bound": spec}, stream)):
        run.push(Envelope.from_bytes(orjson.dumps({"run": "r", "cluster": "c", "sequence": sequence, **message})))
        assert isinstance(run.handler, WaitBounds)
        assert isinstance(run.handler.predictor, FuturesBound)
        jobs, there = run.handler.jobs, run.handler.predictor.machine.jobs
        held = [each.started.processors for each in jobs.running.values() if each.suspended is None]
        assert there.held == sum(held) == there.running(0)[0].sum()
        trees, _ = run.handler.predictor.snapshot()["trees"] or ({"followed": []}, None)
        followed = {number: unpacked_rows(row, WIDTH) for number, row in trees["followed"]}
        assert followed.keys() <= jobs.waiting.keys() | jobs.running.keys()  # the wait before a trial is not known yet
        assert all(np.isfinite(row).all() for row in followed.values())
        assert sorted(there.waiting()[0]) == sorted(each.requested_processors for each in jobs.waiting.values())


def test_jobs_that_stop_change_or_may_not_start_hold_nothing_or_what_they_have() -> None:
    known = machine()
    for number in (1, 2):
        known.submit(job(number, 4), ())
        known.observe(started(number, 4))
    asked = job(9, 4)

    def start() -> int:
        return int(known.starts(asked, (), 10)[0])

    assert start() == 100
    known.observe(JobSuspended(time=10, job_number=1))
    assert start() == 10
    known.observe(JobResumed(time=10, job_number=1))
    known.observe(JobChanged(time=10, job_number=2, requested_processors=2, requested_time=50))
    assert start() == 50
    known.submit(job(3, 8, blocked=True), ())
    assert start() == 50
    known.observe(JobChanged(time=10, job_number=3, blocked=False))
    assert start() == 200  # behind a job that needs the whole machine
    assert known.starts(job(9, 4, blocked=True), (), 10).tolist() == [200] * 10
    known.observe(JobWithdrawn(time=10, job_number=3))
    known.observe(JobEnded(time=10, job_number=2, run_time=10, requeued=True))
    assert start() == 100  # the requeued job is before it, and four are held
    known.observe(CapacityChanged(time=10, processors=3))
    assert known.starts(asked, (), 10).tolist() == [NEVER] * 10


def test_a_job_that_changed_queues_is_found_again_when_it_starts() -> None:
    known = machine()
    known.submit(job(1, 8), ())
    known.observe(JobWithdrawn(time=0, job_number=1, reason="held"))
    known.observe(started(1, 8))
    assert known.starts(job(2, 1), (), 5).tolist() == [100] * 10


def test_run_times_are_drawn_given_for_how_long_a_job_has_run() -> None:
    known = machine()
    known.submit(job(1, 8, 10_000), (0.0,) * 5 + (0.5,) + (0.0,) * 4 + (0.5,))
    known.observe(JobStarted(time=0, job_number=1, processors=8, limit=10_000))
    soon, late = (known.starts(job(2, 1), (), now) for now in (1, 60))
    assert soon.min() < 20 < 180 < soon.max()
    assert late.min() > 180


def test_what_came_a_week_ago_comes_again_and_larger_jobs_than_the_machine_do_not() -> None:
    """A job that backfills on its short request has no room where one came before it a week ago."""
    known = machine(arrivals=True)
    for number, hour in enumerate(range(168)):
        known.submit(job(number, 1 if hour % 2 else 9, 60, time=3600 * hour), ())
        known.observe(JobWithdrawn(time=3600 * hour, job_number=number))
    table, firsts, shifts = known.arrivals.draw(WEEK + 50, 10)
    times = table[firsts, 0] + shifts
    assert (times > WEEK + 50).all()
    assert (np.abs(shifts - WEEK) <= 2 * 3600).all()
    assert len(set(shifts.tolist())) > 5
    assert known.arrivals.draw(WEEK - 1, 10)[0].shape == (0, 4)


def test_run_times_of_arrivals_are_learned_and_old_ones_forgotten() -> None:
    arrivals = Arrivals(0)
    for week in range(8):
        arrivals.add(job(week, 1, 600, time=week * WEEK))
    arrivals.end(7, 90)
    arrivals.end(6, 9_000)
    arrivals.end(1, 5)  # long gone
    again = Arrivals(0)
    again.restore(orjson.loads(orjson.dumps(arrivals.snapshot())))
    again.end(5, 80)
    table, _, _ = again.draw(7 * WEEK, 4)
    assert table.tolist() == [[week * WEEK, 1, 600, ran] for week, ran in enumerate([600, 600, 600, 80, 600, 90], 2)]


def test_a_bound_is_told_at_every_level_and_a_full_machine_has_a_longer_one() -> None:
    """Every eighth job takes the whole machine for an hour; those behind it wait, and that is seen at submission."""
    bounder = FuturesBound(FutureSettings(futures=10))
    bounder.observe(OPENED)
    told = list[tuple[int, int]]()
    for number in range(1_600):
        now, full = 900 * number, number % 8 < 4
        asked = job(number, 8 if number % 8 == 0 else 1, 3600, time=now)
        (bound,) = bounder.predict_one(asked)
        bounder.observe(asked)
        if bound.bound is not None and number % 8 and number > 800:
            told.append((number % 8, bound.bound))
            assert [level for level, _ in bound.starts_within] == [0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99]
        wait = 3600 - 900 * (number % 8) if full and number % 8 else 0
        bounder.learn_one(asked, wait)
        bounder.observe(JobStarted(time=now, job_number=number, processors=asked.requested_processors, limit=3600))
        if number % 8 == 4:
            bounder.observe(JobEnded(time=now, job_number=number - 4, run_time=3600))
        if number % 8:
            bounder.observe(JobEnded(time=now, job_number=number, run_time=1))
    means = {place: np.mean([bound for at, bound in told if at == place]) for place in range(1, 8)}
    assert means[1] > means[3] > 3 * means[6]


@pytest.mark.parametrize(
    ("quantile", "reason"), [(0.01, "futures have quantiles from 0.05 to 0.99, not 0.01"), (0.5, None)]
)
def test_quantiles_beyond_those_that_are_told(quantile: float, reason: str | None) -> None:
    bounder = FuturesBound(FutureSettings(futures=10))
    bounder.observe(OPENED)
    for number in range(100):
        asked = job(number, 1, time=number)
        bounder.observe(asked)
        bounder.learn_one(asked, number)
    (bound,) = bounder.bounds_at(job(200, 1, time=200), 200, quantile, 0.95)
    assert bound.reason == reason


def test_queues_have_bounds_of_their_own_the_first_of_them() -> None:
    """All futures are alike; one queue waits an hour, the other a minute."""
    bounder = FuturesBound(FutureSettings(futures=10))
    bounder.observe(OPENED)
    for number in range(2_000):
        asked = job(number, 1, time=10_000 * number, queue_number=number % 2)
        bounder.observe(asked)
        bounder.learn_one(asked, 60 if number % 2 else 3600)
        bounder.observe(JobWithdrawn(time=10_000 * number, job_number=number))
    slow, quick = (bounder.predict_one(job(0, 1, time=20_000_000, queue_number=queue)) for queue in (0, 1))
    assert [each.queue for each in slow] == [None, 0]
    assert slow[1].bound is not None
    assert quick[1].bound is not None
    assert slow[0].bound == quick[0].bound
    assert slow[1].bound > 10 * quick[1].bound
    for queue in range(2, 70):
        bounder.observe(job(3_000 + queue, 1, time=20_000_000, queue_number=queue))
    told = bounder.predict_one(job(4_000, 1, time=20_000_000, queue_number=69))
    assert told[-1].reason == "only the first 64 queues have their own bounds"
