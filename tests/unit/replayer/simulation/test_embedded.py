"""The whole pipeline in one process: what breaks a rule stops it with the reason."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.source import ReplaySource
from shadowtime.shared.errors import ReplayError, SequenceGap
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from tests.support.small_logs import generated, job, plan_of, workload_of


class Told(ReplaySource):
    """A source that tells what it was given, one instant per list, whatever it is."""

    name = "told"
    closed_loop = True

    def __init__(self, *instants: Sequence[Event], caused: Sequence[Event] = ()) -> None:
        self.instants = list(instants)
        self.caused = caused
        self.told = 0

    def next_time(self) -> int | None:
        return self.instants[self.told][0].time if self.told < len(self.instants) else None

    def next_instant(self) -> Sequence[Event]:
        self.told += 1
        return self.instants[self.told - 1] if self.told <= len(self.instants) else ()

    def apply(self, decided: Decided) -> Sequence[Event]:
        return self.caused

    def can_start(self) -> bool:
        return True

    def snapshot(self) -> Any:
        return self.told

    def restore(self, state: Any) -> None:
        self.told = state


OPENED = ClusterOpened(time=0, cluster="c", processors=4)
POINT = SchedulingPoint(time=5)


def submitted(job_number: int = 1, processors: int = 1) -> JobSubmitted:
    return JobSubmitted(time=5, job_number=job_number, requested_processors=processors, requested_time=60)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [JobStarted(time=5, job_number=17, processors=1)],
            "job 17, started at 5, neither waits nor runs",
        ),
        (
            [JobEnded(time=5, job_number=17, run_time=3)],
            "job 17, ended at 5, neither waits nor runs",
        ),
        ([submitted(), JobEnded(time=5, job_number=1, run_time=3)], "job 1, ended at 5, still waits"),
        ([submitted(), submitted()], "job 1 submitted at 5 is already waiting"),
        ([submitted(processors=300)], "job 1 requests 300 processors; the machine has 4"),
        ([POINT, SchedulingPoint(time=3)], "SchedulingPoint at 3 follows an event at 5: time went back"),
        ([OPENED.model_copy(update={"time": 5})], "run 'r' was already opened at 0"),
    ],
)
def test_a_rejected_event_stops_the_replay_with_its_reason(events: list[Event], reason: str) -> None:
    replay = EmbeddedReplay(OPENED, Told(events), run="r")
    with pytest.raises(ReplayError) as stopped:
        replay.run_to_end()
    assert str(stopped.value) == f"event {len(events)} of run 'r' was rejected: {reason}"


def test_what_a_decision_caused_is_checked_too() -> None:
    replay = EmbeddedReplay(OPENED, Told([POINT], caused=[JobStarted(time=5, job_number=9, processors=1)]), run="r")
    with pytest.raises(
        ReplayError,
        match="event 2 of run 'r' was rejected: job 9, started at 5, neither waits nor runs",
    ):
        replay.run_to_end()


def at_sequence(snapshot: bytes, sequence: int) -> bytes:
    """Return a snapshot of a replay that goes on at this event, wherever its stages are."""
    return orjson.dumps(orjson.loads(snapshot) | {"sequence": sequence})


def test_a_hole_in_the_sequence_is_named() -> None:
    replay = EmbeddedReplay(OPENED, Told([POINT], [SchedulingPoint(time=6)]), run="r")
    replay.step()
    replay.step()
    replay.restore(at_sequence(replay.snapshot(), 5))
    with pytest.raises(SequenceGap, match="scheduler: run 'r' is at sequence 1, but 5 arrived: 3 missing"):
        replay.step()


def test_an_event_told_twice_is_named() -> None:
    replay = EmbeddedReplay(OPENED, Told([POINT], [SchedulingPoint(time=6)]), run="r")
    replay.step()
    replay.step()
    replay.restore(at_sequence(replay.snapshot(), 1))
    with pytest.raises(ReplayError, match="event 1 of run 'r' was already handled"):
        replay.step()


def test_sequence_has_no_holes_from_opening_to_closing() -> None:
    envelopes: list[Envelope] = []
    last = plan_of(generated()).replay([envelopes.append]).run_to_end()
    assert [each.sequence for each in envelopes] == list(range(len(envelopes)))
    assert isinstance(envelopes[0].event, ClusterOpened)
    assert isinstance(last.event, ClusterClosed)
    assert envelopes[-1] is last
    assert last.scores is not None
    assert last.scores.policy.jobs == 60
    assert {each.run for each in envelopes} == {"generated/easy"}
    assert sum(isinstance(each.event, Decided) for each in envelopes) == last.scores.policy.scheduling_points
    assert not any(isinstance(each.event, SchedulingPoint) for each in envelopes), "each was answered in its place"


def test_a_closed_run_takes_no_step() -> None:
    replay = plan_of(workload_of(job(1))).replay()
    last = replay.run_to_end()
    assert replay.closed
    assert not replay.step()
    assert replay.run_to_end() is last


def test_a_log_without_any_event_is_opened_and_closed() -> None:
    last = EmbeddedReplay(OPENED, Told(), run="r").run_to_end()
    assert last.scores is not None
    assert (last.sequence, last.scores.policy.jobs, last.scores.policy.mean_wait) == (1, 0, None)


@pytest.mark.parametrize("left", [1, 2])
def test_a_run_restored_near_its_end_closes_with_the_same_scores(left: int) -> None:
    plan = plan_of(workload_of(job(1), job(2, 10)))
    whole, steps = plan.replay(), 1
    while whole.step():
        steps += 1
    cut = plan.replay()
    for _ in range(steps - left):
        cut.step()
    again = plan.replay()
    again.restore(cut.snapshot())
    last = again.run_to_end()
    assert last == whole.last


class Failing(Told):
    """A source as a plug-in may have it: what it is asked for it does not have."""

    name = "failing"

    def next_instant(self) -> Sequence[Event]:
        raise KeyError(5)


class Silent(Told):
    """A source that goes on, and tells nothing of it."""

    name = "silent"

    def next_instant(self) -> Sequence[Event]:
        return ()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (Failing([POINT]), "source 'failing' failed: KeyError: 5"),
        (Silent([POINT]), "source 'silent' has no event at its next instant, 5"),
        (Told([POINT], caused=None), "source 'told' failed: TypeError"),  # type: ignore[arg-type]
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_whatever_a_source_raises_is_one_line_that_names_it(source: ReplaySource, reason: str) -> None:
    with pytest.raises(ReplayError, match=reason):
        EmbeddedReplay(OPENED, source).run_to_end()


@pytest.mark.parametrize("decisions", [["rubbish"], iter(())])
def test_decisions_that_are_none_are_rejected(monkeypatch: pytest.MonkeyPatch, decisions: Any) -> None:
    """An iterator would be used up by the starts, and its kills be lost."""
    monkeypatch.setattr("shadowtime.services.scheduler.policies.fcfs.Fcfs.schedule", lambda *_: decisions)
    with pytest.raises(ReplayError, match="was rejected: scheduler failed: TypeError"):
        plan_of(workload_of(job(1)), "fcfs").replay().run_to_end()


def test_an_error_of_a_plug_in_is_the_cause_and_names_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def schedule(*_: Any) -> Any:
        return np.array([1]) @ np.ones((2, 2))  # numpy raises; this line is the culprit

    monkeypatch.setattr("shadowtime.services.scheduler.policies.fcfs.Fcfs.schedule", schedule)
    line = schedule.__code__.co_firstlineno + 1
    with pytest.raises(ReplayError, match=rf"ValueError: .* \(test_embedded.py:{line}\)") as raised:
        plan_of(workload_of(job(1)), "fcfs").replay().run_to_end()
    assert isinstance(raised.value.__cause__, ValueError)
