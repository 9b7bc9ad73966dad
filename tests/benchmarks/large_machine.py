"""A machine of 80,000 processors, whose walks count in units of several: what that costs, and what it decides."""

from collections.abc import Callable
from types import FunctionType
from typing import Any
from unittest.mock import patch

import numba
import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.probabilistic import acceptance as candidates
from shadowtime.services.scheduler.probabilistic import policy as probabilistic
from shadowtime.services.scheduler.probabilistic.acceptance import Evaluation, evaluate_candidates

PROCESSORS, JOBS, LIMIT = 80_000, 300_000, 600.0
POLICY = "probabilistic:runtime=empirical"
COMPARED = 10_000
"""Jobs over which decisions are compared."""

EVERY = 4
"""Of so many evaluations in larger units, one is repeated in single processors: that is what takes the time."""


def generated(jobs: int) -> Workload:
    """Return the first so many jobs of the generated log."""
    return prepare(Trace("generated", *generate(JOBS, PROCESSORS, seed=1)), limit=jobs)


def large_machine(jobs: int = JOBS) -> dict[str, Any]:
    """Replay the whole log."""
    workload = generated(jobs)
    result = carry_out(RunPlan(POLICY, "generated", workload, configure(POLICY)))
    scores = result.scores.policy
    return {
        "log": "generated",
        "processors": PROCESSORS,
        "jobs": len(workload),
        "policy": POLICY,
        "limit_seconds": LIMIT,
        "elapsed_seconds": round(result.elapsed_seconds, 1),
        "cpu_seconds": round(result.cpu_seconds, 1),
        "passes": scores.scheduling_points,
        "utilization": scores.utilization,
        "mean_wait": scores.mean_wait,
        "evaluated": result.scores.calibration and result.scores.calibration.exact.candidates,
    }


def in_single_processors() -> Callable[..., Any]:
    """Return `evaluate_candidates` compiled once more, counting every processor of any machine."""
    plain = evaluate_candidates.py_func  # type: ignore[attr-defined]
    [signature] = evaluate_candidates.load().nopython_signatures  # type: ignore[attr-defined]
    kernel: Callable[..., Any] = numba.njit(signature)(
        FunctionType(plain.__code__, {**plain.__globals__, "UNITS": PROCESSORS * PROCESSORS})
    )
    return kernel


def coarsening(jobs: int = COMPARED, every: int = EVERY) -> dict[str, Any]:
    """Replay the beginning of the log, and repeat some evaluations without larger units, from the same state."""
    exact = in_single_processors()
    evaluations = coarse = same = accepted = 0
    shifts: list[float] = []
    resolutions: list[int] = []

    def both(*arguments: Any) -> Any:
        nonlocal evaluations, coarse, same, accepted
        found = evaluate_candidates(*arguments)
        in_units = Evaluation(*found)
        evaluations += 1
        running, tried = arguments[3:5]
        units = -(-(arguments[1] + int(tried.processors.max())) // max(int(np.gcd.reduce(running.processors)), 1))
        if units <= candidates.UNITS:
            return found
        coarse += 1
        if coarse % every == 0:
            finely = Evaluation(*exact(*arguments))
            same += in_units.accepted == finely.accepted
            accepted += finely.accepted >= 0
            count = min(len(in_units.measures), len(finely.measures))
            shifts.extend((in_units.measures[:count, 0] - finely.measures[:count, 0]).tolist())
            resolutions.append(in_units.resolution)
        return found

    workload = generated(jobs)
    with patch.object(probabilistic, "evaluate_candidates", both):
        carry_out(RunPlan(POLICY, "generated", workload, configure(POLICY)))
    shift = np.array(shifts)
    return {
        "log": "generated",
        "processors": PROCESSORS,
        "jobs": len(workload),
        "policy": POLICY,
        "evaluations": evaluations,
        "in_larger_units": coarse,
        "compared": len(resolutions),
        "processors_per_unit": [min(resolutions), max(resolutions)],
        "accepting": accepted,
        "share_that_differs": round(1 - same / len(resolutions), 5),
        "candidates": len(shift),
        "mean_shift": round(float(shift.mean()), 6),
        "mean_absolute_shift": round(float(np.abs(shift).mean()), 6),
        "shifts": [round(float(shift.min()), 6), round(float(shift.max()), 6)],
    }
