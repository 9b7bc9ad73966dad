"""Accuracy of a policy's starts, compared with the recorded starts of a site."""

from typing import NamedTuple

import numpy as np

from shadowtime.replayer.analysis.schedule_difference import starts_of
from shadowtime.replayer.analysis.stepped import stepped_starts
from shadowtime.replayer.comparison import RunPlan
from shadowtime.replayer.logs import Workload, real_starts
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.errors import TraceError
from shadowtime.shared.kernels import Flags, Integers
from shadowtime.shared.text import seconds, shares

MINUTE, TEN_MINUTES = 60, 600
"""Maximum error, in seconds, of the starts that `within_minute` and `within_ten_minutes` count."""


class StartAccuracy(NamedTuple):
    """The accuracy of a policy's starts over some jobs: shares of accurate starts, mean waits and errors in seconds.

    `real_mean_wait` is the mean wait of the recorded starts. The shares `stepped_…` are from a step-by-step replay, in
    which each decision is made in the recorded state.
    """

    policy: str
    jobs: int
    within_minute: float
    within_ten_minutes: float
    mean_wait: float
    real_mean_wait: float
    mean_off: float
    median_off: float
    stepped_within_minute: float
    stepped_within_ten_minutes: float


def measure_start_accuracy(
    policy: str, workload: Workload, ours: Integers, stepped: Integers, of: Flags | None = None
) -> StartAccuracy:
    """Return the accuracy of start times from a free-running replay (`ours`) and a step-by-step replay (`stepped`).

    Both have one time in seconds for each job of the workload. `of` selects jobs by a flag for each; None selects all.

    Raise `TraceError` if no job is selected, or a recorded wait is unknown.
    """
    rows = np.ones(len(ours), dtype=np.bool_) if of is None else of
    if not rows.any():
        raise TraceError(f"{workload.name}: no job is left to compare; lower --after")
    submitted, real = workload.columns["submit_time"][rows], real_starts(workload)[rows]
    off, off_stepped = np.abs(ours[rows] - real), np.abs(stepped[rows] - real)
    return StartAccuracy(
        policy,
        len(off),
        float((off <= MINUTE).mean()),
        float((off <= TEN_MINUTES).mean()),
        float((ours[rows] - submitted).mean()),
        float((real - submitted).mean()),
        float(off.mean()),
        float(np.median(off)),
        float((off_stepped <= MINUTE).mean()),
        float((off_stepped <= TEN_MINUTES).mean()),
    )


def met_by(plan: RunPlan, of: Flags | None = None) -> StartAccuracy:
    """Return the accuracy of a policy on the jobs `of`, from two replays of the whole log: free-running, step by step.

    `of` and the error are as in `measure_start_accuracy`.
    """
    return measure_start_accuracy(plan.label, plan.workload, starts_of(plan), stepped_starts(plan, TEN_MINUTES), of)


def met_table(title: str, rows: list[StartAccuracy]) -> FittedTable:
    """Return a table with one row per policy, the largest share of starts within a minute first."""
    rows = sorted(rows, key=lambda row: (-row.within_minute, row.mean_off))
    return FittedTable(
        title,
        {"policy": [row.policy for row in rows]},
        [
            shares("within 1 min", [row.within_minute for row in rows]).meaning("within: of the real starts"),
            shares("within 10 min", [row.within_ten_minutes for row in rows]),
            shares("stepped, 1 min", [row.stepped_within_minute for row in rows]).meaning(
                "stepped: each decision is made in the recorded state"
            ),
            shares("stepped, 10 min", [row.stepped_within_ten_minutes for row in rows]),
            seconds("mean wait", [row.mean_wait for row in rows]).unmarked().meaning("mean wait: under this policy"),
            seconds("off", [row.mean_off for row in rows]).meaning("off: mean distance from the real start"),
            seconds("median off", [row.median_off for row in rows]),
        ],
    )
