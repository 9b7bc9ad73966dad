"""Groups of jobs by their shape."""

from typing import NamedTuple, TypeVar

from shadowtime.shared.formatting import duration
from shadowtime.shared.kernels import Integers

SHAPES = ("short narrow", "short wide", "long narrow", "long wide")

Numbers = TypeVar("Numbers", int, Integers)


class Borders(NamedTuple):
    """Largest request of short jobs, in seconds, and largest number of processors of narrow jobs."""

    requested_time: int
    processors: int

    def __str__(self) -> str:
        more = f"{self.processors:,} processor{'s' * (self.processors != 1)}"
        return f"Long jobs request more than {duration(self.requested_time)}, wide ones more than {more}"


HOUR_AND_EIGHT = Borders(3_600, 8)
"""Fixed borders, for use before the whole log, and thus its medians, is known."""


def shape_of(requested_time: Numbers, processors: Numbers, borders: Borders) -> Numbers:
    """Return the index in `SHAPES` of a job, or of each of many jobs.

    >>> shape_of(60, 8, HOUR_AND_EIGHT), shape_of(7_200, 9, HOUR_AND_EIGHT)
    (0, 3)

    References
    ----------
    docs/algorithms.md#groups-of-shapes (Perković 2000, Table 2).
    """
    return 2 * (requested_time > borders.requested_time) + (processors > borders.processors)
