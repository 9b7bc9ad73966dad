"""Outcomes as the scheduler finds them, against a recomputation from the whole log."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given

import shadowtime.services.scheduler.probabilistic.outcomes as outcomes
import shadowtime.services.scheduler.probabilistic.recalibration as recalibration
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.probabilistic.outcomes import CandidateOutcome, Outcomes
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    JobEnded,
    JobStarted,
    SchedulingPoint,
)
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads
from tests.support.weighed import WeighedLog

SPEC = "probabilistic:tau=0.3,runtime=empirical,recalibrate=stated"

Row = tuple[int, int, float, bool]
"""When it is told of, number and probability of a candidate, and whether it delays."""


class Log(WeighedLog):
    """Remembers when jobs started and passes were, too."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: dict[int, int] = {}
        self.passes: list[int] = []

    def __call__(self, envelope: Envelope) -> None:
        super().__call__(envelope)
        event = envelope.event
        if isinstance(event, JobStarted):
            self.starts[event.job_number] = event.time
        elif isinstance(event, Decided):
            self.passes.append(event.time)

    def rows(self) -> list[Row]:
        """Return what there is to tell of, at the first pass at which it may be."""
        last = self.passes[-1]
        return sorted(
            (self.passes[bisect_left(self.passes, due)], number, probability, delayed)
            for due, number, probability, delayed in self._outcomes()
            if due <= last
        )

    def _outcomes(self) -> Iterator[Row]:
        for now, attempt, ready, released in self.ready():
            for number, probability in zip(attempt.job_numbers, attempt.probabilities, strict=True):
                if released >= attempt.needed + self.sizes[number]:
                    yield ready, number, probability, False
                else:
                    due = self.starts[number] + ready - now
                    yield max(due, ready), number, probability, self.ends[number].time > due


def run_of(jobs: Workload, policy: str = SPEC) -> ClusterOpened:
    """Return the settings of a run."""
    spec, runtime, adjustment = configure(policy)
    return ClusterOpened(
        time=0, cluster="c", processors=jobs.processors, policy=spec, runtime=runtime, adjustment=adjustment
    )


def told(jobs: Workload, changes: Sequence[CapacityChanged] = ()) -> tuple[Log, list[Row], Outcomes]:
    """Return the log of a replay, what its scheduler was told and when, and what it still follows."""
    found: list[Row] = []
    followed: list[Outcomes] = []

    class Noted(Outcomes):
        def __init__(self) -> None:
            super().__init__()
            followed.append(self)

        def take_until(self, now: int) -> Iterator[CandidateOutcome]:
            for each in super().take_until(now):
                found.append((now, each.candidate.job_number, each.candidate.probability, each.delayed))
                yield each

    log = Log()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recalibration, "Outcomes", Noted)
        EmbeddedReplay(run_of(jobs), Machine(jobs, changes), [log]).run_to_end()
    return log, found, followed[-1]


def bundled(jobs: int) -> Workload:
    return prepare(read_swf(BUNDLED), limit=jobs)


@given(jobs=workloads())
@examples(60)
def test_outcomes_of_small_logs(jobs: Workload) -> None:
    log, found, _ = told(jobs)
    assert sorted(found) == log.rows()


def test_outcomes_of_the_bundled_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "EACH_ATTEMPT", 1 << 20)
    log, found, _ = told(bundled(700))
    assert sorted(found) == log.rows()
    assert 0.1 < sum(row[3] for row in found) / len(found) < 0.95


def test_a_crowd_is_followed_by_some_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt has more than so many, and they are some of what there is to tell of."""
    monkeypatch.setattr(outcomes, "EACH_ATTEMPT", 2)
    log, found, _ = told(bundled(700))
    rows = log.rows()
    assert len(found) < len(rows)
    assert not Counter(found) - Counter(rows)
    assert sum(min(len(each.job_numbers), 2) for _, _, each in log.attempts) >= len(found)


def test_no_more_are_followed_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    class Watched(Outcomes):
        def take_until(self, now: int) -> Iterator[CandidateOutcome]:
            nonlocal most
            most = max(most, self.followed)
            yield from super().take_until(now)

    monkeypatch.setattr(outcomes, "MAX_FOLLOWED", 40)
    monkeypatch.setattr(recalibration, "Outcomes", Watched)
    jobs = bundled(700)
    EmbeddedReplay(run_of(jobs), Machine(jobs)).run_to_end()
    assert 30 < most <= 40


def test_nothing_is_left_of_a_head_that_cannot_start() -> None:
    """The machine shrinks below the head for a while, and small jobs pass it by."""
    rows = [TraceRow(1, 0, 8, 60, 60), TraceRow(2, 1, 8, 60, 60)]
    rows += [TraceRow(number, 70 + number * 20, 1, 15, 15) for number in range(3, 60)]
    jobs = workload(8, rows)
    changes = (CapacityChanged(time=30, processors=4), CapacityChanged(time=5000, processors=8))
    log, found, followed = told(jobs, changes)
    assert len(log.attempts) > 20
    assert found == []
    assert (followed.followed, followed.open, followed.ran, followed.waiting) == (0, {}, {}, {})


def test_nothing_is_left_when_all_has_ended() -> None:
    _, _, followed = told(bundled(400))
    state = followed.snapshot()
    assert {name: state[name] for name in ("candidates", "waiting", "running", "ran")} == {
        "candidates": [],
        "waiting": [],
        "running": [],
        "ran": [],
    }


def test_told_at_one_time_however_it_turns_out() -> None:
    """Jobs 2 and 3 start at 100 and would not, or would, have delayed a head ready after 50 s: both are told at 150."""
    follows = Outcomes()
    follows.start(JobStarted(time=0, job_number=1, processors=4))
    follows.follow(10, 4, [], [(2, 1, 0.5, 0.5, False), (3, 1, 0.5, 0.5, False)])
    follows.end(JobEnded(time=60, job_number=1, run_time=60))
    assert list(follows.take_until(60)) == []
    for number in (2, 3):
        follows.start(JobStarted(time=100, job_number=number, processors=1))
    follows.end(JobEnded(time=120, job_number=2, run_time=20))
    assert list(follows.take_until(149)) == []
    assert [(each.candidate.job_number, each.delayed) for each in follows.take_until(150)] == [(2, False), (3, True)]


def test_a_run_that_is_to_be_repeated_tells_nothing() -> None:
    follows = Outcomes()
    follows.start(JobStarted(time=0, job_number=1, processors=4))
    follows.follow(10, 4, [], [(2, 1, 0.5, 0.5, False)])
    follows.end(JobEnded(time=60, job_number=1, run_time=60))
    follows.start(JobStarted(time=100, job_number=2, processors=1))
    follows.end(JobEnded(time=120, job_number=2, run_time=20, requeued=True))
    assert list(follows.take_until(1000)) == []
    assert follows.followed == 0


def test_the_future_changes_nothing_of_the_past() -> None:
    """Jobs that have not ended in the middle of a log run to their requests instead: what was stated by then stays."""
    jobs = bundled(600)

    def stated(jobs: Workload) -> tuple[list[Decided], dict[int, int]]:
        decided: list[Decided] = []
        ends: dict[int, int] = {}

        def note(envelope: Envelope) -> None:
            if isinstance(envelope.event, Decided):
                decided.append(envelope.event)
            elif isinstance(envelope.event, JobEnded):
                ends[envelope.event.job_number] = envelope.event.time

        EmbeddedReplay(run_of(jobs, SPEC.replace("stated", "yes")), Machine(jobs), [note]).run_to_end()
        return decided, ends

    before, ends = stated(jobs)
    middle = before[len(before) // 2].time
    later = np.array([ends[number] > middle for number in jobs.columns["job_number"].tolist()])
    run_times = np.where(later, jobs.columns["requested_time"], jobs.columns["run_time"])
    after, _ = stated(replace(jobs, columns={**jobs.columns, "run_time": run_times}))
    assert after != before
    assert [each for each in after if each.time <= middle] == [each for each in before if each.time <= middle]
    assert any(each.recalibrated != each.probabilities for decided in before[:100] for each in decided.evaluated)


def test_restored_in_the_middle() -> None:
    """Cut anywhere, the scheduler goes on as if it had not been."""
    jobs = bundled(300)
    opened = run_of(jobs, SPEC.replace("stated", "yes"))
    seen: list[Envelope] = []
    EmbeddedReplay(opened, Machine(jobs), [seen.append]).run_to_end()
    scheduler = Scheduler(opened)
    for number, envelope in enumerate(seen[1:]):
        if number % 37 == 0:
            state = orjson.loads(orjson.dumps(scheduler.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY))
            scheduler = Scheduler(opened)
            scheduler.restore(state)
        event = envelope.event
        point = SchedulingPoint(time=event.time) if isinstance(event, Decided) else event
        answer = scheduler.handle(envelope.model_copy(update={"event": point, "scores": None}))
        assert answer.event == event
