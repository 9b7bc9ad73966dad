"""Copies of a log in which every submission is moved a little: one replay is one draw."""

from dataclasses import replace

import numpy as np

from shadowtime.replayer.workload import Workload
from shadowtime.shared.chance import key_of, uniform

MAX_SHIFT = 60
"""Seconds by which a submission is moved at most."""


def perturbed(workload: Workload, copy: int) -> Workload:
    """Return a copy of a log, always the same for the same number; the log itself for 0.

    Each submission is moved by a uniform draw of up to `MAX_SHIFT` either way, and no further ahead than to that of the
    user's job before it: what a user submits stays in order. No job is submitted before the first second of the log,
    and numbers break ties as ever.
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
        if users[of_user[0]] >= 0:  # of a user who is named
            after = np.concatenate(([0], np.cumsum(np.diff(numbers[of_user]) < 0)))  # at one time the number decides
            moved[of_user] = np.maximum.accumulate(moved[of_user] - after) + after
    columns = {**workload.columns, "submit_time": moved}
    order = np.lexsort((numbers, moved))
    unused = {name: column[order] for name, column in workload.unused.items()}
    return replace(workload, columns={name: column[order] for name, column in columns.items()}, unused=unused)
