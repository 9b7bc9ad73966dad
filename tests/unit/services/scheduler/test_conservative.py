"""Conservative backfilling in every combination: promises are kept, capacity too, and every job ends."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.source import DEFAULT_TRAITS, JobTraits
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.policies.conservative import Conservative
from shadowtime.services.scheduler.policies.trial_runs import SpeculativeRun, Suspended, Trials
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables.histograms import UNKNOWN
from shadowtime.services.scheduler.tables.job_table import NEVER, Queue, Running, planned_times
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
)
from shadowtime.shared.messages.reasons import Reserved, Speculated
from shadowtime.shared.messages.speedup import Amdahl, Downey, ratio, reshaped_time
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads
from tests.support.small_logs import generated

ORDERS = ["BF", "P", "R", "1/L", "P/L", "R/L"]
COMBINATIONS = st.builds(
    "conservative:queue={},guarantees={},speculate={},test_runs={},weight={},shape={},widen={},{}".format,
    st.sampled_from(ORDERS),
    st.sampled_from(["yes", "no"]),
    st.sampled_from(["no", "expected", 0.2, 0.8, 1]),
    st.sampled_from(["yes", "no"]),
    st.sampled_from([0, 0.001]),
    st.sampled_from(["requested", "half", "quarter", "greedy", "greedy-narrow"]),
    st.sampled_from(["yes", "no"]),
    st.sampled_from(["runtime=requested", "runtime=empirical", "runtime=last-two,fallback=incremental"]),
)
MARKS = st.builds(
    JobTraits,
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, Amdahl(serial=0.3), Downey(parallelism=0.7, sigma=1.5)]),
)


def events_of(jobs: Workload, policy: str, seed: int = 0, traits: JobTraits = DEFAULT_TRAITS) -> list[Event]:
    """Return everything that happened in a replay."""
    plan = RunPlan(policy, "c", jobs, configure(policy), seed=seed, traits=traits)
    events: list[Event] = []

    def note(envelope: Envelope) -> None:
        events.append(envelope.event)

    plan.replay([note]).run_to_end()
    return events


def starts_of(events: list[Event]) -> Iterator[tuple[int, int, Reserved | Speculated]]:
    """Yield time, job and reason of every decided start."""
    for event in events:
        if isinstance(event, Decided):
            for start in event.starts:
                assert isinstance(start.reason, Reserved | Speculated)
                yield event.time, start.job_number, start.reason


def check_capacity(events: list[Event], processors: int) -> None:
    free, holds = processors, dict[int, int]()
    for event in events:
        if isinstance(event, JobStarted):
            holds[event.job_number] = event.processors
            free -= event.processors
            assert free >= 0
        elif isinstance(event, JobEnded):
            free += holds.pop(event.job_number)
    assert not holds


def check_work(events: list[Event], jobs: Workload, traits: JobTraits) -> None:
    """Every job ends once for good, with all its work done, on its own number of processors unless moldable."""
    asked = {job.job_number: job for job in jobs}
    last: dict[int, JobStarted] = {}
    ended: list[int] = []
    for event in events:
        if isinstance(event, JobStarted):
            last[event.job_number] = event
        elif isinstance(event, JobEnded) and not event.requeued:
            ended.append(event.job_number)
            job, size = asked[event.job_number], last[event.job_number].processors
            own = min(job.run_time, job.requested_time)
            by = ratio(job.processors, size, traits.speedup)
            assert event.run_time == reshaped_time(own, by)
            assert event.own_run_time == own
            assert size == job.processors or traits.moldable
        elif isinstance(event, JobEnded):
            assert traits.restartable
    assert sorted(ended) == sorted(asked)


@given(jobs=workloads(), policy=COMBINATIONS, seed=st.integers(0, 3), traits=MARKS)
@examples(250)
def test_every_job_ends_in_the_end(jobs: Workload, policy: str, seed: int, traits: JobTraits) -> None:
    events = events_of(jobs, policy, seed, traits)
    check_capacity(events, jobs.processors)
    check_work(events, jobs, traits)


@given(
    jobs=workloads(),
    order=st.sampled_from(ORDERS),
    shape=st.sampled_from(["requested", "half", "quarter", "greedy", "greedy-narrow"]),
    widen=st.sampled_from(["yes", "no"]),
    speculate=st.sampled_from(["no", 0.2, 0.8]),
    tests=st.sampled_from(["yes", "no"]),
    seed=st.integers(0, 3),
)
@examples(300)
def test_no_job_starts_later_than_promised(
    jobs: Workload, order: str, shape: str, widen: str, speculate: str | float, tests: str, seed: int
) -> None:
    policy = f"conservative:queue={order},shape={shape},widen={widen},speculate={speculate},test_runs={tests}"
    for time, _, reason in starts_of(events_of(jobs, policy, seed)):
        if isinstance(reason, Reserved):
            assert reason.guaranteed_start is not None
            assert time <= reason.guaranteed_start


@pytest.mark.parametrize(
    "policy",
    [
        "conservative:speculate=0.2,test_runs=yes",
        "conservative:queue=R/L,guarantees=no,speculate=0.8,test_runs=yes,shape=half,widen=yes",
    ],
)
def test_it_goes_on_from_a_snapshot_after_any_event(policy: str) -> None:
    """Also from one between a decision and the start that it brings about, as workers take them."""
    plan = RunPlan(policy, "c", generated(150), configure(policy))
    chain = Chain(plan.opened())
    trials = sum(isinstance(event, JobStarted) and event.trial is True for event, _ in chain.play(plan.source()))
    assert trials > 2
    (scheduler,) = (stage for stage in STAGES if stage.name == "scheduler")
    run = StageRun(scheduler)
    for envelope in chain.read["scheduler"]:
        restored = StageRun(scheduler)
        if run.handler is not None:
            restored.restore(run.snapshot())
        assert restored.push(envelope) == run.push(envelope)
        assert restored.snapshot() == run.snapshot()


@given(jobs=workloads())
@examples(50)
def test_with_actual_run_times_nothing_is_ever_on_trial_for_nothing(jobs: Workload) -> None:
    events = events_of(jobs, "conservative:speculate=1,test_runs=no", traits=JobTraits(restartable=False))
    assert not any(isinstance(reason, Speculated) for _, _, reason in starts_of(events))
    assert not any(event.requeued for event in events if isinstance(event, JobEnded))


def test_another_seed_is_another_schedule() -> None:
    jobs = workload(4, [TraceRow(n, n, 1 + n % 4, 100, 50 + n) for n in range(1, 60)])
    first, again, other = (
        list(starts_of(events_of(jobs, "conservative:queue=R,guarantees=no", seed))) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_without_a_seed_draws_are_those_of_seed_zero() -> None:
    jobs = workload(4, [TraceRow(n, n, 1 + n % 4, 100, 50 + n) for n in range(1, 60)])
    opened = ClusterOpened.model_validate({"time": 0, "cluster": "c", "processors": 4})
    assert opened.seed == 0
    policy = "conservative:queue=R,guarantees=no"
    without = RunPlan(policy, "c", jobs, configure(policy)).replay().run_to_end().scores
    assert without == RunPlan(policy, "c", jobs, configure(policy), seed=0).replay().run_to_end().scores


def test_a_trial_in_another_shape_does_not_outlast_the_job_s_own_place() -> None:
    jobs = workload(8, [TraceRow(1, 0, 6, 100, 100), TraceRow(2, 0, 2, 300, 300), TraceRow(3, 0, 8, 200, 200)])
    starts = list(starts_of(events_of(jobs, "conservative:speculate=0.5,shape=greedy")))
    time, _, reason = next(each for each in starts if each[1] == 2 and isinstance(each[2], Reserved))
    assert isinstance(reason, Reserved)
    assert time == reason.guaranteed_start == 100


def test_what_nobody_limits_is_not_tried_for_ever() -> None:
    policy = POLICIES.build(parse("conservative:speculate=0.5"))
    queue, running = Queue(), Running()
    for number, size in ((2, 8), (3, 4)):
        policy.observe(JobSubmitted(time=10, job_number=number, requested_processors=size))
        queue.add((number, 10, size, *planned_times(NEVER, None, None), UNKNOWN))
    running.add((1, 0, 4, *planned_times(NEVER, None, None), UNKNOWN, 0))
    assert list(policy.schedule(20, queue, running, 4)) == []


def test_a_trial_that_was_decided_but_did_not_start_keeps_no_place() -> None:
    trials = Trials()
    trials.observe(JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=1000))
    trials.decided(1, SpeculativeRun(100, test_run=False), Suspended(500, (1,), 1000, 500, 0))
    assert not trials.suspended
    trials.observe(JobStarted(time=3, job_number=1, processors=1, limit=1000))
    assert (trials.suspended, trials.limits) == ({}, {})


def test_a_shorter_run_teaches_nothing_after_a_longer_one() -> None:
    trials = Trials()
    trials.observe(JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=36_000))
    for seconds, test_run in ((20_000, False), (900, True)):
        trials.decided(1, SpeculativeRun(seconds, test_run=test_run), None)
        trials.observe(JobStarted(time=0, job_number=1, processors=1, limit=seconds))
        trials.observe(JobEnded(time=seconds, job_number=1, run_time=seconds, outcome="limit", requeued=True))
    assert (trials.jobs[1].last, trials.jobs[1].tested, trials.jobs[1].attempts) == (20_000, True, 2)


def test_a_trial_that_is_too_short_is_told_and_repeated() -> None:
    jobs = workload(
        4,
        [
            TraceRow(1, 0, 3, 1000, 1000),  # leaves one processor
            TraceRow(2, 0, 4, 2000, 2000),  # is planned for 1000
            TraceRow(3, 0, 1, 3000, 2500),  # on trial in the hole before that
        ],
    )
    events = events_of(jobs, "conservative:speculate=0.2")
    trials = [(time, number, reason) for time, number, reason in starts_of(events) if isinstance(reason, Speculated)]
    assert [(time, number) for time, number, _ in trials] == [(0, 3)]
    assert (trials[0][2].hole, trials[0][2].attempt, trials[0][2].test_run) == (1000, 1, False)
    (killed,) = (event for event in events if isinstance(event, JobEnded) and event.requeued)
    assert (killed.time, killed.run_time, killed.outcome) == (1000, 1000, "limit")
    last = [event for event in events if isinstance(event, JobStarted) and event.job_number == 3][-1]
    assert last.time == 3000  # where it had been planned: its place was kept
    assert sum(isinstance(event, JobSubmitted) for event in events) == 3


WRONG = [
    *("queue=LIFO", "weight=-1", "test_runs=perhaps", "shape=third", "widen=maybe"),
    *(f"speculate={share}" for share in ("1.1", "0", "-0.1", "nan", "half")),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_settings_out_of_range_are_named(wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong.partition("=")[0]):
        POLICIES.build(parse(f"conservative:{wrong}"))


def test_a_withdrawn_job_leaves_its_place_to_those_behind_it() -> None:
    policy = POLICIES.build(parse("conservative"))
    queue, running = Queue(), Running()
    running.add((1, 0, 2, *planned_times(1000, None, None), UNKNOWN, 0))
    for number, size, requested_time in ((2, 4, 1000), (3, 2, 1500)):
        policy.observe(
            JobSubmitted(time=0, job_number=number, requested_processors=size, requested_time=requested_time)
        )
        queue.add((number, 0, size, *planned_times(requested_time, None, None), UNKNOWN))
    assert list(policy.schedule(0, queue, running, 2)) == []  # job 3 is planned behind job 2, at 2000
    policy.observe(JobWithdrawn(time=10, job_number=2))
    queue.remove(2)
    (start,) = policy.schedule(10, queue, running, 2)
    assert isinstance(start, Start)
    assert start.job_number == 3


def test_a_wait_is_foreseen_for_real_starts_and_not_for_trials() -> None:
    policy = POLICIES.build(parse("conservative:speculate=0.2"))
    assert isinstance(policy, Conservative)
    queue, running = Queue(), Running()
    running.add((1, 0, 3, *planned_times(1000, None, None), UNKNOWN, 0))
    for number, size, requested_time in ((2, 4, 2000), (3, 1, 3000)):
        policy.observe(
            JobSubmitted(time=0, job_number=number, requested_processors=size, requested_time=requested_time)
        )
        queue.add((number, 0, size, *planned_times(requested_time, None, None), UNKNOWN))
    (trial,) = policy.schedule(0, queue, running, 1)
    assert isinstance(trial, Start)
    assert (trial.job_number, trial.limit) == (3, 1000)
    policy.observe(JobStarted(time=0, job_number=3, processors=1, limit=1000))
    assert (policy.foreseen, policy.waited) == (0, 0)
    policy.observe(JobStarted(time=900, job_number=2, processors=4, limit=2000))
    assert (policy.foreseen, policy.waited) == (1000, 900)
