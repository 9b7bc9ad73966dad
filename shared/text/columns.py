"""Columns of figures: one unit for each, and as many digits as tell its rows apart."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

MOST_DIGITS = 6
"""Behind the point; what is alike up to there counts as equal."""

NOTHING = "-"
"""In the place of a figure that there is none of."""

DIGITS = {"h": 2, "min": 1, "s": 0}
"""Behind the point of a time at the least."""

Values = Sequence[float | None]
Best = Callable[[Iterable[float]], float]


class TableColumn(NamedTuple):
    """A column of a table: its heading, the unit of its figures, and which rows are the best of it.

    `note` says what the heading means, where it does not say so itself.
    """

    heading: str
    unit: str
    cells: Sequence[str]
    best: frozenset[int] = frozenset()
    note: str = ""

    def meaning(self, note: str) -> "TableColumn":
        """Return the column with a note on what it means."""
        return self._replace(note=note)

    def unmarked(self) -> "TableColumn":
        """Return the column without marks: none of its figures is better than another."""
        return self._replace(best=frozenset())


Measure = Callable[[str, Values], TableColumn]
"""Makes a column of times: `times` or `seconds`."""


def times(heading: str, seconds: Values, like: Values = ()) -> TableColumn:
    """Return times in the unit that suits the longest of them, and of those that they are `like`; less is better.

    >>> column = times("mean wait", [5760.0, 5725.0, None])
    >>> column.unit, column.cells, sorted(column.best)
    ('h', ['1.60', '1.59', '-'], [1])
    """
    longest = max((value for value in (*seconds, *like) if value is not None), default=0)
    unit, size = next((pair for pair in (("h", 3600), ("min", 60)) if longest >= pair[1]), ("s", 1))
    return _column(heading, unit, [None if value is None else value / size for value in seconds], DIGITS[unit], min)


def seconds(heading: str, values: Values) -> TableColumn:
    """Return times in seconds, means to a tenth at the least; less is better.

    >>> seconds("longest", [940000, 298080]).cells
    ['940,000', '298,080']
    """
    whole = all(value is None or isinstance(value, int) for value in values)
    return _column(heading, "s", values, 0 if whole else 1, min)


def numbers(heading: str, values: Values, digits: int = 2) -> TableColumn:
    """Return figures without a unit; less is better.

    >>> numbers("slowdown", [47.04, 54.72]).cells
    ['47.04', '54.72']
    """
    return _column(heading, "", values, digits, min)


def shares(heading: str, values: Values, *, best: Best = max) -> TableColumn:
    """Return shares in per cent; more is better unless `best` says otherwise.

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
    """Return the fewest digits at which values that differ look different, and none but 0 looks like 0.

    >>> digits_apart([2.7446, 2.7449], 1), digits_apart([5.0, 0.003], 1), digits_apart([5.0, 5.0], 1)
    (4, 3, 1)
    """
    known = {round(value, MOST_DIGITS) for value in values if value is not None} | {0.0}
    enough = (
        digits for digits in range(least, MOST_DIGITS) if len({f"{value:.{digits}f}" for value in known}) == len(known)
    )
    return next(enough, MOST_DIGITS)
