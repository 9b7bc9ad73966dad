"""Perturbed copies of a log: every submission is moved a little. The replay of a copy is one draw of the scores."""

from dataclasses import replace

import numpy as np

from shadowtime.replayer.logs.workload import INSTANTS, Workload, of_rows
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.kernels import Integers, IntegerTable

MAX_SHIFT = 60
"""Maximum shift of a submission, in seconds."""


def perturbed(workload: Workload, copy: int) -> Workload:
    """Return the perturbed copy with this number. Copy 0 is the log itself. The same number gives the same copy.

    Each submission is moved by a uniform draw of up to `MAX_SHIFT` seconds in either direction, but not before the
    user's previous submission: the jobs of a user stay in order. No job is submitted before the first second of the
    log. Job numbers break ties, as everywhere. Other known instants of a job are moved by as much.
    """
    if copy == 0:
        return workload
    numbers, submitted = workload.columns["job_number"], workload.columns["submit_time"]
    draws = uniform(key_of(copy, workload.name), numbers, 0)
    moved = submitted + np.floor(draws * (2 * MAX_SHIFT + 1)).astype(np.int64) - MAX_SHIFT
    moved = np.maximum(moved, min(submitted[0], 0))
    users = workload.columns["user_id"]
    by_user = np.argsort(users, kind="stable")
    for of_user in np.split(by_user, np.flatnonzero(np.diff(users[by_user])) + 1):
        if users[of_user[0]] >= 0:  # a negative user is unknown: those jobs need no order
            after = np.concatenate(([0], np.cumsum(np.diff(numbers[of_user]) < 0)))  # at equal times, numbers decide
            moved[of_user] = np.maximum.accumulate(moved[of_user] - after) + after

    shift = moved - submitted
    instants = {name: workload.columns[name] for name in INSTANTS if name in workload.columns}
    others = {name: np.where(at >= 0, np.maximum(at + shift, 0), at) for name, at in instants.items()}
    columns = {**workload.columns, **others, "submit_time": moved}
    copied = replace(workload, columns=columns, resized=_moved(workload.resized, numbers, shift))
    return of_rows(copied, np.lexsort((numbers, moved)))


def _moved(resized: IntegerTable | None, numbers: Integers, shift: Integers) -> IntegerTable | None:
    """Return the size changes of the jobs with these numbers, moved by the seconds `shift` of each job."""
    if resized is None:
        return None
    known = resized[:, np.isin(resized[0], numbers)]
    order = np.argsort(numbers)
    jobs = order[np.searchsorted(numbers, known[0], sorter=order)]
    return np.stack([known[0], known[1] + shift[jobs], known[2]])
