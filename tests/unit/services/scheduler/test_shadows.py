"""Simulated machines against whole replays, and what they may know."""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import canonical
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.machine import CLOCK
from shadowtime.services.scheduler.policy import Policy
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.job_table import Queue, Running
from shadowtime.services.scheduler.tuned.job_log import RUN_TIME, STARTED, SUBMITTED, JobLog
from shadowtime.services.scheduler.tuned.policy import Tuned
from shadowtime.services.scheduler.tuned.settings import TunedSettings
from shadowtime.services.scheduler.tuned.simulated_machines import LONGEST, SLOWDOWN, WAIT
from shadowtime.shared.cluster.job import Job
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Event,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    SchedulingPoint,
)
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.statistics.slowdown import bounded_slowdown
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads

ORDERS, THRESHOLDS = "fcfs+spf+saf+exp+wfp3+unicep+area", "0+5+20+60"
KEYS = f"orders={ORDERS},thresholds={THRESHOLDS},overtaken=0.1+1,patience=0.5+2"
Configuration = tuple[str, float, float, float]
MEMBERS: list[Configuration] = list(
    product(ORDERS.split("+"), map(float, THRESHOLDS.split("+")), (0.1, 1.0), (0.5, 2.0))
)


class Told(NamedTuple):
    events: list[Event]
    policy: Policy


def opened(policy: str, runtime: str = "last-two") -> ClusterOpened:
    return ClusterOpened(time=0, cluster="c", processors=8, policy=canonical("policy", policy), runtime=runtime)


def guarded(order: str, threshold: float, overtaken: float, patience: float) -> str:
    keys = f"threshold={threshold},overtaken={overtaken * threshold},patience={patience * threshold}"
    return f"guarded:queue={order},{keys}"


def told(policy: str, jobs: Workload, runtime: str = "last-two", capacity: tuple[CapacityChanged, ...] = ()) -> Told:
    """Return every event of a run as the last stage tells it, and the policy as it is in the end."""
    chain = Chain(opened(policy, runtime))
    events = [answer.event for _, answer in chain.play(Machine(jobs, capacity))]
    scheduler = chain.stages["scheduler"].handler
    assert isinstance(scheduler, Scheduler)
    return Told(events, scheduler.pools[0].policy)


def starts(events: Iterable[Event]) -> dict[int, int]:
    return {event.job_number: event.time for event in events if isinstance(event, JobStarted)}


def rewritten(job: Job, run_time: int) -> TraceRow:
    sizes = job.processors, job.requested_time, run_time
    return TraceRow(
        job.job_number,
        job.submit_time,
        *sizes,
        user_id=job.user_id or -1,
        status=-1 if job.status is None else job.status,
    )


@given(jobs=workloads(), member=st.sampled_from(MEMBERS))
@examples(60)
def test_a_portfolio_of_one_decides_as_that_one(jobs: Workload, member: Configuration) -> None:
    order, threshold, overtaken, patience = member
    alone = f"orders={order},thresholds={threshold},overtaken={overtaken},patience={patience},least=1000000"
    assert starts(told(f"tuned:{alone}", jobs).events) == starts(told(guarded(*member), jobs).events)


@pytest.mark.nightly
@given(jobs=workloads(), size=st.integers(8, 12), shrinks=st.integers(0, 60))
@examples(30)
def test_a_shadow_machine_does_what_a_replay_does(jobs: Workload, size: int, shrinks: int) -> None:
    """Where predictions do not depend on what is decided: EASY, and every member, each in a replay of its own."""
    capacity = (CapacityChanged(time=shrinks, processors=size), CapacityChanged(time=shrinks + 9, processors=8))
    rows = [rewritten(job, job.run_time) for job in jobs]
    jobs = workload(8, [*rows, TraceRow(1000, rows[-1].submit_time + 2000, 1, 5, 5)])  # all have caught up by then
    policy = told(f"tuned:{KEYS},least=1,every=7", jobs, "requested", capacity).policy
    assert isinstance(policy, Tuned)
    policy.shadows.add_results(0)
    assert policy.shadows.counts.sum() == len(jobs)
    for row, member in enumerate(policy.portfolio):
        spec = "easy" if row == 0 else guarded(*MEMBERS[row - 1])
        alone = starts(told(spec, jobs, "requested", capacity).events)
        waits = {job.job_number: alone[job.job_number] - job.submit_time for job in jobs}
        run_times = {job.job_number: min(job.run_time, job.requested_time) for job in jobs}
        totals = policy.shadows.totals[row]
        assert totals[WAIT] == sum(waits.values()), member.name
        assert totals[LONGEST] == max(waits.values()), member.name
        slowdowns = [bounded_slowdown(wait, run_times[number]) for number, wait in waits.items()]
        assert totals[SLOWDOWN] == pytest.approx(sum(slowdowns)), member.name


@given(jobs=workloads(beyond_request=False), at=st.floats(0, 1), seed=st.integers(0, 100))
@examples(60)
def test_nothing_depends_on_what_is_only_known_later(jobs: Workload, at: float, seed: int) -> None:
    """Run times that are not known at a time are changed: all that was told and chosen up to then is the same."""
    policy = f"tuned:orders=spf+wfp3,thresholds={THRESHOLDS},overtaken=0.1+1,least=1,every=3"
    before = told(policy, jobs).events
    time = int(at * before[-1].time)
    begun, ended = (
        starts(before),
        {event.job_number for event in before if isinstance(event, JobEnded) and event.time <= time},
    )
    draws = np.random.default_rng(seed)
    rows = []
    for job in jobs:
        least = max(time - begun[job.job_number] + 1, 1)  # it runs on at that time
        known = job.job_number in ended or least > job.requested_time
        run_time = job.run_time if known else int(draws.integers(least, job.requested_time + 1))
        rows.append(rewritten(job, run_time))
    after = told(policy, workload(8, rows)).events
    assert [event for event in after if event.time <= time] == [event for event in before if event.time <= time]


def test_a_default_portfolio_has_few_members() -> None:
    names = [member.name for member in TunedSettings().portfolio()]
    assert len(set(names)) == len(names) == 28
    assert names[0] == "easy"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (
            "orders=spf+R",
            "order R: the sort keys of this order may change as jobs wait; of such orders, simulated machines support",
        ),
        ("orders=spf+glass", "order glass: unknown order; known: 1/L, BF"),
        ("thresholds=10+soon", "expected numbers from 0 to 1e+09 with + between them"),
        (
            "thresholds=1+2+3+4+5+6+7+8+9+10,overtaken=1+2+3,taus=0.1+0.2+0.3",
            "the portfolio has 271 configurations; at most 200",
        ),
        ("orders=spf+spf", "policy 'tuned': orders=spf+spf: spf equals an earlier value"),
        ("orders=fcfs+BF", "policy 'tuned': orders=fcfs+BF: BF equals an earlier value"),
        ("taus=0+0.0", "policy 'tuned': taus=0+0.0: 0.0 equals an earlier value"),
    ],
)
def test_what_is_no_portfolio_is_refused(keys: str, reason: str) -> None:
    with pytest.raises(SettingsError) as refused:
        POLICIES.build(parse(f"tuned:{keys}"))
    assert reason in str(refused.value)


def test_what_was_promised_under_one_member_is_kept_under_the_next() -> None:
    """Small jobs would keep out a large one; the member changes, by hand, once the large one has waited a while."""
    rows = [TraceRow(number, 2 * number, 3, 10, 10) for number in range(1, 80)]
    jobs = workload(8, [*rows, TraceRow(100, 3, 8, 5, 5)])

    def start(first: int, then: int) -> int:
        policy = "tuned:orders=sqf,thresholds=20+1000,overtaken=1000,patience=1,least=1000000"
        chain, machine = Chain(opened(policy)), Machine(jobs)
        for event, _ in chain.play(machine):
            scheduler = chain.stages["scheduler"].handler
            assert isinstance(scheduler, Scheduler)
            assert isinstance(scheduler.pools[0].policy, Tuned)
            scheduler.pools[0].policy.member = first if event.time < 12 else then
            if isinstance(event, JobStarted) and event.job_number == 100:
                return event.time
        raise AssertionError

    assert start(1, 1) <= 3 + 20 + 10 < start(2, 2)
    assert start(1, 2) == start(1, 1)


def test_a_threshold_is_chosen_after_the_run_has_lasted_three_times_as_long() -> None:
    """Small jobs overtake a large one; no member without a limit may decide before its limit could have counted."""
    rows = [TraceRow(number, 2 * number, 3, 10, 10) for number in range(1, 200)]
    events, policy = told("tuned:orders=sqf,thresholds=20+100,every=10,least=1", workload(8, rows))
    assert isinstance(policy, Tuned)
    least = dict(zip([member.name for member in policy.portfolio], 3 * policy.thresholds, strict=True))
    choices = [
        (event.time, event.chosen) for event in events if isinstance(event, Decided) and event.chosen is not None
    ]
    made = [(time, choice) for time, choice in choices if choice.standings]
    assert {choice.member for _, choice in made} - {"easy"}, "a member with a threshold was chosen"
    for time, choice in made:
        assert least[choice.member] <= time
        weights = {standing.member: standing.weight for standing in choice.standings or ()}
        assert sum(weights.values()) == pytest.approx(1.0, abs=1e-3)
        assert not any(weight for member, weight in weights.items() if least[member] > time)


@given(jobs=workloads(), cut=st.floats(0, 1))
@examples(40)
def test_a_restored_policy_goes_on_as_if_never_interrupted(jobs: Workload, cut: float) -> None:
    chain = Chain(opened(f"tuned:{KEYS},least=1,every=3"))
    for _ in chain.play(Machine(jobs)):
        pass
    envelopes = chain.read["scheduler"]
    run, again = StageRun(chain.stages["scheduler"].stage), StageRun(chain.stages["scheduler"].stage)
    at = int(cut * len(envelopes))
    for envelope in envelopes[:at]:
        run.push(envelope)
    if at:
        again.restore(run.snapshot())
    for envelope in envelopes[at:]:
        assert again.push(envelope) == run.push(envelope)
    assert again.snapshot() == run.snapshot()


def shadow_of_the_run(jobs: Workload, keys: str, runtime: str) -> tuple[float, int]:
    """Return the sum of the waits on the simulated machine of the one member that decides, and that in the run."""
    rows = [rewritten(job, job.run_time) for job in jobs]
    jobs = workload(8, [*rows, TraceRow(1000, rows[-1].submit_time + 2000, 1, 5, 5)])  # all have caught up by then
    events, policy = told(f"tuned:{keys},least=1000000", jobs, runtime)
    assert isinstance(policy, Tuned)
    policy.shadows.add_results(0)
    assert policy.shadows.counts.sum() == len(jobs)
    submitted = {job.job_number: job.submit_time for job in jobs}
    return policy.shadows.totals[1, WAIT], sum(time - submitted[number] for number, time in starts(events).items())


@given(jobs=workloads(), tau=st.sampled_from([0, 0.3, 0.9]), overtaken=st.sampled_from([0.05, 0.5]))
@examples(60)
def test_the_shadow_of_the_member_that_decides_is_the_run(jobs: Workload, tau: float, overtaken: float) -> None:
    keys = f"orders=spf,thresholds=40,overtaken={overtaken},patience=1,taus={tau}"
    shadow, run = shadow_of_the_run(jobs, keys, "empirical")
    assert shadow == run


def test_a_number_that_is_used_again_is_another_job() -> None:
    """A job ends, and at the same instant another comes under its number, before any pass."""
    policy = POLICIES.build(parse("tuned:orders=spf,thresholds=40,least=1"))
    assert isinstance(policy, Tuned)
    policy.open(opened("tuned:orders=spf,thresholds=40,least=1"))
    queue, running = Queue(), Running()
    row = (5, 0, 2, 60, 60, 60, 60, -1)

    def submit(time: int) -> None:
        policy.observe(JobSubmitted(time=time, job_number=5, requested_processors=2, requested_time=60, user_id=1))

    submit(0)
    queue.add(row)
    assert policy.schedule(0, queue, running, 8)
    policy.observe(JobStarted(time=0, job_number=5, processors=2))
    queue.remove(5)
    policy.observe(JobEnded(time=10, job_number=5, run_time=10))
    submit(10)
    queue.add((5, 10, *row[2:]))
    policy.schedule(10, queue, running, 8)
    facts = policy.shadows.jobs.facts[:, :2]
    assert facts[[SUBMITTED, RUN_TIME, STARTED]].tolist() == [[0, 10], [10, -1], [0, -1]]


def test_time_may_begin_before_second_0() -> None:
    """A simulated machine is where the run begins, and not at second 0."""
    policy = POLICIES.build(parse("tuned"))
    assert isinstance(policy, Tuned)
    policy.open(opened("tuned").model_copy(update={"time": -1000}))
    assert set(policy.shadows.counters[:, CLOCK].tolist()) == {-1000}


def test_a_job_that_never_ends_keeps_no_other_from_being_counted() -> None:
    chain = Chain(opened("tuned:orders=spf,thresholds=40,least=1,every=1"))
    lost = 1
    jobs = workload(8, [TraceRow(number, 3 * number, 2, 10, 5) for number in range(1, 60)])
    shadows = None
    for _ in chain.play(Machine(jobs)):
        scheduler = chain.stages["scheduler"].handler
        assert isinstance(scheduler, Scheduler)
        assert isinstance(scheduler.pools[0].policy, Tuned)
        shadows = scheduler.pools[0].policy.shadows
        for news in shadows.jobs.news.get(lost, ()):
            news.run_time = None
    assert shadows is not None
    shadows.add_results(0)
    assert shadows.jobs.size <= 3
    assert shadows.counts.sum() == len(jobs) - shadows.jobs.size


def held(hold: int) -> tuple[list[Event], Tuned]:
    """Job 1 waits so long in the run, and starts at once on every simulated machine; others come once an hour."""
    chain = Chain(opened("tuned:orders=spf,thresholds=36000,least=10").model_copy(update={"mode": "recorded"}))
    rows = [TraceRow(1, 0, 1, 60, 60, wait_time=hold)]
    rows += [TraceRow(number, 3600 * number, 1, 60, 60, wait_time=0) for number in range(2, 24 * 40)]
    events = [answer.event for _, answer in chain.play(Recorded(workload(8, rows)))]
    scheduler = chain.stages["scheduler"].handler
    assert isinstance(scheduler, Scheduler)
    assert isinstance(scheduler.pools[0].policy, Tuned)
    return events, scheduler.pools[0].policy


def test_a_job_that_never_starts_is_given_up_after_a_while() -> None:
    def choices(hold: int) -> int:
        events, _ = held(hold)
        return sum(
            isinstance(each, Decided) and each.chosen is not None and each.chosen.jobs is not None for each in events
        )

    assert choices(0) > choices(50 * 86_400) > 20


def test_jobs_that_have_ended_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.services.scheduler.tuned.simulated_machines.MAX_OPEN", 50)
    events, policy = held(0)
    last = [each.chosen for each in events if isinstance(each, Decided) and each.chosen and each.chosen.jobs][-1]
    assert last.jobs is not None
    assert last.jobs > 24 * 39 - 60
    assert policy.shadows.jobs.size <= 50


def test_what_no_scheduling_point_has_seen_takes_no_room() -> None:
    jobs = JobLog([], (), PolicySettings(), 10)
    for number in range(1000):
        jobs.observe(JobSubmitted(time=0, job_number=number, requested_processors=1))
        jobs.observe(JobStarted(time=0, job_number=number, processors=1))
        jobs.observe(JobEnded(time=1, job_number=number, run_time=1))
    assert not jobs.news


def test_of_two_jobs_of_one_number_each_has_its_own_end() -> None:
    jobs, queue = JobLog([], (), PolicySettings(), 10), Queue()
    jobs.observe(JobSubmitted(time=0, job_number=1, requested_processors=1))
    jobs.observe(JobStarted(time=0, job_number=1, processors=1))
    jobs.observe(JobEnded(time=3, job_number=1, run_time=3))
    jobs.observe(JobSubmitted(time=3, job_number=1, requested_processors=1))
    queue.add((1, 3, 1, 60, 60, 60, 60, -1))
    jobs.take_in(3, queue, Running())
    assert jobs.facts[[SUBMITTED, RUN_TIME], 0].tolist() == [3, -1]
    assert jobs.index == {1: 0}


def test_a_scheduling_point_may_leave_out_every_new_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.services.scheduler.tuned.simulated_machines.MAX_OPEN", 5)
    jobs = workload(8, [TraceRow(number, number, 8, 10, 10) for number in range(20)])
    assert len(starts(told("tuned:orders=spf,thresholds=40,least=1,every=1", jobs).events)) == 20


def test_a_job_may_be_suspended_before_a_scheduling_point_sees_it() -> None:
    chain = Chain(opened("tuned:orders=spf,thresholds=40").model_copy(update={"mode": "recorded"}))
    events: list[Event] = [
        JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=60),
        JobStarted(time=0, job_number=1, processors=1, limit=60),
        JobSuspended(time=0, job_number=1),
        SchedulingPoint(time=0),
        JobResumed(time=9, job_number=1),
        JobEnded(time=19, job_number=1, run_time=10),
        SchedulingPoint(time=19),
    ]
    for event in (chain.opened, *events):
        chain.push(event)
