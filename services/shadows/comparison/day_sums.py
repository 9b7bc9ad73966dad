"""Sums over the jobs of each day and shape (`SHAPES`). Means and intervals of a comparison are computed from them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.services.shadows.comparison.open_days import ComparedJob
from shadowtime.shared.distributions import SHAPES
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels import Floats

# A level that changes over time, such as busy processors, and its integral over each day.

MAX_DAYS = 1_100
"""Maximum number of days whose sums are kept: the last three years."""


class DayAreas:
    """The integral of a level over the seconds of each day; O(1) for a change, and for each day that passes.

    >>> busy = DayAreas()
    >>> busy.add(DAY - 10, 3)
    >>> busy.add(DAY + 5, -2)
    >>> busy.upto(DAY + 6)
    >>> busy.days
    {0: 30, 1: 16}
    """

    def __init__(self) -> None:
        self.level = 0
        self.until: int | None = None
        self.days: dict[int, int] = {}

    def add(self, time: int, change: int) -> None:
        """Change the level by `change` at `time`."""
        self.upto(time)
        self.level += change

    def upto(self, time: int) -> None:
        """Integrate up to `time`. A time before that of an earlier call has no effect. The last `MAX_DAYS` are kept."""
        if self.until is None:
            self.until = time
        at = max(self.until, (time // DAY - MAX_DAYS) * DAY)
        while at < time:
            day = at // DAY
            then = min(time, (day + 1) * DAY)
            self.days[day] = self.days.get(day, 0) + self.level * (then - at)
            at = then
            if len(self.days) > MAX_DAYS:
                del self.days[next(iter(self.days))]

        self.until = max(self.until, time)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state."""
        return {"level": self.level, "until": self.until, "days": list(self.days.items())}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.level, self.until = state["level"], state["until"]
        self.days = dict(map(tuple, state["days"]))


NOTICED = 60
"""Least difference of starts, in seconds, that counts as sooner or later. A smaller difference counts as none."""

PARTS = (
    *("jobs", "real_wait", "shadow_wait"),
    *("ended", "real_slowdown", "shadow_slowdown"),
    *("sooner", "later", "sooner_by", "later_by"),
)
"""Summed columns. `ended` counts the jobs with slowdowns. `sooner_by` sums the seconds by which jobs start sooner."""


def parts_of(job: ComparedJob) -> tuple[float, ...]:
    """Return a job's contribution to each of `PARTS`.

    >>> parts_of(ComparedJob(0, 1, 60, (100, 10), (2.0, 1.0)))
    (1, 100, 10, 1, 2.0, 1.0, 1, 0, 90, 0)
    """
    real, shadow = job.waits
    sooner, later = real - shadow >= NOTICED, shadow - real >= NOTICED
    slowdowns = (0, 0.0, 0.0) if job.slowdowns is None else (1, *job.slowdowns)
    return (1, real, shadow, *slowdowns, int(sooner), int(later), (real - shadow) * sooner, (shadow - real) * later)


class DaySums:
    """The sums of `PARTS` of each day and shape: at most 40 numbers for each of the last `MAX_DAYS` days."""

    def __init__(self) -> None:
        self._days: dict[int, dict[int, list[float]]] = {}

    def add(self, day: int, jobs: Sequence[ComparedJob]) -> None:
        """Add all jobs of a day, which is counted from day 0 of the log; O(jobs)."""
        shapes = self._days.setdefault(day, {})
        for job in jobs:
            sums = shapes.setdefault(job.shape, [0] * len(PARTS))
            for place, part in enumerate(parts_of(job)):
                sums[place] += part

        if len(self._days) > MAX_DAYS:
            del self._days[next(iter(self._days))]

    @property
    def last(self) -> int | None:
        """The day that was added last; None if there is none."""
        return next(reversed(self._days), None)

    def table(self) -> tuple[Sequence[int], Floats]:
        """Return the days and their sums, of shape (days, shapes, parts)."""
        table = np.zeros((len(self._days), len(SHAPES), len(PARTS)))
        for row, shapes in enumerate(self._days.values()):
            for shape, sums in shapes.items():
                table[row, shape] = sums
        return list(self._days), table

    def snapshot(self) -> Any:
        """Return the sums."""
        return [[day, list(shapes.items())] for day, shapes in self._days.items()]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._days = {day: {shape: list(sums) for shape, sums in shapes} for day, shapes in state}
