"""Scores of the wait distributions that were predicted at submission."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

from shadowtime.services.scoreboard.scores.event_probabilities import SaidProbabilities, Table, table_of
from shadowtime.shared.bounds import restored, storable
from shadowtime.shared.distributions import point_masses
from shadowtime.shared.messages import IntervalScores, StartDistributionScores, WaitBound, WaitForecast

By = Literal["sampled", "point", "bounds"]
INTERVALS = ((0.5, 0.25, 0.75), (0.8, 0.1, 0.9), (0.95, 0.025, 0.975))
"""Central intervals: their probability, and the probabilities of their lower and upper ends."""


def crps(masses: Iterable[tuple[float, int]], wait: int) -> float:
    """Return the continuous ranked probability score of point masses, in seconds: E|X - wait| - E|X - X'| / 2.

    For a single mass, it is the absolute error. O(masses). `masses` are pairs of a probability and seconds, in
    ascending order of the seconds.

    >>> crps([(1.0, 90)], 100), crps([(0.5, 60), (0.5, 600)], 60)
    (10.0, 135.0)

    References: docs/algorithms.md#start-distributions (Gneiting 2007, section 4.2).
    """
    score, below = 0.0, 0.0
    for mass, seconds in masses:
        score += mass * (abs(seconds - wait) - seconds * (2.0 * below + mass - 1.0))
        below += mass
    return score


def rank_of(masses: Iterable[tuple[float, int]], wait: int) -> tuple[float, float]:
    """Return both ends of the probability integral transform of a wait. They differ if a mass lies at the wait.

    >>> rank_of([(0.5, 60), (0.5, 600)], 60), rank_of([(0.5, 60), (0.5, 600)], 90)
    ((0.0, 0.5), (0.5, 0.5))
    """
    below = sum((mass for mass, seconds in masses if seconds < wait), 0.0)
    return below, below + sum(mass for mass, seconds in masses if seconds == wait)


def share_within(rank: tuple[float, float], low: float, high: float) -> float:
    """Return the share of a rank's interval that lies between two probabilities; 0 or 1 if its ends are equal.

    >>> share_within((0.0, 1.0), 0.25, 0.75), share_within((0.3, 0.3), 0.25, 0.75)
    (0.5, 1.0)
    """
    begin, end = rank
    if end > begin:
        return max(min(end, high) - max(begin, low), 0.0) / (end - begin)
    return float(low <= begin <= high)


class _Sums:
    """Sums over the jobs that had one kind of distribution."""

    def __init__(self) -> None:
        self.jobs = 0
        self.without = 0
        self.crps = 0.0
        self.sampled_crps = 0.0
        self.wait = 0
        self.covered = [0] * len(INTERVALS)
        self.by_chance = [0.0] * len(INTERVALS)
        self.within = SaidProbabilities()

    def add(self, table: Table, wait: int, sampled_crps: float) -> None:
        """Add a table of quantiles, the actual wait in seconds, and the CRPS of the job's sampled forecast."""
        masses = point_masses(table)
        self.jobs += 1
        self.crps += crps(masses, wait)
        self.sampled_crps += sampled_crps
        self.wait += wait
        if len(table) == 1:  # a point has no probabilities
            return
        seconds, rank = dict(table), rank_of(masses, wait)
        for at, (_, low, high) in enumerate(INTERVALS):
            if low in seconds and high in seconds:
                self.covered[at] += seconds[low] <= wait <= seconds[high]
                self.by_chance[at] += share_within(rank, low, high)

        for level, probability in {seconds: share for share, seconds in sorted(table)}.items():
            self.within.add(probability, came=wait <= level)  # of equal seconds, the highest counts

    def scores(self, by: By) -> StartDistributionScores:
        """Return the mean scores of the distributions. Only the kind `sampled` has intervals for every job."""
        jobs = self.jobs
        return StartDistributionScores(
            by=by,
            jobs=jobs,
            without=self.without,
            crps=self.crps / jobs if jobs else None,
            sampled_crps=self.sampled_crps / jobs if jobs else None,
            mean_wait=self.wait / jobs if jobs else None,
            intervals=tuple(
                IntervalScores(level=level, covered=covered / jobs, covered_by_chance=by_chance / jobs)
                for (level, _, _), covered, by_chance in zip(INTERVALS, self.covered, self.by_chance, strict=True)
            )
            if jobs and by == "sampled"
            else (),
            within=self.within.scores(),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the sums as plain values."""
        lists = {"covered": self.covered.copy(), "by_chance": self.by_chance.copy()}
        return storable(vars(self)) | lists | {"within": self.within.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        within = self.within
        vars(self).update(restored(state) | {"within": within})
        within.restore(state["within"])


class StartDistributions:
    """Distributions of jobs with still unknown waits, and sums over the jobs with known waits.

    Only jobs with a sampled forecast count. Memory is bounded by the waiting jobs.

    >>> starts = StartDistributions()
    >>> starts.submit(1, WaitForecast(wait=90, starts_within=((0.25, 60), (0.75, 600))), ())
    >>> starts.reveal(1, wait=60)
    >>> [(value.by, value.crps) for value in starts.scores() or ()]
    [('sampled', 135.0), ('point', 30.0), ('bounds', None)]
    """

    def __init__(self) -> None:
        self.waiting: dict[int, tuple[Table, Table, Table]] = {}
        """Quantiles of the wait by job number: one table for each of `By`."""
        self.sums: dict[By, _Sums] = {by: _Sums() for by in get_args(By)}

    def submit(self, job_number: int, forecast: WaitForecast | None, bounds: Iterable[WaitBound]) -> None:
        """Keep the distributions of a job until its wait is known, if its forecast has quantiles."""
        if forecast is not None and forecast.starts_within is not None:
            point = () if forecast.wait is None else ((0.5, forecast.wait),)
            self.waiting[job_number] = (forecast.starts_within, point, table_of(bounds))

    def reveal(self, job_number: int, wait: int) -> None:
        """Score, then drop the forecasts of a job that has waited `wait` seconds. A second start is not scored."""
        tables = self.waiting.pop(job_number, None)
        if tables is None:
            return
        if not tables[0]:
            self.sums["sampled"].without += 1
            return
        sampled = crps(point_masses(tables[0]), wait)
        for sums, table in zip(self.sums.values(), tables, strict=True):
            if table:
                sums.add(table, wait, sampled)
            else:
                sums.without += 1

    def withdraw(self, job_number: int) -> None:
        """Forget the distributions of a job that leaves without starting."""
        self.waiting.pop(job_number, None)

    def scores(self) -> tuple[StartDistributionScores, ...] | None:
        """Return the means for each kind of distribution. Return None if no forecast had quantiles."""
        sampled = self.sums["sampled"]
        if not (sampled.jobs or sampled.without or self.waiting):
            return None
        return tuple(sums.scores(by) for by, sums in self.sums.items())

    def snapshot(self) -> dict[str, Any]:
        """Return tables and sums as plain values."""
        waiting = [
            [number, [[list(row) for row in table] for table in tables]] for number, tables in self.waiting.items()
        ]
        return {"waiting": waiting, "sums": [score.snapshot() for score in self.sums.values()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.waiting = {}
        for number, tables in state["waiting"]:
            sampled, point, bounds = (tuple((share, seconds) for share, seconds in table) for table in tables)
            self.waiting[number] = (sampled, point, bounds)
        for sums, saved in zip(self.sums.values(), state["sums"], strict=True):
            sums.restore(saved)
