"""Perturbed copies: the same jobs, moved by up to a minute, in order, and always the same."""

import numpy as np
import pytest

import tests.benchmarks.copies as module
from shadowtime.replayer.swf import BUNDLED, read_swf
from shadowtime.replayer.workload import prepare
from tests.benchmarks.copies import MAX_SHIFT, perturbed
from tests.replayer.small_logs import generated


def test_submissions_are_moved_by_up_to_a_minute_and_nothing_else() -> None:
    log = generated(400)
    copy = perturbed(log, 1)
    numbers, submitted = copy.columns["job_number"], copy.columns["submit_time"]
    assert (np.lexsort((numbers, submitted)) == np.arange(len(log))).all()
    back = np.argsort(numbers)
    there = np.argsort(log.columns["job_number"])
    moved = submitted[back] - log.columns["submit_time"][there]
    assert moved.min() >= -MAX_SHIFT
    assert moved.max() <= MAX_SHIFT
    assert len(set(moved.tolist())) > 60
    for name in set(log.columns) - {"submit_time"}:
        assert (copy.columns[name][back] == log.columns[name][there]).all()


def test_a_copy_is_always_the_same_and_no_other() -> None:
    log = generated(100)
    first, again, second = (perturbed(log, number).columns["submit_time"].tolist() for number in (1, 1, 2))
    assert first == again != second
    assert perturbed(log, 0) is log


def test_a_row_for_each_policy_with_means_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "log", lambda trace, jobs: ("bundled", prepare(read_swf(BUNDLED), limit=500)))
    easy, best = module.copies("KTH", ("easy", "best"), count=2)
    assert (easy["policy"], best["policy"]) == ("easy", "best")
    assert len(best["each"]["mean_bounded_slowdown"]) == 3
    assert best["mean"]["max_wait_hours"] == pytest.approx(np.mean(best["each"]["max_wait_hours"]), abs=1e-3)
    assert "recalibrated_error" in best["mean"]
    assert "recalibrated_error" not in easy["mean"]
