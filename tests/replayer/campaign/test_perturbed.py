"""Perturbed copies: the same jobs, moved by up to a minute, in order, and always the same."""

import numpy as np

from shadowtime.replayer.campaign.perturbed import MAX_SHIFT, perturbed
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
