"""Orders of the queue against the textbook, whole logs against a plain simulator, and what head and delay mean."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import canonical
from shadowtime.services.scheduler.ordering.distribution_measures import measures_of
from shadowtime.services.scheduler.ordering.ordering import Ordering
from shadowtime.services.scheduler.ordering.orders import ORDERS
from shadowtime.services.scheduler.ordering.settings import OrderedSettings
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables.job_table import Queue
from shadowtime.shared.distributions.histogram import EDGES
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import ClusterOpened, JobStarted
from shadowtime.shared.messages.reasons import Backfilled, ProbablyHarmless
from shadowtime.shared.spec import parse
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, WaitingJob, instances
from shadowtime.testing.workloads import TraceRow, workloads
from tests.support.textbook_orders import KEYS, Waits, in_order, simulate
from tests.support.told_scheduler import Told

NAMES = sorted(KEYS)
THRESHOLDS = st.sampled_from([0, 5, 30, math.inf])


def served(instance: Instance, order: str, threshold: float) -> list[int]:
    queue, _ = instance.tables()
    ordering = Ordering(OrderedSettings(queue=order, threshold=threshold))
    numbers: list[int] = queue.job_number[ordering.rows(instance.now, queue)].tolist()
    return numbers


@pytest.mark.parametrize("order", NAMES)
@given(instance=instances(), threshold=THRESHOLDS)
@examples(150)
def test_jobs_are_served_as_the_formula_says(order: str, instance: Instance, threshold: float) -> None:
    queue, _ = instance.tables()
    jobs = [
        Waits(job.job_number, job.submit_time, job.processors, run_time, instance.now)
        for job, run_time in zip(instance.queue, queue.order_time.tolist(), strict=True)
    ]
    assert served(instance, order, threshold) == [job.job_number for job in in_order(jobs, order, threshold)]


@pytest.mark.parametrize("candidates", [None, "fcfs", "spf", "saf", "sqf"])
@given(jobs=workloads(), order=st.sampled_from(NAMES), threshold=THRESHOLDS)
@examples(60)
def test_whole_logs_are_those_of_a_plain_simulator(
    candidates: str | None, jobs: Workload, order: str, threshold: float
) -> None:
    keys = f"queue={order},threshold={threshold}" + (f",candidates={candidates}" if candidates else "")
    opened = ClusterOpened(time=0, cluster="c", processors=jobs.processors, policy=canonical("policy", f"easy:{keys}"))
    events = [event for event, _ in Chain(opened).play(Machine(jobs))]
    starts = {event.job_number: event.time for event in events if isinstance(event, JobStarted)}
    rows = [TraceRow(job.job_number, job.submit_time, job.processors, job.requested_time, job.run_time) for job in jobs]
    # The threshold is about the queue, and about candidates where they are in its order.
    assert starts == simulate(rows, jobs.processors, order, None if candidates == order else candidates, threshold)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("wfp", "easy:queue=wfp3"),
        ("easy-sjbf", "easy:candidates=spf"),
        ("easy:candidates=1/L", "easy:candidates=spf"),
        ("probabilistic:candidates=1/L,tau=0.5", "probabilistic:candidates=spf,tau=0.5"),
        ("easy:queue=BF", "easy"),
    ],
)
@given(jobs=workloads())
@examples(15)
def test_names_for_configurations(name: str, same: str, jobs: Workload) -> None:
    def starts(policy: str) -> list[tuple[int, int]]:
        opened = ClusterOpened(
            time=0, cluster="c", processors=8, policy=canonical("policy", policy), runtime="empirical"
        )
        events = [event for event, _ in Chain(opened).play(Machine(jobs))]
        return [(event.time, event.job_number) for event in events if isinstance(event, JobStarted)]

    assert starts(name) == starts(same)


# Distributions


@given(instance=instances(), order=st.sampled_from(["area", "saved", "gittins"]))
def test_without_distributions_an_index_is_that_of_the_point(instance: Instance, order: str) -> None:
    known = instance._replace(queue=[job._replace(histogram=()) for job in instance.queue])
    queue, _ = known.tables()
    points, sizes = queue.predicted_time.astype(float), queue.processors
    keys = {
        "area": points * sizes,
        "saved": -(1 / np.maximum(points, 10.0) / (points * sizes)),
        "gittins": -(1 / points / sizes),
    }
    expected = queue.job_number[np.argsort(keys[order], kind="stable")].tolist()
    assert served(known, order, math.inf) == expected


@given(
    masses=st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=14).filter(any),
    elapsed=st.sampled_from([0.0, 1.0, 3.0, 40.0, 300.0]),
    limit=st.sampled_from([5.0, 60.0, 900.0, math.inf]),
)
@examples(150)
def test_measures_are_those_of_many_run_times(masses: list[float], elapsed: float, limit: float) -> None:
    """Brute force: the distribution as many equally likely run times."""
    points = 4_000
    share = (np.arange(points) + 0.5) / points
    times, weights = [], []
    for low, high, mass in zip(EDGES[:-1], EDGES[1:], masses, strict=False):
        times.append(low + (high - low) * share if low == 0 else low * (high / low) ** share)
        weights.append(np.full(points, mass / points))
    drawn, weight = np.concatenate(times), np.concatenate(weights)
    alive = (drawn > elapsed) & (weight > 0)
    found = measures_of(np.array(masses), elapsed, limit)
    if limit <= elapsed or not alive.any():
        assert found[0] == found[2] == 1.0
        return
    ends, weight = np.minimum(drawn[alive], limit), weight[alive] / weight[alive].sum()
    left = ends - elapsed
    rates = [
        (weight * (left <= x + 1e-6)).sum() / (weight * np.minimum(left, x)).sum()
        for x in {*(min(edge, limit) - elapsed for edge in EDGES[1 : len(masses) + 1] if edge > elapsed)}
    ]
    assert found[0] == pytest.approx((weight * left).sum(), rel=2e-3)
    assert found[1] == pytest.approx((weight / np.maximum(ends, 10)).sum(), rel=2e-3)
    assert found[2] == pytest.approx(max(rates), rel=5e-3)


def test_a_job_that_may_fail_at_once_goes_before_one_that_runs_as_long_on_average() -> None:
    """Bin 1 is a second or two; half of the jobs of such a history end there. Both are expected to run as long."""
    bold = tuple([0.0, 0.5] + [0.0] * 10 + [0.5])
    mean, _, _ = measures_of(np.array(bold), 0.0, 36_000.0)
    point = round(mean)
    jobs = [WaitingJob(1, 0, 1, 36_000, point), WaitingJob(2, 0, 1, 36_000, point, bold)]
    instance = Instance(10, 0, jobs, [], ())
    assert served(instance, "gittins", math.inf) == [2, 1]
    assert served(instance, "saved", math.inf) == [2, 1]


# Probabilistic backfilling


def numbers(policy: str, instance: Instance) -> list[int]:
    decisions = POLICIES.build(parse(policy)).schedule(instance.now, *instance.tables(), instance.free)
    return [each.job_number for each in decisions if isinstance(each, Start)]


@given(instance=instances(), order=st.sampled_from(NAMES), threshold=THRESHOLDS, tau=st.sampled_from([1e-9, 0.3, 1.0]))
@examples(200)
def test_without_distributions_probabilistic_is_easy_in_any_order(
    instance: Instance, order: str, threshold: float, tau: float
) -> None:
    known = instance._replace(
        queue=[job._replace(histogram=()) for job in instance.queue],
        running=[job._replace(histogram=()) for job in instance.running],
    )
    keys = f"queue={order},threshold={threshold}"
    assert numbers(f"probabilistic:tau={tau},{keys}", known) == numbers(f"easy:{keys}", known)


@given(instance=instances(), order=st.sampled_from(NAMES), tau=st.sampled_from([0.05, 0.5]))
def test_the_head_is_the_first_of_the_order_that_does_not_fit(instance: Instance, order: str, tau: float) -> None:
    policy = POLICIES.build(parse(f"probabilistic:tau={tau},queue={order}"))
    decisions = policy.schedule(instance.now, *instance.tables(), instance.free)
    starts = [each for each in decisions if isinstance(each, Start)]
    in_turn = served(instance, order, math.inf)
    at_once = [each.job_number for each in starts if each.reason.kind == "fits-now"]
    assert at_once == in_turn[: len(at_once)]
    for each in starts[len(at_once) :]:
        assert getattr(each.reason, "head", None) == in_turn[len(at_once)]


EITHER = (0.0,) * 5 + (0.5, 0.5)
"""Ends after 10 or after 19 seconds."""


def crowded(keys: str) -> Told:
    """Return a machine of 10 on which job 9 holds 6 and may end early; job 1 of 8, 100 s, is the head by srf."""
    told = Told(policy=f"probabilistic:queue=srf,by=request,tau=1,{keys}")
    told.submit(9, 6, 3600, point=15.0, histogram=EITHER)
    told.start(9, 6, limit=3600)
    told.submit(1, 8, 100)
    return told


def test_what_a_head_was_put_to_stays_with_it_when_another_goes_first() -> None:
    told = crowded("budget=0.9")
    told.submit(3, 3, 3600, point=15.0, histogram=EITHER)
    (start,) = told.starts(1)
    told.start(3, 3, time=1, limit=3600)
    spent = told.scheduler.policy.snapshot()["spent"]
    assert isinstance(start.reason, ProbablyHarmless)
    assert spent == [(1, pytest.approx(start.reason.probability))]
    told.submit(4, 9, 10, time=2)
    told.starts(2)
    assert told.scheduler.policy.snapshot()["spent"] == spent


def test_delay_is_about_the_jobs_that_run_and_not_about_who_is_head_later() -> None:
    """The probability that job 3 delays head 1 is the same whether or not job 4 comes and goes before head 1."""

    def probability(*, later: bool) -> float:
        told = crowded("budget=1")
        told.submit(3, 3, 3600, point=15.0, histogram=EITHER)
        (start,) = told.starts(1)
        assert start.job_number == 3
        assert isinstance(start.reason, ProbablyHarmless)
        assert start.reason.head == 1
        if later:
            told.start(3, 3, time=1, limit=3600)
            told.submit(4, 9, 10, time=2)
            told.submit(5, 1, 3600, time=2)
            (other,) = told.starts(2)
            assert isinstance(other.reason, Backfilled | ProbablyHarmless)
            assert other.reason.head == 4
        return start.reason.probability

    assert probability(later=True) == probability(later=False) > 0


def test_a_promise_holds_while_its_job_is_head_and_is_made_anew_after_another_was() -> None:
    told = crowded("patience=0")
    told.submit(3, 3, 3600, point=15.0, histogram=EITHER)
    policy = told.scheduler.policy
    told.starts(0)
    promises = policy.snapshot()["promises"]
    assert promises == [(1, 3600)]
    told.starts(50)
    assert policy.snapshot()["promises"] == promises
    told.submit(4, 9, 10, time=60)  # the first by p / q
    told.starts(60)
    assert dict(policy.snapshot()["promises"])[4] == 3600
    told.start(4, 9, time=3600, limit=10)
    told.end(9, 3600)
    told.starts(3600)
    assert dict(policy.snapshot()["promises"]).get(1) != 3600
    again = told.restarted()
    assert again.scheduler.policy.snapshot() == policy.snapshot()


# Settings and plug-ins


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("easy:queue=srff", "policy 'easy': queue=srff: unknown order; did you mean 'srf'[?] known: 1/L, BF, P, "),
        ("easy:order=R", "policy 'easy' has no key 'order'"),
        ("easy:queue=srf,forecast=yes", "forecast=yes: a forecast needs queue=fcfs or queue=priority; found queue=srf"),
        ("all-reserve:candidates=spf,forecast=yes", "forecast=yes: a forecast needs candidates=queue"),
        ("easy:threshold=-1", "threshold=-1"),
        ("fcfs:queue=srf", "policy 'fcfs' has no key 'queue'"),
    ],
)
def test_what_does_not_go_together_is_refused(policy: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        canonical("policy", policy)


def test_an_order_of_a_plug_in_is_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ORDERS.data, "tallest", lambda jobs: -jobs.processors.astype(float))
    queue = Queue()
    for number, size in ((1, 2), (2, 5), (3, 5)):
        queue.add((number, 0, size, 60, 60, 60, 60, -1))
    ordering = Ordering(OrderedSettings(queue="tallest"))
    assert queue.job_number[ordering.rows(0, queue)].tolist() == [2, 3, 1]
    assert not ordering.steady
