"""The check of the log that stages of one process make together is the one that each makes for itself."""

from collections.abc import Sequence

import pytest
from hypothesis import given

from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import LogViolation, SnapshotMismatch
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Envelope,
    Event,
    JobStarted,
    JobSubmitted,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.stages.handler import StageHandler, read_together
from shadowtime.shared.stages.run_log import RunLog
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload
from tests.support.strategies.logs import wild_logs

OPENED = ClusterOpened(time=0, cluster="c", processors=4)


def told(event: Event) -> Envelope:
    return Envelope(run="r", sequence=1, event=event)


def through(stages: Sequence[StageRun], envelope: Envelope) -> list[Envelope]:
    """Return what each stage answers."""
    answers = []
    for stage in stages:
        answer = stage.push(envelope)
        assert answer is not None
        answers.append(envelope := answer)
    return answers


def handlers(stages: Sequence[StageRun]) -> list[StageHandler]:
    return [stage.handler for stage in stages if stage.handler is not None]


@given(log=wild_logs())
@examples(200)
def test_checked_once_is_checked_by_every_stage(log: list[Envelope]) -> None:
    alone, together = [StageRun(stage) for stage in STAGES], [StageRun(stage) for stage in STAGES]
    shared = False
    for envelope in log:
        answers = through(alone, envelope)
        assert through(together, envelope) == answers
        refused = [isinstance(answer.event, Rejected) for answer in answers]
        if any(refused) and not refused[0]:
            return  # a replay ends where a later stage rejects an event
        assert [stage.snapshot() for stage in together] == [stage.snapshot() for stage in alone]
        if not shared and len(handlers(together)) == len(STAGES):
            read_together(handlers(together))
            shared = True
            assert len({id(handler.jobs) for handler in handlers(together)}) == 1


def test_an_event_has_happened_when_the_last_reader_is_through() -> None:
    log = RunLog(OPENED)
    log.add_reader(RunLog(OPENED))
    job = told(JobSubmitted(time=3, job_number=1, requested_processors=2, requested_time=9))
    for waits in ([], [1]):
        assert log.check(job) is None
        assert list(log.jobs.waiting) == []
        log.mark_read()
        assert list(log.jobs.waiting) == waits
    assert log.time == 3


def test_a_rejected_event_may_be_told_again_as_it_should_be() -> None:
    log = RunLog(OPENED)
    with pytest.raises(LogViolation, match="job 1, started at 3, neither waits nor runs"):
        log.check(told(JobStarted(time=3, job_number=1, processors=2)))
    assert log.time == 0
    log.check(told(JobSubmitted(time=2, job_number=1, requested_processors=2, requested_time=9)))
    log.mark_read()
    assert log.check(told(JobStarted(time=3, job_number=1, processors=2))).job_number == 1


def test_the_same_event_told_twice_is_checked_twice() -> None:
    log, job = RunLog(OPENED), told(JobSubmitted(time=3, job_number=1, requested_processors=2, requested_time=9))
    log.check(job)
    log.mark_read()
    with pytest.raises(LogViolation, match="job 1 submitted at 3 is already waiting"):
        log.check(job)


def test_no_reader_puts_another_event_in_the_place_of_one() -> None:
    log = RunLog(OPENED)
    log.add_reader(RunLog(OPENED))
    log.check(told(SchedulingPoint(time=1)))
    log.mark_read()
    with pytest.raises(LogViolation, match="ClusterClosed at 1 replaces an event"):
        log.check(told(ClusterClosed(time=1)))


def test_stages_at_different_places_do_not_read_together() -> None:
    first, second = (StageHandler(OPENED) for _ in range(2))
    first.handle(told(JobSubmitted(time=3, job_number=1, requested_processors=2, requested_time=9)))
    with pytest.raises(SnapshotMismatch, match=r"found 3 s with 1 waiting .* and 0 s with 0 waiting"):
        read_together([first, second])


def test_the_stages_of_a_replay_read_together_also_once_it_is_restored() -> None:
    jobs = workload(4, [TraceRow(1, 0, 2, 9, 5), TraceRow(2, 1, 2, 9, 5), TraceRow(3, 2, 4, 9, 5)])
    replay = EmbeddedReplay(OPENED, Machine(jobs))
    again = EmbeddedReplay(OPENED, Machine(jobs))
    for _ in range(5):
        replay.step()
    again.restore(replay.snapshot())
    for each in (replay, again):
        logs = {id(handler.checked) for handler in handlers(each.stages)}
        assert len(logs) == 1 < len(each.stages)
    assert again.run_to_end() == replay.run_to_end()
