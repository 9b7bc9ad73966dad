"""What every stage keeps; a new one is tested by standing in the pipeline."""

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowtime.replayer.machine import Machine
from shadowtime.replayer.recorded import Recorded
from shadowtime.replayer.workload import Workload
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.events import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.predictions import RunTimePrediction, WalltimeAdjustment
from shadowtime.shared.stage import Stage, StageRun
from tests.checks.chain import Chain
from tests.checks.listed import specs
from tests.checks.workloads import workloads

EVERY_STAGE = pytest.mark.parametrize("stage", STAGES, ids=lambda each: each.name)
PROCESSORS = 8
FORECASTS = [f"{name}:forecast=yes" for name in ("fcfs", "lwf", "easy", "easy-sjbf", "all-reserve")]

OPENINGS = st.builds(
    ClusterOpened,
    time=st.just(0),
    cluster=st.just("c"),
    processors=st.just(PROCESSORS),
    policy=st.sampled_from([*specs("policy"), *FORECASTS]),
    runtime=st.sampled_from(specs("runtime")),
    adjustment=st.sampled_from(specs("adjustment")),
    wait_bound=st.sampled_from(specs("wait-bound")),
    seed=st.integers(0, 9),
    sample_every=st.none() | st.integers(1, 20),
)


def capacity_changes(times: Sequence[int]) -> list[CapacityChanged]:
    """Return a machine that shrinks and grows back by turns at the given times."""
    sizes = [PROCESSORS // 2, PROCESSORS]
    return [CapacityChanged(time=time, processors=sizes[turn % 2]) for turn, time in enumerate(sorted(times))]


CHANGES = st.lists(st.integers(0, 60), max_size=2).map(lambda times: times * 2).map(capacity_changes)


@given(opened=OPENINGS, jobs=workloads(processors=PROCESSORS), changes=CHANGES)
@settings(max_examples=50, deadline=None)
def test_every_event_passes_every_stage_once(
    opened: ClusterOpened, jobs: Workload, changes: list[CapacityChanged]
) -> None:
    chain = Chain(opened)
    for event, answer in chain.play(Machine(jobs, changes)):
        assert answer.run == "r"
        assert answer.sequence == chain.sequence - 1
        if isinstance(event, SchedulingPoint):
            assert isinstance(answer.event, Decided)
            assert answer.event.time == event.time
        else:
            assert answer.event == event
        assert (answer.scores is not None) == isinstance(event, ClusterClosed)


@EVERY_STAGE
@given(
    opened=OPENINGS,
    jobs=workloads(processors=PROCESSORS, waits=True),
    changes=CHANGES,
    recorded=st.booleans(),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_a_restored_stage_goes_on_as_if_never_interrupted(
    stage: Stage,
    opened: ClusterOpened,
    jobs: Workload,
    changes: list[CapacityChanged],
    recorded: bool,
    data: st.DataObject,
) -> None:
    chain = Chain(opened)
    for _ in chain.play(Recorded(jobs, changes) if recorded else Machine(jobs, changes)):
        pass
    log = chain.read[stage.name]
    cut = data.draw(st.integers(1, len(log)))
    first = StageRun(stage)
    before = [first.push(envelope) for envelope in log[:cut]]
    second = StageRun(stage)
    second.restore(first.snapshot())
    assert second.snapshot() == first.snapshot()
    after = [second.push(envelope) for envelope in log[cut:]]
    whole = StageRun(stage)
    assert before + after == [whole.push(envelope) for envelope in log]
    assert second.snapshot() == whole.snapshot()


def event_of(kind: int, time: int, number: int, processors: int, seconds: int, outcome: Outcome) -> Event:
    """Return one of all kinds of events that may stand within a log."""
    limit = seconds or None
    return (
        JobSubmitted(
            time=time,
            job_number=number,
            requested_processors=processors,
            requested_time=limit,
            user_id=seconds % 3 or None,
        ),
        JobStarted(time=time, job_number=number, processors=processors, limit=limit),
        JobEnded(time=time, job_number=number, run_time=seconds, outcome=outcome, requeued=seconds % 4 == 0),
        SchedulingPoint(time=time),
        CapacityChanged(time=time, processors=processors),
        Decided(time=time),
    )[kind]


def predicted(seconds: int) -> dict[str, object]:
    """Return what earlier stages may have added to an envelope."""
    run_time = RunTimePrediction(point=seconds / 2, observations=1) if seconds % 5 else None
    adjustment = WalltimeAdjustment(adjusted_time=seconds, observations=1) if seconds % 3 else None
    return {"run_time": run_time, "adjustment": adjustment}


EVENTS = st.tuples(
    st.sampled_from([0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5]),
    st.sampled_from([0, 0, 0, 1, 7, -4]),  # seconds since the event before it
    st.integers(1, 6),
    st.integers(1, PROCESSORS + 1),
    st.integers(0, 20),
    st.sampled_from(get_args(Outcome)),
)


@st.composite
def wild_logs(draw: st.DrawFn) -> list[Envelope]:
    """Return logs that anything may stand in, also what earlier stages would never let through."""
    log, time = [Envelope(run="r", sequence=0, event=draw(OPENINGS))], 5
    for sequence, (kind, gap, number, processors, seconds, outcome) in enumerate(
        draw(st.lists(EVENTS, max_size=40)), 1
    ):
        time = max(time + gap, 0)
        event = event_of(kind, time, number, processors, seconds, outcome)
        log.append(Envelope(run="r", sequence=sequence, event=event).model_copy(update=predicted(seconds)))
    return log


def state(run: StageRun) -> bytes:
    """Return everything but the position."""
    return run.snapshot().replace(b'"sequence":%d' % run.sequence, b"", 1)


@given(log=wild_logs())
@settings(max_examples=400, deadline=None)
def test_whatever_comes_in_one_thing_goes_out(log: list[Envelope]) -> None:
    for stage in STAGES:
        run = StageRun(stage)
        before = b""
        for envelope in log:
            answer = run.push(envelope)
            assert answer is not None
            assert (answer.run, answer.sequence, answer.event.time) == ("r", envelope.sequence, envelope.event.time)
            after = state(run)
            if isinstance(answer.event, Rejected):
                assert after == before, stage.name
            before = after


@given(log=wild_logs(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_snapshot_of_a_wild_log_restores_too(log: list[Envelope], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(log)))
    for stage in STAGES:
        whole, again = StageRun(stage), StageRun(stage)
        for envelope in log[:cut]:
            whole.push(envelope)
        again.restore(whole.snapshot())
        for envelope in log[cut:]:
            assert again.push(envelope) == whole.push(envelope), stage.name
        assert again.snapshot() == whole.snapshot(), stage.name


def through(stages: Sequence[StageRun], sequence: int, event: Event) -> Event:
    envelope = Envelope(run="r", sequence=sequence, event=event)
    for stage in stages:
        answer = stage.push(envelope)
        assert answer is not None
        envelope = answer
    return envelope.event


@given(log=wild_logs())
@settings(max_examples=200, deadline=None)
def test_a_rejected_event_keeps_its_reason_and_leaves_all_stages_agreed(log: list[Envelope]) -> None:
    stages = [StageRun(stage) for stage in STAGES]
    for envelope in log:
        first = StageRun(STAGES[0])
        if stages[0].handler is not None:
            first.restore(stages[0].snapshot())
        alone = first.push(envelope)
        assert alone is not None
        answer = through(stages, envelope.sequence, envelope.event)
        if isinstance(alone.event, Rejected):
            assert answer == alone.event
        assert len({stage.handler.time for stage in stages if stage.handler is not None}) == 1


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"runtime": "glass"}, "unknown run-time predictor 'glass'; known: "),
        ({"adjustment": "glass"}, "unknown walltime adjustment 'glass'; known: "),
        ({"wait_bound": "glass"}, "unknown wait bound 'glass'; known: "),
        ({"policy": "glass"}, "unknown policy 'glass'; known: "),
        (
            {"policy": "easy:depth=3"},
            "policy 'easy' has no key 'depth'; known keys: queue, candidates, running, distribution, fallback, "
            "forecast, plan, order, weight, runtime, adjustment",
        ),
    ],
)
def test_an_unknown_setting_is_named_by_the_last_stage_too(setting: dict[str, str], reason: str) -> None:
    stages = [StageRun(stage) for stage in STAGES]
    opened = ClusterOpened(time=0, cluster="c", processors=PROCESSORS).model_copy(update=setting)
    answer = through(stages, 0, opened)
    assert isinstance(answer, Rejected)
    assert answer.reason.startswith(reason)
