"""What the scheduler makes of adjusted requests, told as events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import ClusterOpened, JobSubmitted, SchedulingPoint
from shadowtime.shared.messages.predictions import WalltimeAdjustment
from shadowtime.shared.messages.reasons import Backfilled, FitsNow
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import workloads
from tests.support.told_scheduler import REGULAR, SELECTIVE, UNUSED, Told, uses, with_keys


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "wfp", "probabilistic"])
def test_the_limit_is_the_request_whatever_is_adjusted(policy: str) -> None:
    told = Told(policy=policy, keys=REGULAR)
    told.submit(1, 6, 1000, adjusted=500)
    assert told.starts(0) == (Start(job_number=1, processors=6, limit=1000, reason=FitsNow()),)


def test_a_backfilled_job_keeps_its_request_as_limit() -> None:
    told = Told(keys=SELECTIVE)
    told.submit(1, 6, 100)
    told.start(1, 6, limit=100)
    told.submit(2, 8, 50)
    told.submit(3, 4, 160, adjusted=80)
    (start,) = told.starts(20)
    assert (start.job_number, start.limit) == (3, 160)
    assert start.reason == Backfilled(
        head=2, shadow_time=100, extra_processors=2, expected_end=100, ends_by_shadow_time=True
    )
    assert told.starts(21) == ()


# A running job past its adjusted end


def outlived(keys: str, point: float | None = None) -> Told:
    """Return a machine of 10 on which job 1 holds 6: it requests 1000 s, adjusted to 500."""
    told = Told(keys=keys)
    told.submit(1, 6, 1000, adjusted=500, point=point)
    told.start(1, 6, limit=1000)
    told.submit(2, 8, 50)
    told.submit(3, 4, 1)
    return told


@pytest.mark.parametrize(
    ("time", "expected"), [(0, 500), (499, 500), (500, 800), (501, 801), (699, 999), (700, 1000), (999, 1000)]
)
def test_it_is_assumed_to_end_in_five_minutes_at_most_at_its_request(time: int, expected: int) -> None:
    assert outlived(REGULAR).shadow_time(time) == expected
    assert outlived(SELECTIVE).shadow_time(time) == 1000


def test_past_its_request_too_it_ends_in_a_second() -> None:
    assert outlived(REGULAR).shadow_time(1000) == 1001


@pytest.mark.parametrize(
    ("fallback", "point", "expected"),
    [
        ("request", 300.0, {0: 300, 300: 500, 500: 800, 700: 1000}),
        ("incremental", 300.0, {0: 300, 300: 360, 360: 600, 600: 1000}),
        ("request", 800.0, {0: 500, 500: 800}),
        ("incremental", 800.0, {0: 500, 500: 560}),
    ],
)
def test_a_prediction_still_counts(fallback: str, point: float, expected: dict[int, int]) -> None:
    for time, shadow in expected.items():
        assert outlived(f"{REGULAR},fallback={fallback}", point).shadow_time(time) == shadow


# Rows keep their times


@pytest.mark.parametrize("keys", [UNUSED, SELECTIVE, REGULAR])
def test_a_requeued_job_has_all_its_times_again(keys: str) -> None:
    told = Told(keys=keys)
    told.submit(1, 4, 1000, point=700.0, adjusted=600)
    told.submit(2, 4, None, point=50.0)
    queued = told.scheduler.queue.snapshot()
    for job_number in (1, 2):
        told.start(job_number, 4)
    assert told.queue == []
    for job_number in (2, 1):
        told.end(job_number, 30, requeued=True)
    assert told.scheduler.queue.snapshot() == queued
    assert queued[0][3:7] == [1000, 600, 700, 600]
    assert told.scheduler.queue.predicted_time.tolist() == [700 if keys == UNUSED else 600, 50]


@pytest.mark.parametrize("keys", [uses(distribution="prior"), REGULAR])
def test_times_and_distributions_survive_a_restart(keys: str) -> None:
    told = Told(policy="probabilistic:tau=0.5", keys=keys)
    shaped = (0.0,) * 5 + (0.5, 0.5)
    told.submit(1, 6, 1000, point=30.0, adjusted=15, histogram=shaped)
    told.start(1, 6, limit=1000)
    told.submit(2, 8, 50)
    told.submit(3, 4, 600, point=60.0, adjusted=40, histogram=shaped)
    again = told.restarted()
    assert again.scheduler.snapshot() == told.scheduler.snapshot()
    for time in (0, 3, 16, 400):
        assert again.tell(SchedulingPoint(time=time)) == told.tell(SchedulingPoint(time=time))


# Order


@pytest.mark.parametrize(
    ("policy", "queue", "expected"),
    [
        ("easy-sjbf", "no", 3),
        ("easy-sjbf", "yes", 4),
        ("probabilistic:candidates=spf,by=request,tau=1,accept_easy_safe=yes", "no", 3),
        ("probabilistic:candidates=spf,by=request,tau=1,accept_easy_safe=yes", "yes", 4),
        ("probabilistic:candidates=spf,tau=1,accept_easy_safe=yes", "no", 3),
        ("probabilistic:candidates=spf,tau=1,accept_easy_safe=yes", "yes", 4),
        ("easy", "yes", 3),
    ],
)
def test_adjusted_requests_order_candidates(policy: str, queue: str, expected: int) -> None:
    told = Told(policy=policy, keys=uses(adjust_queue=queue))
    told.submit(1, 6, 1000)
    told.start(1, 6, limit=1000)
    told.submit(2, 8, 50)
    told.submit(3, 4, 300)
    told.submit(4, 4, 400, adjusted=200)
    assert told.numbers(0) == [expected]


@pytest.mark.parametrize(("queue", "expected"), [("no", [2, 3]), ("yes", [3, 2])])
def test_adjusted_requests_order_the_queue_of_wfp(queue: str, expected: list[int]) -> None:
    told = Told(policy="wfp", keys=uses(adjust_queue=queue))
    told.submit(2, 4, 300)
    told.submit(3, 4, 400, adjusted=200)
    assert told.numbers(10) == expected


# Nothing in use


@pytest.mark.parametrize(
    "policy",
    [
        "easy",
        "easy-sjbf",
        "wfp",
        "probabilistic:tau=0.5,candidates=spf",
        "probabilistic:candidates=spf,by=request,patience=1",
    ],
)
@given(jobs=workloads(), data=st.data())
@examples(25)
def test_adjustments_without_use_change_no_decision(policy: str, jobs: Workload, data: st.DataObject) -> None:
    opened = ClusterOpened(time=0, cluster="c", processors=jobs.processors, policy=policy, runtime="empirical")
    chain = Chain(opened)
    answers = [answer.event for _, answer in chain.play(Machine(jobs))]
    again = StageRun(chain.stages["scheduler"].stage)
    for envelope, expected in zip(chain.read["scheduler"], answers, strict=True):
        event, adjustment = envelope.event, None
        if isinstance(event, ClusterOpened):
            event = expected = event.model_copy(update={"policy": with_keys(policy, UNUSED)})
        elif isinstance(event, JobSubmitted) and event.requested_time is not None:
            adjusted_time = data.draw(st.integers(1, event.requested_time))
            adjustment = WalltimeAdjustment(adjusted_time=adjusted_time, observations=10, percentile=85)
        answer = again.push(envelope.model_copy(update={"event": event, "adjustment": adjustment}))
        assert answer is not None
        assert answer.event == expected
