"""The regret of `tuned`, and the cost of its machines at a scheduling point: `python -m tests.benchmarks tuned`."""

import time
from typing import Any
from unittest.mock import patch

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.tables.job_table import Queue, Running
from shadowtime.services.scheduler.tuned import policy as tuned
from shadowtime.services.scheduler.tuned.job_log import RUN_TIME, STARTED, SUBMITTED, USER
from shadowtime.services.scheduler.tuned.policy import Aims, MemberComparison, compare
from shadowtime.services.scheduler.tuned.settings import TunedSettings
from shadowtime.services.scheduler.tuned.simulated_machines import (
    LONGEST,
    POWER,
    SLOWDOWN,
    TAIL,
    UNIT,
    WAIT,
    SimulatedMachines,
)
from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.statistics.slowdown import RUN_TIME_FLOOR
from tests.benchmarks.logs import log

SPEC = "tuned:runtime=empirical"


class Watched(SimulatedMachines):
    """Shadows that keep what each job that is counted came to, under every member and in the run itself."""

    seconds: list[float]
    found: list[np.ndarray[Any, Any]]
    """Rows: submit times, users, run times, wait in the run, waits of each member."""

    def advance(self, now: int, queue: Queue, running: Running) -> None:
        """Run every machine on, and note how long that took."""
        began = time.process_time()
        super().advance(now, queue, running)
        self.seconds.append(time.process_time() - began)

    def add_results(self, now: int) -> None:
        """Count the jobs that have ended on all machines, and note what they came to."""
        size, facts = self.jobs.size, self.jobs.facts
        done = (self.ends[:, :size] >= 0).all(axis=0)
        submitted, users, run_times, started = (facts[row, :size][done] for row in (SUBMITTED, USER, RUN_TIME, STARTED))
        waits = np.vstack((started, self.starts[:, :size][:, done])) - submitted
        self.found.append(np.vstack((submitted, users, run_times, waits)))
        super().add_results(now)


def standing(found: Floats) -> MemberComparison:
    """Return where the members stand, and behind them the run, by the loss that `tuned` chooses by."""
    _, users, run_times, own, *members = found
    waits = np.vstack((*members, own))
    totals = np.zeros((len(waits), 4))
    totals[:, SLOWDOWN] = slowdowns(waits, run_times).sum(axis=1)
    totals[:, WAIT], totals[:, TAIL] = waits.sum(axis=1), ((waits / UNIT) ** POWER).sum(axis=1)
    totals[:, LONGEST] = waits.max(axis=1)
    rows = users.astype(int)
    of_users = np.stack([np.bincount(rows, weights=each) for each in waits]).astype(np.float64)
    jobs: Floats = np.bincount(rows).astype(np.float64)
    keys = TunedSettings()
    return compare(totals, of_users, jobs, Aims(1.0, keys.tail, keys.longest, keys.user))


def slowdowns(waits: Floats, run_times: Floats) -> Floats:
    """Return bounded slowdowns."""
    found: Floats = np.maximum((waits + run_times) / np.maximum(run_times, RUN_TIME_FLOOR), 1.0)
    return found


def regret(trace: str) -> dict[str, Any]:
    """Return loss and mean slowdown of `tuned`, of the best single member and of the best of each quarter."""
    name, workload = log(trace)
    watched: list[Watched] = []

    def made(*arguments: Any) -> Watched:
        shadows = Watched(*arguments)
        shadows.seconds, shadows.found = [], []
        watched.append(shadows)
        return shadows

    with patch.object(tuned, "SimulatedMachines", made):
        result = carry_out(RunPlan("tuned", name, workload, configure(SPEC)))
    [shadows] = [each for each in watched if each.found]
    jobs = np.concatenate(shadows.found, axis=1).astype(float)
    names = [member.name for member in TunedSettings().portfolio()]
    place = np.argsort(np.argsort(jobs[0], kind="stable"))
    parts = {"whole": jobs} | {f"quarter {each + 1}": jobs[:, 4 * place // jobs.shape[1] == each] for each in range(4)}
    rows: dict[str, Any] = {}
    for part, found in parts.items():
        stand, mean = standing(found), slowdowns(found[3:], found[2]).mean(axis=1)
        best = int(stand.losses[:-1].argmin())
        rows[part] = {
            "tuned": {"loss": round(float(stand.losses[-1]), 3), "slowdown": round(float(mean[0]), 2)},
            "best": {
                "member": names[best],
                "loss": round(float(stand.losses[best]), 3),
                "slowdown": round(float(mean[1 + best]), 2),
            },
            "easy": {"loss": 0.0, "slowdown": round(float(mean[1]), 2)},
        }
    microseconds = np.array(shadows.seconds) * 1e6
    return {
        "trace": name,
        "jobs": len(workload),
        "counted": jobs.shape[1],
        **rows,
        "scheduling_points": len(microseconds),
        "shadows_microseconds": {
            "mean": round(float(microseconds.mean()), 1),
            "median": round(float(np.median(microseconds)), 1),
            "p99": round(float(np.quantile(microseconds, 0.99)), 1),
            "max": round(float(microseconds.max()), 1),
        },
        "share_of_cpu": round(float(microseconds.sum() / 1e6 / result.cpu_seconds), 3),
    }
