"""The rules that every stage keeps: position, rejection, snapshots."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import SequenceGap, SnapshotMismatch
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.stages.snapshot_head import SNAPSHOT_SCHEMA, fingerprint
from shadowtime.shared.stages.stage import Stage, StageRun

OPENED = ClusterOpened(time=100, cluster="c", processors=10, runtime="last-two")

EVERY_STAGE = pytest.mark.parametrize("stage", STAGES, ids=lambda each: each.name)


def submitted(job_number: int, processors: int = 2, time: int = 110) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=job_number, requested_processors=processors, requested_time=60, user_id=1)


LOG: tuple[Event, ...] = (
    OPENED,
    submitted(1),
    submitted(2),
    SchedulingPoint(time=110),
    JobStarted(time=110, job_number=1, processors=2, limit=60),
)
"""After it, job 1 runs and job 2 waits."""


def envelope(sequence: int, event: Event) -> Envelope:
    return Envelope(run="r", sequence=sequence, event=event)


def told(stage: Stage, events: Sequence[Event] = LOG) -> StageRun:
    run = StageRun(stage)
    for sequence, event in enumerate(events):
        answer = run.push(envelope(sequence, event))
        assert answer is not None
        assert not isinstance(answer.event, Rejected)
    return run


def state(run: StageRun) -> Any:
    """Return everything but the position, which a rejected event takes too."""
    saved = orjson.loads(run.snapshot())
    del saved["sequence"]
    return saved


def rejection(run: StageRun, event: Event) -> str:
    """Return why `event` is rejected, having seen that it changes nothing."""
    before, sequence = state(run), run.sequence
    answer = run.push(envelope(sequence + 1, event))
    assert answer is not None
    assert isinstance(answer.event, Rejected)
    assert answer == envelope(sequence + 1, Rejected(time=event.time, reason=answer.event.reason))
    assert run.sequence == sequence + 1
    assert state(run) == before
    return answer.event.reason


# Position


@EVERY_STAGE
def test_a_duplicate_is_dropped_and_changes_nothing(stage: Stage) -> None:
    run = told(stage)
    before = run.snapshot()
    for sequence, event in enumerate(LOG):
        assert run.push(envelope(sequence, event)) is None
    assert run.push(envelope(2, JobEnded(time=999, job_number=1, run_time=5))) is None
    assert run.snapshot() == before


@EVERY_STAGE
@pytest.mark.parametrize("missing", [1, 7])
def test_a_gap_is_never_applied(stage: Stage, missing: int) -> None:
    run = told(stage)
    before = run.snapshot()
    at = len(LOG) - 1
    complaint = f"{stage.name}: run 'r' is at sequence {at}, but {at + 1 + missing} arrived: {missing} missing"
    with pytest.raises(SequenceGap, match=complaint):
        run.push(envelope(at + 1 + missing, SchedulingPoint(time=200)))
    assert run.snapshot() == before
    assert run.push(envelope(at + 1, SchedulingPoint(time=200))) is not None


@EVERY_STAGE
def test_a_log_that_does_not_begin_at_0_is_a_gap(stage: Stage) -> None:
    run = StageRun(stage)
    with pytest.raises(SequenceGap, match="is at sequence -1, but 1 arrived: 1 missing"):
        run.push(envelope(1, OPENED))
    assert run.handler is None
    assert run.push(envelope(0, OPENED)) == envelope(0, OPENED)


# Rules


@EVERY_STAGE
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (submitted(2), "job 2 submitted at 110 is already waiting"),
        (submitted(1), "job 1 submitted at 110 is already running"),
        (submitted(3, 11), "job 3 requests 11 processors; the machine has 10"),
        (JobStarted(time=110, job_number=1, processors=2), "job 1, started at 110, runs already"),
        (
            JobStarted(time=110, job_number=3, processors=2),
            "job 3, started at 110, neither waits nor runs",
        ),
        (JobEnded(time=110, job_number=2, run_time=0), "job 2, ended at 110, still waits"),
        (
            JobEnded(time=110, job_number=3, run_time=0),
            "job 3, ended at 110, neither waits nor runs",
        ),
        (JobStarted(time=110, job_number=2, processors=11), "job 2 starts on 11 processors; the machine has 10"),
        (JobEnded(time=110, job_number=1, run_time=999), "job 1 ran 999 s, but held its processors for 0 s only"),
        (OPENED.model_copy(update={"time": 110}), "run 'r' was already opened at 100"),
        (submitted(3, time=109), "JobSubmitted at 109 follows an event at 110: time went back"),
        (SchedulingPoint(time=109), "SchedulingPoint at 109 follows an event at 110: time went back"),
        (CapacityChanged(time=0, processors=4), "CapacityChanged at 0 follows an event at 110: time went back"),
        (Decided(time=109), "Decided at 109 follows an event at 110: time went back"),
    ],
)
def test_an_event_that_breaks_a_rule_is_rejected_and_changes_nothing(stage: Stage, event: Event, reason: str) -> None:
    assert rejection(told(stage), event) == reason


@EVERY_STAGE
def test_the_log_goes_on_after_a_rejection(stage: Stage) -> None:
    run, undisturbed = told(stage), told(stage)
    rejection(run, JobEnded(time=500, job_number=2, run_time=0))
    end = JobEnded(time=150, job_number=1, run_time=40)
    answer, expected = run.push(envelope(run.sequence + 1, end)), undisturbed.push(envelope(len(LOG), end))
    assert answer is not None
    assert expected is not None
    assert answer.model_copy(update={"sequence": expected.sequence}) == expected
    assert state(run) == state(undisturbed)


@EVERY_STAGE
def test_a_job_may_be_as_large_as_the_machine_was_or_is(stage: Stage) -> None:
    grown = told(stage, (*LOG, CapacityChanged(time=120, processors=20)))
    assert grown.push(envelope(len(LOG) + 1, submitted(3, 20, 120))) == envelope(len(LOG) + 1, submitted(3, 20, 120))
    assert rejection(grown, submitted(4, 21, 120)) == "job 4 requests 21 processors; the machine has 20"
    shrunk = told(stage, (*LOG, CapacityChanged(time=120, processors=4)))
    assert shrunk.push(envelope(len(LOG) + 1, submitted(3, 10, 120))) == envelope(len(LOG) + 1, submitted(3, 10, 120))


@EVERY_STAGE
def test_an_event_of_a_run_that_is_not_open_is_rejected(stage: Stage) -> None:
    run = StageRun(stage)
    answer = run.push(envelope(0, submitted(1)))
    assert answer == envelope(0, Rejected(time=110, reason="JobSubmitted at 110: run 'r' is not open"))
    assert run.handler is None
    assert run.sequence == 0


@pytest.mark.parametrize(
    ("stage_name", "settings", "reason"),
    [
        (
            "scheduler",
            {"policy": "easy:depth=3"},
            "policy 'easy' has no key 'depth'; known keys: adjust_queue, adjust_candidates, running, distribution, "
            "fallback, queue, candidates, by, threshold, forecast, plan, weight, runtime, adjustment",
        ),
        ("scheduler", {"policy": "easy("}, "'easy(' is not a SPEC: expected a closing parenthesis at its end"),
        ("runtime_distribution", {"runtime": "empirical:prior=no"}, "run-time predictor 'empirical': prior=no: "),
    ],
)
def test_settings_that_are_not_known_are_rejected(stage_name: str, settings: dict[str, str], reason: str) -> None:
    run = StageRun(next(stage for stage in STAGES if stage.name == stage_name))
    opened = OPENED.model_copy(update=settings)
    answer = run.push(envelope(0, opened))
    assert answer is not None
    assert isinstance(answer.event, Rejected)
    assert answer.event.time == opened.time
    assert answer.event.reason.startswith(reason)
    assert run.handler is None


# Snapshots


@EVERY_STAGE
def test_a_restored_run_is_the_same(stage: Stage) -> None:
    run = told(stage)
    again = StageRun(stage)
    again.restore(run.snapshot(), fingerprint(OPENED))
    assert again.snapshot() == run.snapshot()
    assert again.sequence == run.sequence


def test_a_run_that_was_never_opened_has_a_snapshot_too() -> None:
    """All it holds is its position: whatever comes is rejected, also after a restart."""
    run = StageRun(STAGES[0])
    point = Envelope(run="r", sequence=0, event=SchedulingPoint(time=0))
    answer = run.push(point)
    assert answer is not None
    assert answer.event.kind == "Rejected"
    again = StageRun(STAGES[0])
    again.restore(run.snapshot())
    assert (again.sequence, again.handler) == (0, None)
    assert again.snapshot() == run.snapshot()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"schema": 0},
            f"the snapshot has schema 0, expected {SNAPSHOT_SCHEMA}; rebuild the stage from the beginning of its topic",
        ),
        ({"schema": 99}, f"the snapshot has schema 99, expected {SNAPSHOT_SCHEMA}"),
        ({"stage": "scoreboard"}, "the snapshot has stage 'scoreboard', expected 'scheduler'"),
        ({"settings": "0123"}, "the snapshot has settings '0123', expected '[0-9a-f]{16}'"),
    ],
)
def test_a_snapshot_of_something_else_is_refused(change: dict[str, Any], complaint: str) -> None:
    stage = next(stage for stage in STAGES if stage.name == "scheduler")
    saved = orjson.loads(told(stage).snapshot()) | change
    run = told(stage, LOG[:2])
    before = run.snapshot()
    with pytest.raises(SnapshotMismatch, match=complaint):
        run.restore(orjson.dumps(saved), fingerprint(OPENED))
    assert run.snapshot() == before


def test_the_fingerprint_tells_every_setting() -> None:
    changes: dict[str, Any] = {
        "time": 101,
        "cluster": "d",
        "processors": 11,
        "pools": (Pool(name="all", processors=10),),
        "mode": "recorded",
        "policy": "fcfs",
        "runtime": "requested",
        "adjustment": "other",
        "wait_bound": "other",
        "seed": 1,
        "unix_start": 1,
        "sample_every": 900,
        "name": "best",
        "experiment": "mine",
        "obeyed_from": 200,
    }
    assert set(changes) == set(ClusterOpened.model_fields) - {"kind"}
    prints = {fingerprint(OPENED.model_copy(update={key: value})) for key, value in changes.items()}
    assert len(prints | {fingerprint(OPENED)}) == len(changes) + 1
    assert fingerprint(ClusterOpened.model_validate(OPENED.model_dump())) == fingerprint(OPENED)
