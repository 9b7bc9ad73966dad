"""Probabilities of starting within some time, beside the site's word: what was said of jobs, and what came."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from shadowtime.shared.predictions import WaitBound
from shadowtime.shared.scores import StartProbabilityScores

PARTS = 10**9
"""Of a probability, and of its square: whole numbers are summed exactly."""

Table = Sequence[tuple[float, int]]
"""Probabilities, and the seconds within which a job starts with them."""


def table_of(bounds: Iterable[WaitBound]) -> Table:
    """Return what a job's bounds say of its start, over all of the cluster; empty where they say nothing."""
    return next((each.starts_within for each in bounds if each.starts_within and each.queue is None), ())


class Sums(NamedTuple):
    """Over all probabilities that were said of jobs: how many jobs and probabilities, their sum, how many came true.

    Squared errors are ours, and those of the site's word if it is taken for certain.
    """

    jobs: int = 0
    said: int = 0
    probability: int = 0
    came: int = 0
    squares: int = 0
    site_squares: int = 0

    def plus(self, table: Table, wait: int, expected: int) -> "Sums":
        """Return the sums with a job more, whose wait is known, and of which the site expected another.

        >>> Sums().plus([(0.5, 60), (0.9, 600)], wait=300, expected=700).scores().brier
        0.13
        """
        came = [wait <= seconds for _, seconds in table]
        squares = sum(
            round((probability - true) ** 2 * PARTS) for (probability, _), true in zip(table, came, strict=True)
        )
        site = sum((expected <= seconds) != true for (_, seconds), true in zip(table, came, strict=True))
        added = (1, len(table), sum(round(probability * PARTS) for probability, _ in table), sum(came), squares, site)
        return Sums(*(old + new for old, new in zip(self, added, strict=True)))

    def scores(self) -> StartProbabilityScores | None:
        """Return the means; None without a job."""
        if not self.said:
            return None
        return StartProbabilityScores(
            jobs=self.jobs,
            mean_probability=self.probability / (PARTS * self.said),
            started_share=self.came / self.said,
            brier=self.squares / (PARTS * self.said),
            site_brier=self.site_squares / self.said,
        )

    def snapshot(self) -> list[Any]:
        """Return the sums as plain values."""
        return list(self)
