"""Columns of figures: each has one unit, and as many digits as are needed to distinguish its rows."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

MOST_DIGITS = 6
"""Largest number of decimal places. Figures that are equal at this precision count as equal."""

NOTHING = "-"
"""Placeholder for a missing figure."""

DIGITS = {"h": 2, "min": 1, "s": 0}
"""Smallest number of decimal places of a time, by unit."""

Values = Sequence[float | None]
Best = Callable[[Iterable[float]], float]


class TableColumn(NamedTuple):
    """A column of a table: its heading, the unit of its figures, its cells, and the rows with the best figure.

    `note` explains the heading if it needs an explanation.
    """

    heading: str
    unit: str
    cells: Sequence[str]
    best: frozenset[int] = frozenset()
    note: str = ""

    def meaning(self, note: str) -> "TableColumn":
        """Return the column with a note on its meaning."""
        return self._replace(note=note)

    def unmarked(self) -> "TableColumn":
        """Return the column without marks, for figures that are neither better nor worse than others."""
        return self._replace(best=frozenset())


Measure = Callable[[str, Values], TableColumn]
"""Function that makes a column of times: `times` or `seconds`."""


def times(heading: str, seconds: Values, like: Values = ()) -> TableColumn:
    """Return a column of times in h, min or s. The lowest is marked as the best, unless all are equal.

    The unit suits the longest time in `seconds` and `like`. So columns that are compared get the same unit.

    >>> column = times("mean wait", [5760.0, 5725.0, None])
    >>> column.unit, column.cells, sorted(column.best)
    ('h', ['1.60', '1.59', '-'], [1])
    """
    longest = max((value for value in (*seconds, *like) if value is not None), default=0)
    unit, size = next((pair for pair in (("h", 3600), ("min", 60)) if longest >= pair[1]), ("s", 1))
    return _column(heading, unit, [None if value is None else value / size for value in seconds], DIGITS[unit], min)


def seconds(heading: str, values: Values) -> TableColumn:
    """Return a column of times in seconds. The lowest is marked as the best, unless all are equal.

    If a value is a float, all have at least one decimal place.

    >>> seconds("longest", [940000, 298080]).cells
    ['940,000', '298,080']
    """
    whole = all(value is None or isinstance(value, int) for value in values)
    return _column(heading, "s", values, 0 if whole else 1, min)


def numbers(heading: str, values: Values, digits: int = 2) -> TableColumn:
    """Return a column of figures without a unit. The lowest figure is marked as the best, unless all are equal.

    >>> numbers("slowdown", [47.04, 54.72]).cells
    ['47.04', '54.72']
    """
    return _column(heading, "", values, digits, min)


def shares(heading: str, values: Values, *, best: Best = max) -> TableColumn:
    """Return a column of shares in per cent. The highest is marked as the best, unless all are equal.

    `best` returns the share to mark; `min` marks the lowest.

    >>> shares("at once", [0.5, 0.375]).cells
    ['50.0', '37.5']
    """
    return _column(heading, "%", [None if value is None else 100 * value for value in values], 1, best)


def _column(heading: str, unit: str, values: Values, least: int, best: Best) -> TableColumn:
    digits = digits_apart(values, least)
    known = [round(value, MOST_DIGITS) for value in values if value is not None]
    wanted = best(known) if len(set(known)) > 1 else None
    return TableColumn(
        heading,
        unit,
        [NOTHING if value is None else f"{value:,.{digits}f}" for value in values],
        frozenset(row for row, value in enumerate(values) if value is not None and round(value, MOST_DIGITS) == wanted),
    )


def digits_apart(values: Values, least: int) -> int:
    """Return the fewest decimal places at which different values look different, and only 0 looks like 0.

    >>> digits_apart([2.7446, 2.7449], 1), digits_apart([5.0, 0.003], 1), digits_apart([5.0, 5.0], 1)
    (4, 3, 1)
    """
    known = {round(value, MOST_DIGITS) for value in values if value is not None} | {0.0}
    enough = (
        digits for digits in range(least, MOST_DIGITS) if len({f"{value:.{digits}f}" for value in known}) == len(known)
    )
    return next(enough, MOST_DIGITS)
