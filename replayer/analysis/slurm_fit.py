"""Fit the settings of a site's Slurm. A replay under the fitted settings starts jobs close to the recorded starts.

References
----------
docs/algorithms.md#fitted-sites (ours).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shadowtime.replayer.analysis.schedule_difference import starts_of
from shadowtime.replayer.analysis.start_accuracy import StartAccuracy
from shadowtime.replayer.comparison import RunPlan
from shadowtime.replayer.logs import Workload, of_rows, real_starts
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler import spelled
from shadowtime.shared.errors import TraceError
from shadowtime.shared.formatting import DAY, percent

SCALE = 1000
"""Weight of a job's age in its priority. Other weights are relative to it."""

Keys = Mapping[str, Any]


class Tried(NamedTuple):
    """A candidate: settings, and the error of the starts under them. See `loss_of` for the error."""

    keys: Keys
    loss: float


def policy_of(keys: Keys) -> str:
    """Return the SPEC of the policy with these keys.

    >>> policy_of({"weight_age": 1000, "partitions": [[1, 5, 1]]})
    'slurm:site=(weight_age=1000,partitions=1:5:1)'
    """
    return f"slurm:site={spelled(dict(keys))}" if keys else "slurm"


def steps(workload: Workload) -> Iterator[list[Keys]]:
    """Yield lists of changes of keys. The changes of a list are alternatives, applied to the best settings so far."""
    yield [{"backfill": False}, *({"bf_max_job_test": tests} for tests in (1, 10, 100))]
    yield [{"weight_size": weight, "favor_small": small} for weight in (SCALE, 10 * SCALE) for small in (False, True)]
    yield [{"weight_fairshare": weight} for weight in (SCALE // 3, SCALE, 3 * SCALE, 10 * SCALE)]
    yield [{"half_life": days * DAY} for days in (1, 30)]
    yield [{"max_age": days * DAY} for days in (1, 30)]
    if queues := _by_wait(workload):
        yield [{"weight_partition": weight, "partitions": queues} for weight in (SCALE, 10 * SCALE)]


def _by_wait(workload: Workload) -> list[list[int]]:
    """Return number, priority factor and tier (1) of each queue for the key `partitions`; empty for fewer than two.

    A queue with a shorter median wait has a larger factor.
    """
    queues, waits = workload.columns["queue_number"], workload.columns["wait_time"]
    known = [int(queue) for queue in np.unique(queues) if queue >= 0]
    if len(known) < 2:
        return []
    slowest_first = sorted(known, key=lambda queue: (-float(np.median(waits[queues == queue])), queue))
    return [[queue, factor, 1] for factor, queue in enumerate(slowest_first)]


def loss_of(workload: Workload, keys: Keys) -> float:
    """Return the error of starts under these settings: the mean of ln(1 + minutes from the recorded start)."""
    plan = RunPlan("slurm", workload.name, workload, configure(policy_of(keys)))
    off = np.abs(starts_of(plan) - real_starts(workload))
    return float(np.log1p(off / 60).mean())


def fit(workload: Workload, jobs: int, say: Callable[[str], None]) -> Tried:
    """Return the settings with the smallest error on the first half of a log, or on its first `jobs` jobs if fewer.

    The rest of the log is not used. One or a few keys change at a time, and a change is kept only if it reduces the
    error. The fit takes some 20 replays. After each, `say` gets a line with the error and the changed keys.

    Raise `TraceError` if a recorded wait is unknown, or the log has too few jobs.
    """
    half = of_rows(workload, slice(min(len(workload) // 2, jobs)))
    if len(half) < 2:
        raise TraceError(f"{workload.name}: {len(workload)} jobs are too few; a fit needs at least 4")
    begin: Keys = {"weight_age": SCALE}
    best = Tried(begin, loss_of(half, begin))
    for changes in steps(half):
        if "half_life" in changes[0] and not best.keys.get("weight_fairshare"):
            continue
        before = best.keys
        for change in changes:
            keys = {**before, **change}
            tried = Tried(keys, loss_of(half, keys))
            say(f"{tried.loss:.3f}  {spelled(dict(change))}")
            best = min(best, tried, key=lambda candidate: candidate.loss)

    return best


def require_better(fitted: StartAccuracy, others: Sequence[StartAccuracy]) -> None:
    """Raise `TraceError` if another policy meets more of the later starts within a minute, alone or step by step.

    There must be at least one other policy. The message has both shares.
    """
    for way, measure in (("", "within_minute"), ("step by step, ", "stepped_within_minute")):
        other = max(others, key=lambda row: float(getattr(row, measure)))
        ours, theirs = (float(getattr(row, measure)) for row in (fitted, other))
        if ours < theirs:
            raise TraceError(
                f"no file was written: {way}the fit meets {percent(ours)} of the later starts within a minute, and "
                f"{other.policy} {percent(theirs)}; use {other.policy}, fit on more jobs with --train, or export the "
                "real settings with slurm-site"
            )
