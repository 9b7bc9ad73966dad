"""Estimates from the sums of a cluster and its shadow, as a `Comparison`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shadowtime.services.shadows.comparison import users as user
from shadowtime.services.shadows.comparison.day_sums import PARTS, DayAreas, DaySums
from shadowtime.services.shadows.comparison.evidence import Evidence
from shadowtime.services.shadows.comparison.extremes import ALL, MOVED, ShapeExtremes
from shadowtime.services.shadows.comparison.open_days import OpenDays
from shadowtime.services.shadows.comparison.schema import (
    ClassResult,
    Comparison,
    ConfidenceInterval,
    Pair,
    Real,
    Started,
    UserFares,
    Waits,
)
from shadowtime.shared.distributions import SHAPES
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats
from shadowtime.shared.statistics import WaitQuantiles, ratio_over_time


class Parts(NamedTuple):
    """The sums from which a comparison is computed."""

    sums: DaySums
    extremes: ShapeExtremes
    users: user.UserSums
    busy: tuple[DayAreas, DayAreas]
    machine: DayAreas


def estimate(
    parts: Parts, open_days: OpenDays, evidence: Sequence[Evidence], horizon: int, withdrawn: int, key: int
) -> Comparison:
    """Return the comparison as of second `horizon`; O(4,000 bootstrap draws of blocks of days).

    `evidence` has the tests of waits and of slowdowns. `withdrawn` is the number of withdrawn jobs. `key` is the key of
    seeded random numbers.
    """
    days, table = parts.sums.table()
    waiting = [Waits(jobs=len(waits), longest=max(waits, default=None)) for waits in open_days.waiting(horizon)]
    shapes = [
        _class_result(shape, parts.extremes, days, table[:, shape], key)
        for shape in range(ALL)
        if table[:, shape, 0].any()
    ]
    utilization, difference = _utilization(parts, horizon // DAY, key)
    wait, slowdown = (
        Real(
            since=None if expectation.since is None else expectation.since * DAY,
            shorter=expectation.sooner,
            evidence=expectation.times,
        )
        for expectation in evidence
    )
    return Comparison(
        horizon=horizon,
        first_day=days[0] * DAY if days else None,
        until=None if open_days.first is None or not days else open_days.first * DAY,
        days=len(days),
        withdrawn=withdrawn,
        open_jobs=len(open_days),
        real_waiting=waiting[0],
        shadow_waiting=waiting[1],
        all=_class_result(ALL, parts.extremes, days, table.sum(axis=1), key) if shapes else None,
        classes=tuple(shapes),
        users=tuple(_of_user(number, sums) for number, sums in parts.users.by_work()),
        utilization=utilization,
        utilization_difference=difference,
        wait_real=wait,
        slowdown_real=slowdown,
    )


def _class_result(place: int, extremes: ShapeExtremes, days: Sequence[int], table: Floats, key: int) -> ClassResult:
    """Return the result of the jobs of a shape, or of `ALL`. `table` has the `PARTS` of each day, as (days, parts)."""
    of_day = dict(zip(PARTS, table.T, strict=True))
    sums = {name: float(column.sum()) for name, column in of_day.items()}
    longer = of_day["shadow_wait"] - of_day["real_wait"]
    slower = of_day["shadow_slowdown"] - of_day["real_slowdown"]
    change = _between(days, longer, of_day["real_wait"], key)
    sooner, later = (extremes.sooner, extremes.later) if place == ALL else (None, None)
    return ClassResult(
        shape="all" if place == ALL else SHAPES[place],
        jobs=int(sums["jobs"]),
        wait=_both(sums["real_wait"], sums["shadow_wait"], sums["jobs"]),
        median_wait=_pair(extremes.medians(place)),
        longest_wait=_pair(extremes.longest[place]),
        slowdown=_both(sums["real_slowdown"], sums["shadow_slowdown"], sums["ended"]),
        wait_difference=_between(days, longer, of_day["jobs"], key),
        wait_change=change,
        slowdown_difference=_between(days, slower, of_day["ended"], key),
        sooner=_moved(sums["sooner"], sums["sooner_by"], sums["jobs"], sooner),
        later=_moved(sums["later"], sums["later_by"], sums["jobs"], later),
    )


def _moved(jobs: float, seconds: float, of_all: float, bins: WaitQuantiles | None) -> Started:
    quantiles = None if bins is None or not jobs else tuple(bins.quantiles(MOVED))
    return Started(share=jobs / of_all, mean=seconds / jobs if jobs else None, quantiles=quantiles)


def _of_user(number: int, sums: Sequence[int]) -> UserFares:
    jobs = sums[user.JOBS]
    return UserFares(
        user=number if number >= 0 else None,
        others=number == user.OTHERS,
        jobs=jobs,
        work=sums[user.WORK],
        wait=_both(sums[user.REAL_WAIT], sums[user.SHADOW_WAIT], jobs),
        longest_wait=_pair(sums[user.REAL_LONGEST : user.SHADOW_LONGEST + 1]),
        sooner=sums[user.SOONER] / jobs,
        later=sums[user.LATER] / jobs,
    )


def _utilization(parts: Parts, before: int, key: int) -> tuple[Pair, ConfidenceInterval | None]:
    """Return the busy share of each machine's processors, and their difference, over the days before day `before`."""
    days = [day for day in parts.machine.days if day < before]
    machine, real, shadow = (
        np.array([area.days.get(day, 0) for day in days], dtype=np.float64) for area in (parts.machine, *parts.busy)
    )
    difference = _between(days, shadow - real, machine, key)
    return _both(float(real.sum()), float(shadow.sum()), float(machine.sum())), difference


def _both(real: float, shadow: float, under: float) -> Pair:
    return Pair(real=real / under, shadow=shadow / under) if under else Pair(real=None, shadow=None)


def _pair(values: Sequence[float]) -> Pair:
    return Pair(real=values[0], shadow=values[1])


def _between(days: Sequence[int], over: Floats, under: Floats, key: int) -> ConfidenceInterval | None:
    """Return the ratio of the sums of `over` and `under` with a confidence interval; None if the sum of `under` is 0.

    Both arguments have one entry for each of `days`.
    """
    if not under.sum():
        return None
    return ConfidenceInterval(**ratio_over_time(over, under, np.asarray(days, dtype=np.int64), key)._asdict())
