"""The orders of waiting jobs: sort keys, the smallest first.

A key function takes the `WaitingColumns` jobs and returns a number for each, shape (jobs,). Jobs with equal keys are in
order of (submit time, job number). All functions are O(jobs). In the formulas, p is the run time in seconds, selected
by the policy's key `by`. q is the number of processors, s the submit time in seconds since the log began, and w the
seconds waited so far.

A new order is a function here and a line in `ORDERS`, or a function of a plug-in. `steady` marks an order that does not
change as time passes, so that its jobs need not be sorted anew.

References: docs/ordering.md.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from shadowtime.services.scheduler.ordering.columns import WaitingColumns
from shadowtime.shared.kernels import Floats
from shadowtime.shared.plugins import Plugins

Key = Callable[[WaitingColumns], Floats]
Marked = TypeVar("Marked", bound=Callable[..., object])

PRIORITIES = 3
"""Number of random priorities, from 1 to this (Perković 2000, section 5)."""


def steady(key: Marked) -> Marked:
    """Mark a key function that never changes the order of two jobs while they wait."""
    key.steady = True  # type: ignore[attr-defined]
    return key


@steady
def fcfs(jobs: WaitingColumns) -> Floats:
    """First come, first served: smallest s."""
    return jobs.submit_times.astype(np.float64)


@steady
def lcfs(jobs: WaitingColumns) -> Floats:
    """Last come, first served: largest s (Lelong 2017)."""
    return -jobs.submit_times.astype(np.float64)


@steady
def spf(jobs: WaitingColumns) -> Floats:
    """Shortest run time first: smallest p (Tsafrir 2007, section 5; Lelong 2017)."""
    return jobs.run_times.astype(np.float64)


@steady
def sqf(jobs: WaitingColumns) -> Floats:
    """Smallest size first: smallest q (Lelong 2017)."""
    return jobs.processors.astype(np.float64)


@steady
def saf(jobs: WaitingColumns) -> Floats:
    """Smallest area first: smallest p · q (Lelong 2017)."""
    return jobs.run_times.astype(np.float64) * jobs.processors


@steady
def srf(jobs: WaitingColumns) -> Floats:
    """Smallest ratio first: smallest p / q (Lelong 2017)."""
    return jobs.run_times / jobs.processors


def exp(jobs: WaitingColumns) -> Floats:
    """Largest expansion factor first: largest (w + p) / p (Lelong 2017)."""
    return -((jobs.waits + jobs.run_times) / jobs.run_times)


def wfp3(jobs: WaitingColumns) -> Floats:
    """Largest (w / p)³ · q first: long waits, short run times, large sizes (Tang 2013, section 6.1, equation 5)."""
    ratio = jobs.waits / jobs.run_times
    return -(ratio * ratio * ratio * jobs.processors)


def unicep(jobs: WaitingColumns) -> Floats:
    """Largest w / (log2(q) · p) first (Carastan-Santos 2017).

    For one processor, the logarithm 0 counts as 2⁻⁶⁰. A job on one processor therefore comes first once it has waited.
    """
    return -(jobs.waits / (np.maximum(np.log2(jobs.processors), 2.0**-60) * jobs.run_times))


def _log_submit(jobs: WaitingColumns) -> Floats:
    """Return log10(s), with s at least 1."""
    return np.log10(np.maximum(jobs.submit_times, 1))


@steady
def f1(jobs: WaitingColumns) -> Floats:
    """Smallest log10(p) · q + 870 · log10(s) (Carastan-Santos 2017)."""
    return np.log10(jobs.run_times) * jobs.processors + 870.0 * _log_submit(jobs)


@steady
def f2(jobs: WaitingColumns) -> Floats:
    """Smallest √p · q + 25,600 · log10(s) (Carastan-Santos 2017)."""
    return np.sqrt(jobs.run_times) * jobs.processors + 25_600.0 * _log_submit(jobs)


@steady
def f3(jobs: WaitingColumns) -> Floats:
    """Smallest p · q + 6,860,000 · log10(s) (Carastan-Santos 2017)."""
    return saf(jobs) + 6_860_000.0 * _log_submit(jobs)


@steady
def f4(jobs: WaitingColumns) -> Floats:
    """Smallest p · √q + 530,000 · log10(s) (Carastan-Santos 2017)."""
    return jobs.run_times * np.sqrt(jobs.processors) + 530_000.0 * _log_submit(jobs)


def priority(jobs: WaitingColumns) -> Floats:
    """Largest priority of the site first; jobs without a priority come last (Slurm's multifactor plugin)."""
    return -jobs.priorities


@steady
def drawn_priority(jobs: WaitingColumns) -> Floats:
    """Largest P first: a random priority from 1 to 3, drawn once for each job (Perković 2000, section 5)."""
    return -(np.floor(jobs.drawn(anew=False) * PRIORITIES) + 1.0)


def random(jobs: WaitingColumns) -> Floats:
    """Largest R first: a random number in [0, 1), drawn anew for each second (Perković 2000, section 3)."""
    return -jobs.drawn(anew=True)


@steady
def inverse(jobs: WaitingColumns) -> Floats:
    """Largest 1 / p first: the order of `spf`, but a weight of the wait is added to 1 / p (Perković 2000, Table 4)."""
    return -(1.0 / jobs.run_times)


@steady
def priority_over_time(jobs: WaitingColumns) -> Floats:
    """Largest P / p first (Perković 2000, Table 4)."""
    return drawn_priority(jobs) / jobs.run_times


def random_over_time(jobs: WaitingColumns) -> Floats:
    """Largest R / p first (Perković 2000, Table 4)."""
    return random(jobs) / jobs.run_times


@steady
def area(jobs: WaitingColumns) -> Floats:
    """Smallest expected area E[p] · q first: p is the run time, q the processors (docs/ordering.md#expected-area)."""
    return jobs.means * jobs.processors


@steady
def saved(jobs: WaitingColumns) -> Floats:
    """Largest expected slowdown for each processor second first: largest E[1 / max(p, 10 s)] / (E[p] · q).

    References: docs/ordering.md#slowdown-for-each-processor-second (ours; Smith 1956, Rothkopf 1966).
    """
    return -(jobs.slowdowns_a_second / area(jobs))


@steady
def gittins(jobs: WaitingColumns) -> Floats:
    """Gittins index, largest first: the largest Pr(p ≤ x) / (E[min(p, x)] · q) over thresholds x.

    References: docs/ordering.md#unknown-lengths (Gittins 1979; Sevcik 1974).
    """
    return -(jobs.end_rates / jobs.processors)


def wrong(loaded: Any, name: str) -> str | None:
    """Return an error text if the order of a plug-in is invalid; None if it is valid."""
    return None if callable(loaded) and not isinstance(loaded, type) else "the order is not a function"


ORDERS: Plugins[Key] = Plugins(
    "order",
    {
        **{order.__name__: order for order in (fcfs, lcfs, spf, sqf, saf, srf, exp, wfp3, unicep, f1, f2, f3, f4)},
        **{order.__name__: order for order in (area, saved, gittins, priority)},
        "BF": fcfs,
        "P": drawn_priority,
        "R": random,
        "1/L": inverse,
        "P/L": priority_over_time,
        "R/L": random_over_time,
    },
    "orders",
    wrong,
)
"""All orders by name. The last six have the names of Perković 2000, with L for the run time."""
