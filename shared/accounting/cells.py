"""Parsers of the cells of a table: instants, durations, counts, memory and names, in any of the usual notations."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import numpy as np

from shadowtime.shared.accounting.durations import seconds_of
from shadowtime.shared.accounting.instants import NOT_SET, Instants
from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.bounds import MAX_AMOUNT, MAX_DURATION, MAX_INTEGER
from shadowtime.shared.kernels import Integers

UNITS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("ns",), (1, 10**9)),
    **dict.fromkeys(("us", "µs"), (1, 10**6)),
    **dict.fromkeys(("ms",), (1, 1000)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), (1, 1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), (60, 1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), (3600, 1)),
    **dict.fromkeys(("d", "day", "days"), (86_400, 1)),
}
"""Seconds in each unit of time, as numerator and denominator."""

STATED = ("ns", "us", "ms", "s", "min", "h", "d")
"""Units of time that a mapping of columns may state."""

MEMORY = {
    **dict.fromkeys(("b", "byte", "bytes"), "B"),
    **{f"{unit}{end}".lower(): unit for unit in "KMGT" for end in ("", "B", "iB")},
}
"""Units of memory by their names in lower case: bytes, and 1,024 times as much each. A mapping may state them."""

NO_LIMIT, NO_VALUE = "4294967295", "4294967294"
"""Numbers that Slurm's database stores for no limit and for a missing value."""

MOST_MEMORY = 2**30
"""A pebibyte in MiB. A number without a unit that is this large cannot be in MiB, so it is unreadable."""

UNLIMITED = {"unlimited", "partition_limit", "infinite", "infinity", "inf", "no limit", NO_LIMIT}
"""Texts that mean no limit, in lower case."""

_DECIMAL = re.compile(r"[0-9]{1,19}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,2})?\Z")
_DAYS = re.compile(r"([0-9]{1,7}) days?,? *\+?([0-9]{1,2}:[0-9]{2}:[0-9]{2})?(\.[0-9]{1,9})?\Z")
_PARTS = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?([a-zµ]{1,7})[ ,]*")
_ISO = re.compile(
    r"P(?:([0-9]{1,7})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,12})(?:\.[0-9]{1,9})?S)?)?\Z"
)
_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([KMGTP])i?B?\Z", re.IGNORECASE)
_HOURS_AND_MINUTES = re.compile(r"([0-9]{1,6}):([0-5][0-9])\Z")
_MIB = {"B": 1 / 1024**2, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}

Parser = Callable[[Any], int | None]
"""A function that returns the number that a cell states, `UNKNOWN` for a missing value, None if it is unreadable."""


def is_missing(cell: Any) -> bool:
    """Return whether a cell stands for a missing value: None, -1, or a text of `NOT_SET`. A NaN is not one of them."""
    return cell is None or cell == UNKNOWN or (isinstance(cell, str) and cell.strip().lower() in NOT_SET)


def _decimal(cell: Any) -> Decimal | int | None:
    """Return the number in a cell; None if it is not a finite number."""
    if isinstance(cell, str):
        text = cell.strip()
        return Decimal(text) if _DECIMAL.match(text) else None
    if isinstance(cell, bool):
        return int(cell) if cell else None
    if isinstance(cell, int):
        return cell
    if isinstance(cell, float | Decimal) and isfinite(cell):
        return Decimal(cell)
    return None


def is_below_one(cell: Any) -> bool:
    """Return whether a cell is a number between 0 and 1.

    >>> [is_below_one(cell) for cell in ("0.0069", 0.5, "0", 1, "1h")]
    [True, True, False, False, False]
    """
    number = _decimal(cell)
    return number is not None and 0 < number < 1


def is_nan(cell: Any) -> bool:
    """Return whether a cell is a floating-point number that stands for a missing value."""
    return isinstance(cell, float) and cell != cell


def instant_of(instants: Instants, unit: str | None = None) -> Parser:
    """Return a parser of Unix times and dates. It returns Unix seconds.

    Parameters
    ----------
    instants
        The parser of dates. If it has a date format, it also parses numbers, and `unit` has no effect.
    unit
        The unit of numbers, one of `STATED`. None: their size shows whether they are seconds, milli-, micro- or
        nanoseconds.

    >>> from shadowtime.shared.accounting.instants import zone_of
    >>> parse = instant_of(Instants(zone_of(None)))
    >>> [parse(cell) for cell in ("1.795325e9", 1795325000000, "NaT", "2026-11-22 05:23:20 UTC", "soon")]
    [1795325000, 1795325000, -1, 1795325000, None]
    """

    def parse(cell: Any) -> int | None:
        if is_missing(cell) or is_nan(cell):
            return UNKNOWN
        if instants.date_format is not None and isinstance(cell, int | str):
            return instants(str(cell))
        if (number := _decimal(cell)) is not None:
            if number < 0:
                return None
            instants.absolute = instants.absolute or unit is not None
            return instants.of_number(int(number)) if unit is None else _scaled(number, unit)
        if isinstance(cell, date):
            return instants(cell.isoformat())
        return instants(cell) if isinstance(cell, str) else None

    return parse


def span_of(unit: str | None = None) -> Parser:
    """Return a parser of durations. It returns seconds, and `MAX_DURATION` for no limit.

    `unit` is the unit of numbers, one of `STATED`; None means seconds. `2:30` has minutes and seconds, but hours and
    minutes if the unit is hours.

    >>> parse = span_of()
    >>> [parse(cell) for cell in ("0 days 02:00:00", "1.5h", "2:00:00", "7200.0", "P0DT2H0M0S", "INFINITE", "nan", "x")]
    [7200, 5400, 7200, 7200, 7200, 549755813888, -1, None]
    >>> span_of("min")("120"), span_of()("2:30"), span_of("h")("2:30")
    (7200, 150, 9000)
    """

    def parse(cell: Any) -> int | None:
        if is_missing(cell) or is_nan(cell):
            return UNKNOWN
        text = str(cell).strip()
        if text.lower() in UNLIMITED:
            return MAX_DURATION
        if text == NO_VALUE:
            return UNKNOWN
        if isinstance(cell, timedelta):
            seconds = cell.total_seconds()
            return int(seconds) if 0 <= seconds <= MAX_DURATION else None
        if (number := _decimal(cell)) is not None:
            return _scaled(number, unit or "s") if number >= 0 else None
        if UNITS.get(unit or "s") == UNITS["h"] and (match := _HOURS_AND_MINUTES.match(text)):
            return 3600 * int(match[1]) + 60 * int(match[2])
        return _written_out(text)

    return parse


def spans_of(seconds: Integers) -> Integers:
    """Return durations from whole numbers of seconds, shape (n,). Slurm's special numbers are replaced.

    >>> spans_of(np.array([7200, 4_294_967_295, 4_294_967_294])).tolist()
    [7200, 549755813888, -1]
    """
    return np.select([seconds == int(NO_LIMIT), seconds == int(NO_VALUE)], [MAX_DURATION, UNKNOWN], seconds)


def _written_out(text: str) -> int | None:
    """Return the seconds of a duration with colons or units; None if the text has another form."""
    if match := _DAYS.match(text):
        clock = seconds_of(match[2] or "0:0")
        return None if clock is None else min(86_400 * int(match[1]) + clock, MAX_DURATION)
    if (match := _ISO.match(text)) and len(text) > 2:
        parts = [int(part or 0) for part in match.groups()]
        return min(sum(part * unit for part, unit in zip(parts, (86_400, 3600, 60, 1), strict=True)), MAX_DURATION)
    if (seconds := seconds_of(text)) is not None:
        return seconds
    parts_of_text = _PARTS.findall(text.lower())
    if not parts_of_text or _PARTS.sub("", text.lower()) or any(unit not in UNITS for _, unit in parts_of_text):
        return None
    total = sum(Decimal(part) * UNITS[unit][0] / UNITS[unit][1] for part, unit in parts_of_text)
    return min(round(total), MAX_DURATION)


def _scaled(number: Decimal | int, unit: str) -> int | None:
    more, less = UNITS[unit]
    seconds = (int(number) if more == less else round(number * more)) // less
    return seconds if seconds <= MAX_INTEGER else None


def count_of(cell: Any) -> int | None:
    """Return the whole number in a cell; `UNKNOWN` if it is missing, None if it is not within 0 to `MAX_INTEGER`.

    >>> [count_of(cell) for cell in ("4", "4.0", 4.0, "", "-1", "4e2", "many", -7, "1.024")]
    [4, 4, 4, -1, -1, 400, None, None, None]
    """
    if is_missing(cell) or is_nan(cell) or cell is False:
        return UNKNOWN
    number = _decimal(cell)
    return int(number) if number is not None and 0 <= number <= MAX_INTEGER and number == int(number) else None


def memory_of(unit: str | None = None) -> Parser:
    """Return a parser of amounts of memory. It returns MiB.

    `unit` is the unit of numbers without one, one of the names in `MEMORY`; None means MiB, of which no memory has
    `MOST_MEMORY` or more.

    >>> [memory_of()(cell) for cell in ("16G", "512M", "2048", "1.5GiB", "16Gn", None, 17179869184)]
    [16384, 512, 2048, 1536, None, -1, None]
    >>> memory_of("gb")("16"), memory_of("B")(17179869184), memory_of("gb")("512M")
    (16384, 16384, 512)
    """

    def parse(cell: Any) -> int | None:
        if isinstance(cell, str) and (match := _MEMORY.match(cell.strip())):
            mib = float(match[1]) * _MIB[match[2].upper()]
            return round(mib) if mib <= MAX_AMOUNT else None
        number = _decimal(cell)
        if number is None or number < 0:
            return count_of(cell)
        if unit is None:
            return int(number) if number < MOST_MEMORY else None
        mib = float(number) * _MIB[MEMORY[unit.lower()]]
        return round(mib) if mib <= MAX_AMOUNT else None

    return parse


def word_of(cell: Any) -> str:
    """Return the name in a cell; an empty text for None, NaN or -1. Outer blanks and a fraction of zero are left out.

    >>> word_of(" eve "), word_of(-1), word_of("nan"), word_of(17.0)
    ('eve', '', 'nan', '17')
    """
    if cell is None or cell in (UNKNOWN, "-1") or is_nan(cell):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
