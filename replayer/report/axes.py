"""Axes of charts: the positions of values, and round tick marks."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

TIMES = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3_600: "1 h",
    86_400: "1 d",
    864_000: "10 d",
    8_640_000: "100 d",
}

SHARES = [(share / 5, f"{share * 20} %") for share in range(6)]
"""Tick marks of an axis of shares."""


class Axis(NamedTuple):
    """An axis: the function from values to positions, the tick marks, and a name."""

    place: Callable[[float], float]
    marks: Sequence[tuple[float, str]]
    name: str


def linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return a function that maps values from `low`..`high` linearly to positions from `start`..`end`.

    >>> linear(0, 10, 100, 200)(5)
    150.0
    """
    return lambda value: start + (end - start) * (value - low) / ((high - low) or 1)


def logarithmic(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return a function that maps values to positions on a logarithmic axis. Values below `low` are at `start`.

    `low` must be above 0.

    >>> round(logarithmic(1, 100, 0, 200)(10)), logarithmic(1, 100, 0, 200)(0)
    (100, 0.0)
    """
    return lambda value: start + (end - start) * math.log(max(value, low) / low) / (math.log(high / low) or 1)


def round_marks(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Return at most `most` + 1 round numbers from `low` to `high`, each with its label.

    >>> [name for _, name in round_marks(0, 93)], [name for _, name in round_marks(0, 5_000, 2)]
    (['0', '20', '40', '60', '80'], ['0', '5,000'])
    """
    rough = max(high - low, 1e-9) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(multiple * power for multiple in (1, 2, 5, 10) if multiple * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(place * step, f"{place * step:,.10g}") for place in range(first, last + 1)]


def logarithmic_marks(low: float, high: float) -> list[tuple[float, str]]:
    """Return tick marks of a logarithmic axis.

    The marks are powers of ten if four of them fit, else 1, 2 and 5 times powers of ten. If fewer than three of these
    fit, the marks are round numbers.

    >>> [name for _, name in logarithmic_marks(1, 40)], [name for _, name in logarithmic_marks(52, 68)]
    (['1', '2', '5', '10', '20'], ['55', '60', '65'])
    """
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    for steps in ((1,), (1, 2, 5)):
        marks = [step * power for power in powers for step in steps if low <= step * power <= high]
        if len(marks) >= 4:
            return [(mark, f"{mark:,.10g}") for mark in marks]
    return round_marks(low, high) if len(marks) < 3 else [(mark, f"{mark:,.10g}") for mark in marks]


def time_marks(low: float, high: float) -> list[tuple[float, str]]:
    """Return tick marks of a logarithmic axis of seconds.

    >>> time_marks(10, 7200)
    [(10, '10 s'), (60, '1 min'), (600, '10 min'), (3600, '1 h')]
    """
    return [(time, name) for time, name in TIMES.items() if low <= time <= high]
