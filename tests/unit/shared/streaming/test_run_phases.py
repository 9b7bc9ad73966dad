"""Phases of a run that a worker holds: those that may follow each other, and no others."""

import asyncio
from itertools import product

import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.worker.run import (
    SHORT_JOURNAL,
    TIMES_SNAPSHOT,
    TRANSITIONS,
    IllegalTransition,
    Journal,
    Run,
    RunPhase,
)
from shadowtime.shared.streaming.worker.slices import Slice


def run_in(phase: RunPhase) -> Run:
    return Run("r", 0, StageRun(STAGES[0]), phase=phase, reason="before")


@pytest.mark.parametrize(("before", "after"), list(product(RunPhase, RunPhase)))
def test_only_what_may_follow_is_entered(before: RunPhase, after: RunPhase) -> None:
    run = run_in(before)
    if after in TRANSITIONS[before]:
        run.enter(after, "why")
        assert (run.phase, run.reason) == (after, "why")
    else:
        with pytest.raises(IllegalTransition, match=f"run 'r': {before.value} cannot become {after.value}"):
            run.enter(after, "why")
        assert (run.phase, run.reason) == (before, "before")


def test_every_phase_is_reached_and_a_quarantined_run_stays_so() -> None:
    assert {after for possible in TRANSITIONS.values() for after in possible} == {*RunPhase} - {RunPhase.ACTIVE}
    assert not TRANSITIONS[RunPhase.QUARANTINED]


@pytest.mark.parametrize("phase", RunPhase)
def test_the_reason_is_that_of_the_phase(phase: RunPhase) -> None:
    run = run_in(phase)
    assert run.failure == ("before" if phase is RunPhase.FAILED else None)
    assert run.quarantined == ("before" if phase is RunPhase.QUARANTINED else None)


@pytest.mark.parametrize("phase", RunPhase)
def test_the_end_of_its_log_closes_an_active_run_alone(phase: RunPhase) -> None:
    run = run_in(phase)
    run.move(Slice(0, offset=7, closed=True), b"snapshot")
    assert run.phase is (RunPhase.CLOSED if phase is RunPhase.ACTIVE else phase)
    assert (run.position.offset, run.journal.snapshot) == (7, 8)


def test_no_two_slices_of_a_run_are_committed_at_once() -> None:
    async def commits() -> None:
        run, task = run_in(RunPhase.ACTIVE), asyncio.create_task(asyncio.sleep(0))
        run.begin_commit(task)
        with pytest.raises(IllegalTransition, match="two of its slices"):
            run.begin_commit(task)
        assert run.take_commit() is task
        assert run.take_commit() is None
        await task

    asyncio.run(commits())


def test_a_snapshot_replaces_a_journal_that_makes_restoring_slow() -> None:
    """Else each of an attacker's events behind the end of a run restores a thousand events before it is refused."""
    assert not Journal(events=20).due(Slice(20), every=2_000)
    assert Journal(events=20).due(Slice(20, closed=True), every=2_000)
    assert Journal(events=20).due(Slice(20, undone=True), every=2_000)
    assert Journal(size=SHORT_JOURNAL).due(Slice(20), every=2_000)
    assert not Journal(size=SHORT_JOURNAL, snapshot=SHORT_JOURNAL).due(Slice(20), every=2_000)
    assert Journal(size=TIMES_SNAPSHOT * SHORT_JOURNAL, snapshot=SHORT_JOURNAL).due(Slice(20), every=2_000)
