"""Workloads in which something changes from a date on, to see what finds it and when."""

from dataclasses import replace

import numpy as np

from shadowtime.replayer.logs.workload import Workload
from shadowtime.shared.kernels.arrays import Integers

AT_LEAST = 60
"""Seconds that a job still asks for once requests are halved."""


def run_times_doubled(workload: Workload, time: int) -> Workload:
    """Return a workload in which jobs submitted from `time` on run twice as long; their requests grow where they must.

    A job asks for what it asked for, or its run time if that is longer now: users are not cut, but wrong.
    """
    columns = dict(workload.columns)
    late = columns["submit_time"] >= time
    run_time = np.where(late, 2 * columns["run_time"], columns["run_time"])
    requested_time = np.maximum(columns["requested_time"], np.where(late, run_time, 0))
    return replace(workload, columns=columns | {"run_time": run_time, "requested_time": requested_time})


def requests_halved(workload: Workload, time: int) -> Workload:
    """Return a workload in which jobs submitted from `time` on ask for half the time; those that need more are cut."""
    columns = dict(workload.columns)
    late, asked = columns["submit_time"] >= time, columns["requested_time"]
    halved = np.minimum(asked, np.maximum(asked // 2, AT_LEAST))
    return replace(workload, columns=columns | {"requested_time": np.where(late, halved, asked)})


def arrivals_tripled(workload: Workload, time: int) -> Workload:
    """Return a workload in which each job from `time` on comes three times: itself, and two copies soon after it.

    Copies lie at one and two thirds of the gap to the next arrival, so that the stream of days and nights is as before;
    their numbers go on after the last one.
    """
    columns = dict(workload.columns)
    submit = columns["submit_time"]
    gaps = np.append(np.diff(submit), 0)
    late = np.flatnonzero(submit >= time)
    number = int(columns["job_number"].max())
    order = np.concatenate([np.arange(len(submit)), late, late])
    made = {name: column[order] for name, column in columns.items()}
    first, second = slice(len(submit), len(submit) + len(late)), slice(len(submit) + len(late), None)
    for part, third in ((first, 1), (second, 2)):
        made["submit_time"][part] += gaps[late] * third // 3
        made["job_number"][part] = number + 1 + np.arange(len(late)) + (third - 1) * len(late)
    by_time = np.lexsort((made["job_number"], made["submit_time"]))
    return replace(workload, columns={name: column[by_time] for name, column in made.items()}, unused={})


def middle(workload: Workload) -> int:
    """Return the submit time of the job in the middle, in seconds."""
    submit: Integers = workload.columns["submit_time"]
    return int(submit[len(submit) // 2])


CHANGES = {
    "run times doubled": run_times_doubled,
    "requests halved": requests_halved,
    "arrivals tripled": arrivals_tripled,
}
