"""What every stage keeps; a new one is tested by standing in the pipeline."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.stages.stage import Stage, StageRun
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import workloads
from tests.support.strategies.logs import CHANGES, OPENINGS, PROCESSORS, eventful_logs, wild_logs

EVERY_STAGE = pytest.mark.parametrize("stage", STAGES, ids=lambda each: each.name)


@given(opened=OPENINGS, jobs=workloads(processors=PROCESSORS), changes=CHANGES)
@examples(50)
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
@examples(40)
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


@given(log=eventful_logs())
@examples(200)
def test_nothing_that_real_clusters_do_is_rejected_or_left_over(log: tuple[ClusterOpened, list[Event]]) -> None:
    """Cancelled, held, changed, suspended and told late: all stages follow, and are empty in the end."""
    opened, events = log
    chain = Chain(opened)
    chain.push(opened)
    for event in events:
        chain.push(event)
    for stage in chain.stages.values():
        assert stage.handler is not None
        assert not stage.handler.jobs.waiting
        assert not stage.handler.jobs.running
    scheduler = chain.stages["scheduler"].handler
    assert isinstance(scheduler, Scheduler)
    assert not scheduler.places
    assert not scheduler.blocked
    for pool in scheduler.pools:
        assert (len(pool.queue), len(pool.running), pool.used) == (0, 0, 0)
        assert not pool.suspended
        assert not pool.queue.fractions
        assert not pool.queue.priorities
        assert not pool.histograms.snapshot()
    scoreboard = chain.stages["scoreboard"].handler
    assert isinstance(scoreboard, Scoreboard)
    for kept in (scoreboard.predictions, scoreboard.adjusted_times):
        assert not kept
    tally = scoreboard.tally
    for waiting in (tally.coverage.waiting, tally.forecasts.waiting, tally.expected.waiting):
        assert not waiting


@EVERY_STAGE
@given(log=eventful_logs(), data=st.data())
@examples(60)
def test_a_restored_stage_goes_on_whatever_real_clusters_do(
    stage: Stage, log: tuple[ClusterOpened, list[Event]], data: st.DataObject
) -> None:
    chain = Chain(log[0])
    for event in (log[0], *log[1]):
        chain.push(event)
    read = chain.read[stage.name]
    cut = data.draw(st.integers(1, len(read)))
    whole, again = StageRun(stage), StageRun(stage)
    for envelope in read[:cut]:
        whole.push(envelope)
    again.restore(whole.snapshot())
    for envelope in read[cut:]:
        assert again.push(envelope) == whole.push(envelope)
    assert again.snapshot() == whole.snapshot()


def state(run: StageRun) -> bytes:
    """Return everything but the position."""
    return run.snapshot().replace(b'"sequence":%d' % run.sequence, b"", 1)


@given(log=wild_logs())
@examples(400)
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
@examples(200)
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
            {"policy": "cautious"},
            "policy 'cautious' is a short name, but a run needs a full SPEC; `shadowtime list policies cautious` ",
        ),
        (
            {"policy": "easy:depth=3"},
            "policy 'easy' has no key 'depth'; known keys: adjust_queue, adjust_candidates, running, distribution, "
            "fallback, queue, candidates, by, threshold, forecast, plan, weight, runtime, adjustment",
        ),
    ],
)
def test_an_unknown_setting_is_named_by_the_last_stage_too(setting: dict[str, str], reason: str) -> None:
    stages = [StageRun(stage) for stage in STAGES]
    opened = ClusterOpened(time=0, cluster="c", processors=PROCESSORS).model_copy(update=setting)
    answer = through(stages, 0, opened)
    assert isinstance(answer, Rejected)
    assert answer.reason.startswith(reason)
