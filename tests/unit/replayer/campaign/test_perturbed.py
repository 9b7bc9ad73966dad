"""Parts and perturbed copies of a log: its months; the same jobs, moved by up to a minute, always the same."""

from dataclasses import replace

import numpy as np
import pytest

from shadowtime.replayer.campaign.logs import MONTH, month_of, without_first
from shadowtime.replayer.logs.perturbed_copies import MAX_SHIFT, perturbed
from shadowtime.shared.errors import TraceError
from tests.support.small_logs import generated, job, workload_of


def test_a_month_has_thirty_days_from_the_first_submission() -> None:
    log = workload_of(*(job(number, 50 + time) for number, time in enumerate((0, MONTH - 1, MONTH, 3 * MONTH), 1)))
    months = [month_of(log, month).columns["job_number"].tolist() for month in (1, 2, 4)]
    assert months == [[1, 2], [3], [4]]
    assert month_of(log, 0) is log
    with pytest.raises(TraceError, match="small: no job in month 3; expected one of 1 to 4"):
        month_of(log, 3)


def test_jobs_at_the_beginning_can_be_left_out() -> None:
    log = generated(40)
    assert without_first(log, 15).columns["job_number"].tolist() == log.columns["job_number"][15:].tolist()
    assert without_first(log, 0) is log
    with pytest.raises(TraceError, match="generated: skip leaves out 40 jobs, and the log has 40"):
        without_first(log, 40)


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


def test_what_a_user_submits_stays_in_order_also_where_numbers_fall() -> None:
    log = generated(400)
    falling = 400 - log.columns["job_number"] + 1
    where = {"job_number": falling, "submit_time": np.sort(log.columns["submit_time"] % 900)}
    log = replace(log, columns={**log.columns, **where})
    copy = perturbed(log, 3)
    for user in set(log.columns["user_id"].tolist()):
        there, here = (each.columns["job_number"][each.columns["user_id"] == user].tolist() for each in (log, copy))
        assert here == there


def test_jobs_of_nobody_are_moved_each_by_itself() -> None:
    log = generated(400)
    where = {"user_id": np.full(400, -1), "submit_time": 5 * np.arange(400)}
    copy = perturbed(replace(log, columns={**log.columns, **where}), 1)
    moved = np.sort(copy.columns["job_number"] - 1) * 5
    assert abs((copy.columns["submit_time"] - moved).mean()) < 10


def test_what_a_user_submits_stays_in_order() -> None:
    log = generated(400)
    crowd = replace(log, columns={**log.columns, "submit_time": np.sort(log.columns["submit_time"] % 900)})
    copy = perturbed(crowd, 3)
    assert copy.columns["job_number"].tolist() != crowd.columns["job_number"].tolist()
    for user in set(crowd.columns["user_id"].tolist()):
        there, here = (each.columns["job_number"][each.columns["user_id"] == user].tolist() for each in (crowd, copy))
        assert here == there


def test_other_instants_of_a_job_are_moved_with_its_submission() -> None:
    """A job was withdrawn, or changed its size, as long after its submission as in the log."""
    log = generated(100)
    submitted, numbers = log.columns["submit_time"] + 1000, log.columns["job_number"]
    where = {"submit_time": submitted, "left_time": np.where(numbers % 2, submitted + 90, -1)}
    columns = {**log.columns, **where, "handed_in": submitted - 300}
    changes = np.array([[7, 3, 999], [submitted[numbers == 7][0] + 50, submitted[numbers == 3][0] + 40, 5], [2, 4, 1]])
    copy = perturbed(replace(log, columns=columns, resized=changes), 1)
    moved, of_copy = copy.columns["submit_time"], copy.columns["job_number"]
    assert (copy.columns["left_time"] == np.where(of_copy % 2, moved + 90, -1)).all()
    assert (copy.columns["handed_in"] == moved - 300).all()
    assert copy.resized is not None
    assert copy.resized.tolist() == [
        [7, 3],
        [moved[of_copy == 7][0] + 50, moved[of_copy == 3][0] + 40],
        [2, 4],
    ]
