"""Runs in memory are bounded by number and by bytes; of those put away the little that is kept is true."""

import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.worker import run_cache as held_runs
from shadowtime.shared.streaming.worker.run import Journal, Run
from shadowtime.shared.streaming.worker.run_cache import EvictedRun, RunCache


def run_of(name: str, stored: int = 0, size: int = 0) -> Run:
    return Run(name, 0, StageRun(STAGES[0]), journal=Journal(size=size, snapshot=stored))


def held(runs: RunCache) -> str:
    return "".join(name for name in "abcdef" if name in runs)


def test_of_too_many_that_is_put_away_which_nothing_has_come_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_runs, "MAX_HELD", 3)
    runs = RunCache()
    for name in "abcad":
        runs.hold(runs.take_out(name) or run_of(name))
    assert held(runs) == "acd"
    assert runs.take_out("b") is None


def test_bytes_are_counted_as_runs_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_runs, "MAX_HELD_BYTES", 100)
    runs = RunCache()
    runs.hold(run_of("a", stored=40, size=10))
    runs.hold(run_of("b", stored=50))
    assert held(runs) == "ab"
    grown = runs.take_out("a")
    assert grown is not None
    grown.journal.size += 1
    runs.hold(grown)
    assert held(runs) == "a"
    runs.hold(run_of("c", stored=49))
    assert held(runs) == "ac"
    runs.clear()
    assert len(runs) == 0
    for name in "abc":
        runs.hold(run_of(name, stored=30))
    assert held(runs) == "abc"


def test_one_run_is_held_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_runs, "MAX_HELD_BYTES", 100)
    runs = RunCache()
    runs.hold(run_of("a", stored=101))
    assert held(runs) == "a"


def test_what_was_delivered_is_known_until_the_run_moves_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_runs, "MAX_EVICTED", 1)
    runs = RunCache()
    run = run_of("a")
    run.delivered, run.state.sequence = 4, 7
    runs.hold(run)
    assert runs.delivered("a", 7) == 4
    assert runs.delivered("a", 8) == 0
    runs.take_out("a")
    assert runs.delivered("a", 7) == 0
    runs.remember(run)
    assert runs.delivered("a", 7) == 4
    runs.remember(run_of("b"))
    assert runs.delivered("a", 7) == 0
    assert runs.pop_evicted("a") is None
    assert runs.pop_evicted("b") == EvictedRun(-1, 0, 0, False)
    assert runs.pop_evicted("b") is None
