"""Conservative backfilling in every combination: promises are kept, capacity too, and every job ends."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replayer.embedded import EmbeddedReplay
from replayer.machine import Machine
from replayer.swf import Workload
from services.catalogue import configure
from services.scheduler.policies import POLICIES
from shared.errors import SettingsError
from shared.events import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from shared.plan_reasons import Reserved, Speculated
from shared.spec import parse
from tests.checks.workloads import TraceRow, workload, workloads

ORDERS = ["BF", "P", "R", "1/L", "P/L", "R/L"]
COMBINATIONS = st.builds(
    "conservative:order={},guarantees={},speculate={},test_runs={},weight={}".format,
    st.sampled_from(ORDERS),
    st.sampled_from(["yes", "no"]),
    st.sampled_from([0, 0.2, 0.8, 1]),
    st.sampled_from(["yes", "no"]),
    st.sampled_from([0, 0.001]),
)


def events_of(jobs: Workload, policy: str, seed: int = 0, *, restartable: bool = True) -> list[Event]:
    """Return everything that happened in a replay."""
    spec, runtime, adjustment = configure(policy)
    opened = ClusterOpened(
        time=0,
        cluster="c",
        processors=jobs.processors,
        policy=spec,
        runtime=runtime,
        adjustment=adjustment,
        seed=seed,
    )
    events: list[Event] = []

    def note(envelope: Envelope) -> None:
        events.append(envelope.event)

    EmbeddedReplay(opened, Machine(jobs, restartable=restartable), [note]).run_to_end()
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


@given(jobs=workloads(), policy=COMBINATIONS, seed=st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_every_job_ends_in_the_end(jobs: Workload, policy: str, seed: int) -> None:
    events = events_of(jobs, policy, seed)
    check_capacity(events, jobs.processors)
    ended = [event.job_number for event in events if isinstance(event, JobEnded) and not event.requeued]
    assert sorted(ended) == sorted(job.job_number for job in jobs)


@given(jobs=workloads(), order=st.sampled_from(ORDERS), seed=st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_no_job_starts_later_than_promised(jobs: Workload, order: str, seed: int) -> None:
    for time, _, reason in starts_of(events_of(jobs, f"conservative:order={order}", seed)):
        assert isinstance(reason, Reserved)
        assert reason.guaranteed_start is not None
        assert time <= reason.guaranteed_start


@given(jobs=workloads())
@settings(max_examples=50, deadline=None)
def test_with_actual_run_times_nothing_is_ever_on_trial_for_nothing(jobs: Workload) -> None:
    events = events_of(jobs, "conservative:speculate=1,test_runs=no", restartable=False)
    assert not any(isinstance(reason, Speculated) for _, _, reason in starts_of(events))
    assert not any(event.requeued for event in events if isinstance(event, JobEnded))


def test_another_seed_is_another_schedule() -> None:
    jobs = workload(4, [TraceRow(n, n, 1 + n % 4, 100, 50 + n) for n in range(1, 60)])
    first, again, other = (
        list(starts_of(events_of(jobs, "conservative:order=R,guarantees=no", seed))) for seed in (1, 1, 2)
    )
    assert first == again != other


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


@pytest.mark.parametrize("wrong", ["order=LIFO", "speculate=1.1", "speculate=-0.1", "weight=-1", "test_runs=perhaps"])
def test_settings_out_of_range_are_named(wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong.partition("=")[0]):
        POLICIES.build(parse(f"conservative:{wrong}"))
