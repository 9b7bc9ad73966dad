"""Policies on a log and on perturbed copies of it: one replay is one draw.

`python -m tests.benchmarks.copies KTH --policy easy --policy best`; `--help` tells the rest. In each copy every
submission is moved by a uniform draw of up to a minute either way; every policy gets the same copies.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev
from typing import Annotated, Any

import numpy as np
import typer

from shadowtime.replayer.comparison import Plan, carry_out
from shadowtime.replayer.workload import Workload
from shadowtime.services.catalogue import configure
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.scores import Scores
from tests.benchmarks.logs import SIZES, log

MAX_SHIFT = 60
"""Seconds by which a submission is moved at most."""

COPIES = 5
POLICIES = ("easy", "best")
JOBS = 10_000
"""The first so many, where all benchmarks are run."""


def perturbed(workload: Workload, copy: int) -> Workload:
    """Return a copy of a log, always the same for the same number; the log itself for 0.

    No job is submitted before the first second of the log, and numbers break ties as ever.
    """
    if copy == 0:
        return workload
    numbers, submitted = workload.columns["job_number"], workload.columns["submit_time"]
    draws = uniform(key_of(copy, workload.name), numbers, 0)
    moved = submitted + np.floor(draws * (2 * MAX_SHIFT + 1)).astype(np.int64) - MAX_SHIFT
    columns = {**workload.columns, "submit_time": np.maximum(moved, min(submitted[0], 0))}
    order = np.lexsort((numbers, columns["submit_time"]))
    return replace(workload, columns={name: column[order] for name, column in columns.items()})


def figures(scores: Scores) -> dict[str, float | None]:
    """Return what copies are compared by; calibration errors and Brier scores are of all candidates and of starts."""
    policy, calibration = scores.policy, scores.calibration
    found = {
        "mean_bounded_slowdown": policy.mean_bounded_slowdown,
        "max_wait_hours": None if policy.max_wait is None else policy.max_wait / 3600,
        "mean_wait": policy.mean_wait,
    }
    if calibration is not None:
        for kind in ("exact", "exact_started", "recalibrated", "recalibrated_started"):
            table = getattr(calibration, kind)
            if table is not None:
                found[f"{kind}_error"] = table.calibration_error
                found[f"{kind}_brier_score"] = table.brier_score
    return found


def copies(
    trace: str, policies: Sequence[str] = POLICIES, count: int = COPIES, jobs: int | None = None
) -> list[dict[str, Any]]:
    """Replay a log, or its first jobs, and perturbed copies of it; return a row for each policy.

    A row has the figures of each, the log itself first, their means, and their standard deviations.
    """
    source, workload = log(trace, jobs)
    rows = []
    for policy in policies:
        draws = []
        for copy in range(count + 1):
            result = carry_out(Plan(policy, trace, perturbed(workload, copy), configure(policy)))
            draws.append(figures(result.scores))
        known = {name: [draw.get(name) or 0.0 for draw in draws] for name in draws[0]}
        rows.append(
            {
                "log": source,
                "trace": trace,
                "processors": workload.processors,
                "jobs": len(workload),
                "policy": policy,
                "copies": count,
                "mean": {name: round(fmean(values), 4) for name, values in known.items()},
                "deviation": {name: round(pstdev(values), 4) for name, values in known.items()},
                "each": {name: [round(value, 4) for value in values] for name, values in known.items()},
            }
        )
    return rows


def main(
    traces: Annotated[list[str], typer.Argument(help=f"logs: {', '.join(SIZES)}")],
    policy: Annotated[list[str] | None, typer.Option(help=f"by default {' and '.join(POLICIES)}")] = None,
    count: Annotated[int, typer.Option("--copies", min=0, help="perturbed copies beside the log itself")] = COPIES,
    jobs: Annotated[int | None, typer.Option(help="the first so many jobs")] = None,
) -> None:
    """Print a JSON line for each log and policy."""
    for trace in traces:
        for each in policy or POLICIES:
            for row in copies(trace, [each], count, jobs):
                print(json.dumps({"benchmark": f"copies-{trace.lower()}"} | row), flush=True)


BENCHMARKS = {f"copies-{trace.lower()}": partial(copies, trace, jobs=JOBS) for trace in ("KTH", "SDSC-SP2", "CTC")}

if __name__ == "__main__":
    typer.run(main)
