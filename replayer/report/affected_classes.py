"""Effects of a policy by job shape: the paired difference of each job's wait between two policies."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.comparison import RunRecord
from shadowtime.replayer.report.markup import escape, table
from shadowtime.replayer.report.tables import BOUNDED, interval_cell
from shadowtime.shared.chance import key_of
from shadowtime.shared.distributions import HOUR_AND_EIGHT, SHAPES, shape_of
from shadowtime.shared.formatting import counted, signed_duration
from shadowtime.shared.statistics import Interval, mean_over_time


class JobClass(NamedTuple):
    """Jobs of one shape: their number, and their mean extra wait under one policy against another, in seconds."""

    shape: str
    jobs: int
    longer: Interval

    @property
    def surely_worse(self) -> bool:
        """Whether the jobs wait longer with 95 % confidence."""
        return self.longer.low is not None and self.longer.low > 0


def groups(first: RunRecord, other: RunRecord) -> list[JobClass]:
    """Return the extra wait of each shape under the other policy, compared with the same jobs under the first.

    An interval is no wider than if no job of the shape waited in one of the two runs. A shape without jobs is left out.
    """
    a, b = first.jobs, other.jobs
    _, here, there = np.intersect1d(a.job_number, b.job_number, assume_unique=True, return_indices=True)
    shapes = shape_of(a.requested_time[here], a.requested_processors[here], HOUR_AND_EIGHT)
    before, after = a.wait[here].astype(np.float64), b.wait[there].astype(np.float64)
    submit_times = a.submit_time[here]
    key = key_of(first.plan.seed, first.plan.cluster)
    changes = []
    for number, shape in enumerate(SHAPES):
        of_shape = shapes == number
        if of_shape.any():
            interval = mean_over_time((after - before)[of_shape], submit_times[of_shape], key)
            possible = interval.within(-before[of_shape].mean(), after[of_shape].mean())
            changes.append(JobClass(shape, int(of_shape.sum()), possible))

    return changes


def whom_table(runs: Sequence[RunRecord], base: int) -> str:
    """Return a table of the extra wait of each shape under each policy, compared with the policy at index `base`."""
    first = runs[base]
    compared = [(run.plan.label, groups(first, run)) for place, run in enumerate(runs) if place != base]
    _, some = compared[0]
    body = [
        [escape(name), *(interval_cell(change.longer, signed_duration) for change in changes)]
        for name, changes in compared
    ]
    note = (
        f"How much longer (+) or shorter (-) jobs wait than the same jobs under {first.plan.label}, on average, with "
        f"the 95 % confidence interval in brackets. {BOUNDED} {HOUR_AND_EIGHT}."
    )
    heads = ["policy", *(f"{group.shape} ({counted(group.jobs, 'job')})" for group in some)]
    return table(heads, body, "Who waits longer, who shorter", note)
