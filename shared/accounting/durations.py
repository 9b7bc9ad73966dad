"""Durations as Slurm and PBS write them."""

from functools import lru_cache

from shadowtime.shared.accounting.instants import whole_number
from shadowtime.shared.bounds import MAX_DURATION


@lru_cache(maxsize=65_536)
def seconds_of(text: str) -> int | None:
    """Return the seconds of [[HOURS:]MINUTES:]SECONDS or DAYS-HOURS[:MINUTES[:SECONDS]]; None for other texts.

    Torque also writes DAYS:HOURS:MINUTES:SECONDS. A fraction of a second is dropped. None also above `MAX_DURATION`.

    >>> seconds_of("1-02:00:00"), seconds_of("1-12"), seconds_of("05:30.250"), seconds_of("1:02:00:00"), seconds_of("x")
    (93600, 129600, 330, 93600, None)
    """
    days, dash, rest = text.strip().rpartition("-")
    rest, point, fraction = rest.partition(".")
    if point and fraction and not fraction.isdecimal():
        return None
    parts = [whole_number(part) for part in (days or "0", *rest.split(":"))]
    if None in parts or len(parts) > (4 if dash else 5) or (dash and not days):
        return None
    day, *clock = (part or 0 for part in parts)
    if dash:
        clock += [0] * (3 - len(clock))
    seconds = 86_400 * day
    for part, unit in zip(reversed(clock), (1, 60, 3600, 86_400), strict=False):
        seconds += part * unit
    return seconds if seconds <= MAX_DURATION else None
