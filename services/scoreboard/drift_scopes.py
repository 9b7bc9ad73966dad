"""Drift detection for the cluster and for its queues, partitions and users: docs/algorithms.md#drift.

The share of failures on a day is a mean over users. The value of a user is the mean over the user's jobs. So no user
dominates the day, although the jobs of one session are alike. A share is tested once a day. Its limit is the larger of
the stated share and its record, the mean of earlier days, plus a tolerance. The hypothesis is only about days: given
the earlier days, no day is expected to exceed the limit.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from shadowtime.services.scoreboard.drift_share import WatchedShare
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import Drift, Predicted, Scope

AVERAGE_RUN: Final = 1_000.0
"""Least mean number of days until the first false alarm in a scope, such as all queues together."""

PLACES: Final[dict[Scope, int]] = {"cluster": 1, "queue": 20, "partition": 20, "user": 200}
"""Maximum number of watched members of a scope. The member with the oldest outcomes and no alarm is evicted first."""

STATISTICS: Final = 16
"""Maximum number of watched shares of a member. The first shares with outcomes are watched."""

MAX_CELLS: Final = 10_000
"""Maximum number of combinations of reach, user, queue and partition in a day. Later combinations are left out."""

Reach = Literal["all", "cluster", "queue"]
"""Scopes in which an outcome counts: all scopes of its job, the cluster only, or the queue only."""


class Statistic(NamedTuple):
    """A watched share of failures `what` of predictions `of`, and the share that the predictions state; 0 if none."""

    of: Predicted
    what: str
    stated: float


class Owner(NamedTuple):
    """User, queue and partition of a job; None if unknown."""

    user: int | None = None
    queue: int | None = None
    partition: int | None = None


Outcomes = dict[Statistic, list[float]]
"""Sum of the failures and number of outcomes, by statistic."""


class DriftWatch:
    """Detector that gathers the outcomes of a day, then tests them; O(1) an outcome, O(users of the day) a day.

    Memory is bounded by `PLACES`, `STATISTICS` and `MAX_CELLS`.

    >>> watch, late = DriftWatch(), Statistic("run_time", "longer", 0.1)
    >>> for day in range(60):
    ...     result = watch.close(day * DAY)
    ...     if result:
    ...         break
    ...     watch.add("cluster", Owner(user=1), [(late, 0.1 if day < 30 else 0.7)])
    >>> day, result[0].since // DAY, round(result[0].share, 2)
    (37, 30, 0.7)
    """

    def __init__(self) -> None:
        self.day: int | None = None
        """The day whose outcomes are gathered."""
        self.days = 0
        """Number of past days that had outcomes."""
        self.cells: dict[tuple[Reach, Owner], Outcomes] = {}
        self.units: dict[Scope, dict[int | None, dict[Statistic, WatchedShare]]] = {scope: {} for scope in PLACES}

    def due(self, time: int) -> bool:
        """Return whether a day that has outcomes is over at `time` (seconds of the log)."""
        return bool(self.cells) and self.day is not None and time // DAY > self.day

    def add(self, reach: Reach, owner: Owner, outcomes: Sequence[tuple[Statistic, float]]) -> None:
        """Add outcomes of predictions for a job. Each outcome is a degree of failure, in 0 to 1.

        Outcomes of a combination beyond `MAX_CELLS` are left out.
        """
        if outcomes and (cell := self.cell(reach, owner)) is not None:
            add_to(cell, outcomes)

    def cell(self, reach: Reach, owner: Owner) -> Outcomes | None:
        """Return the outcomes of a combination; None for a combination beyond `MAX_CELLS`."""
        cell = self.cells.get((reach, owner))
        if cell is None and len(self.cells) < MAX_CELLS:
            cell = self.cells[reach, owner] = {}
        return cell

    def close(self, time: int) -> list[Drift]:
        """Test the gathered day if it has ended by `time`. Return a drift for each alarm that begins or ends."""
        drifts: list[Drift] = []
        if self.due(time) and self.day is not None:
            self.days += 1
            for (scope, number), shares in self._gathered().items():
                drifts += self._test(self.day, scope, number, shares)
            self.cells = {}

        if self.day is None or time // DAY > self.day:
            self.day = time // DAY
        return drifts

    def _gathered(self) -> dict[tuple[Scope, int | None], dict[Statistic, dict[int | None, list[float]]]]:
        """Return the sum of failures and number of outcomes of the day, by member of a scope, statistic and user."""
        gathered: dict[tuple[Scope, int | None], dict[Statistic, dict[int | None, list[float]]]] = {}
        for (reach, owner), outcomes in self.cells.items():
            user = owner.user
            for unit in _units(reach, owner):
                shares = gathered.setdefault(unit, {})
                for statistic, (total, count) in outcomes.items():
                    by_user = shares.get(statistic)
                    if by_user is None:
                        by_user = shares[statistic] = {}
                    sums = by_user.get(user)
                    if sums is None:
                        by_user[user] = [total, count]
                    else:
                        sums[0] += total
                        sums[1] += count

        return gathered

    def _test(
        self, day: int, scope: Scope, number: int | None, shares: dict[Statistic, dict[int | None, list[float]]]
    ) -> Iterator[Drift]:
        watched = self._unit(scope, number)
        if watched is None:
            return
        for statistic, by_user in shares.items():
            if statistic not in watched:
                if len(watched) >= STATISTICS:
                    continue
                limit = AVERAGE_RUN * STATISTICS * PLACES[scope]
                watched[statistic] = WatchedShare(statistic.stated, limit)

            share = watched[statistic]
            change = share.add(day, sum([total / count for total, count in by_user.values()]) / len(by_user))
            if change is None:
                continue
            holds, since = change == "holds", (share.falling if change == "holds" else share.rising).began * DAY
            yield Drift(
                of=statistic.of,
                what=statistic.what,
                scope=scope,
                number=number,
                holds=holds,
                since=since,
                share=share.share,
                most=share.most,
            )

    def _unit(self, scope: Scope, number: int | None) -> dict[Statistic, WatchedShare] | None:
        """Return the watched shares of a member, and make the member the last to be evicted.

        Return None if the scope has `PLACES` watched members and all are under alarm.
        """
        units = self.units[scope]
        of_number = units.pop(number, None)
        if of_number is None:
            if len(units) >= PLACES[scope]:
                idle = (unit for unit, shares in units.items() if all(one.since is None for one in shares.values()))
                oldest = next(idle, None)
                if oldest is None:
                    return None
                del units[oldest]

            of_number = {}

        units[number] = of_number
        return of_number

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return {
            "day": self.day,
            "days": self.days,
            "cells": [
                [reach, list(owner), [[list(of), list(sums)] for of, sums in outcomes.items()]]
                for (reach, owner), outcomes in self.cells.items()
            ],
            "units": [
                [scope, number, [[list(of), share.snapshot()] for of, share in shares.items()]]
                for scope, units in self.units.items()
                for number, shares in units.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.day, self.days = state["day"], state["days"]
        self.cells = {
            (reach, Owner(*owner)): {Statistic(*of): list(sums) for of, sums in outcomes}
            for reach, owner, outcomes in state["cells"]
        }
        self.units = {scope: {} for scope in PLACES}
        for scope, number, shares in state["units"]:
            unit = self.units[scope][number] = {}
            for of, saved in shares:
                unit[Statistic(*of)] = share = WatchedShare(0.0, 0.0)
                share.restore(saved)


def add_to(cell: Outcomes, outcomes: Sequence[tuple[Statistic, float]]) -> None:
    """Add outcomes to a cell."""
    for statistic, value in outcomes:
        sums = cell.get(statistic)
        if sums is None:
            cell[statistic] = [value, 1]
        else:
            sums[0] += value
            sums[1] += 1


def _units(reach: Reach, owner: Owner) -> Iterator[tuple[Scope, int | None]]:
    if reach != "queue":
        yield "cluster", None
    if reach != "cluster" and owner.queue is not None:
        yield "queue", owner.queue
    if reach == "all":
        if owner.partition is not None:
            yield "partition", owner.partition
        if owner.user is not None:
            yield "user", owner.user
