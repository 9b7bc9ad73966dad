"""Calibration of predicted probabilities of events."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from shadowtime.shared.messages import TENTHS, ProbabilityBin, ProbabilityScores, StartProbabilityScores, WaitBound

PARTS = 10**9
"""Unit of the sums of probabilities and their squares: 1e-9. Whole numbers are summed exactly."""


class SaidProbabilities:
    """Running sums over predicted events, by tenths of their probability; memory is constant.

    >>> scores = SaidProbabilities()
    >>> for came in (True, True, False, True):
    ...     scores.add(0.75, came=came)
    >>> scores = scores.scores()
    >>> scores.mean_probability, scores.came_share, scores.brier, scores.calibration_error
    (0.75, 0.75, 0.1875, 0.0)

    References: docs/algorithms.md#start-distributions.
    """

    def __init__(self) -> None:
        self.forecasts = [0] * TENTHS
        self.came = [0] * TENTHS
        self.probability = [0] * TENTHS
        self.squares = 0

    def add(self, probability: float, *, came: bool) -> None:
        """Add the probability of an event, and whether the event happened."""
        tenth = min(int(probability * TENTHS), TENTHS - 1)
        self.forecasts[tenth] += 1
        self.came[tenth] += came
        self.probability[tenth] += round(probability * PARTS)
        self.squares += round((probability - came) ** 2 * PARTS)

    def scores(self) -> ProbabilityScores | None:
        """Return the means. Return None without probabilities."""
        total = sum(self.forecasts)
        if not total:
            return None
        off = sum(
            abs(probability / PARTS - came) for probability, came in zip(self.probability, self.came, strict=True)
        )
        return ProbabilityScores(
            said=total,
            mean_probability=sum(self.probability) / PARTS / total,
            came_share=sum(self.came) / total,
            brier=self.squares / PARTS / total,
            calibration_error=off / total,
            bins=tuple(
                ProbabilityBin(
                    from_probability=tenth / TENTHS,
                    said=count,
                    mean_probability=self.probability[tenth] / PARTS / count,
                    came_share=self.came[tenth] / count,
                )
                for tenth, count in enumerate(self.forecasts)
                if count
            ),
        )

    def snapshot(self) -> list[Any]:
        """Return the sums as plain values."""
        return [*self.forecasts, *self.came, *self.probability, self.squares]

    def restore(self, state: list[Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.forecasts, self.came, self.probability = (state[at * TENTHS : (at + 1) * TENTHS] for at in range(3))
        self.squares = state[-1]


# Probabilities of starting within some time, and the site's expected starts, compared with the outcomes.

Table = Sequence[tuple[float, int]]
"""Pairs of a probability and the seconds within which a job starts with that probability."""


def table_of(bounds: Iterable[WaitBound]) -> Table:
    """Return the first `starts_within` in a job's bounds for the whole cluster; empty if there is none."""
    return next(
        (wait_bound.starts_within for wait_bound in bounds if wait_bound.starts_within and wait_bound.queue is None), ()
    )


class ProbabilitySums(NamedTuple):
    """Sums over all probabilities of all jobs.

    `jobs` counts jobs, and `forecasts` counts probabilities. `came` counts the probabilities whose job started in time.
    `probability` is the sum of the probabilities, and `squares` the sum of their squared errors; both in 1 / `PARTS`.
    `site_squares` is the sum of the site's squared errors, if its expected start counts as certain.
    """

    jobs: int = 0
    forecasts: int = 0
    probability: int = 0
    came: int = 0
    squares: int = 0
    site_squares: int = 0

    def plus(self, table: Table, wait: int, expected: int) -> "ProbabilitySums":
        """Return the sums with one more job. `wait` is the actual, `expected` the site's expected wait, in seconds.

        >>> ProbabilitySums().plus([(0.5, 60), (0.9, 600)], wait=300, expected=700).scores().brier
        0.13
        """
        came = [wait <= seconds for _, seconds in table]
        squares = sum(
            round((probability - true) ** 2 * PARTS) for (probability, _), true in zip(table, came, strict=True)
        )
        site = sum((expected <= seconds) != true for (_, seconds), true in zip(table, came, strict=True))
        added = (1, len(table), sum(round(probability * PARTS) for probability, _ in table), sum(came), squares, site)
        return ProbabilitySums(*(old + new for old, new in zip(self, added, strict=True)))

    def scores(self) -> StartProbabilityScores | None:
        """Return the means. Return None without a job."""
        if not self.forecasts:
            return None
        return StartProbabilityScores(
            jobs=self.jobs,
            mean_probability=self.probability / (PARTS * self.forecasts),
            started_share=self.came / self.forecasts,
            brier=self.squares / (PARTS * self.forecasts),
            site_brier=self.site_squares / self.forecasts,
        )

    def snapshot(self) -> list[Any]:
        """Return the sums as plain values."""
        return list(self)
