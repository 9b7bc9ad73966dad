"""Instants as accounting files write them: seconds of Unix, or dates with or without a zone."""

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.wording import quoted

UNKNOWN = -1
"""In the place of a number that the file does not tell."""

UNTOLD = {"", "unknown", "none", "n/a", "(null)", "invalid"}
"""What files write in its place, in small letters."""

MAX_UNIX = 253_402_300_799
"""The last second of the year 9999."""


def zone_of(name: str | None) -> tzinfo:
    """Return a time zone by its name; UTC without one.

    Raises
    ------
    SettingsError
        If there is none of that name.
    """
    try:
        return UTC if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(
            f"time zone {quoted(name or '')} is not known; expected one such as Europe/Berlin"
        ) from None


class Instants:
    """Reads instants; remembers whether any came without a zone.

    Parameters
    ----------
    zone
        Of dates that tell of none.

    Examples
    --------
    >>> read = Instants(zone_of("Europe/Berlin"))
    >>> read("1795325473"), read("2026-11-22T05:31:13"), read("2026-11-22T05:31:13+0000"), read("Unknown")
    (1795325473, 1795321873, 1795325473, -1)
    >>> read("22.11.2026 05:31") is None
    True
    """

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self.without_zone = 0
        self._local = lru_cache(maxsize=4096)(self._dated)

    def __call__(self, text: str) -> int | None:
        """Return the second of Unix that a text tells, `UNKNOWN` if it says that it does not; None for anything else.

        Of an hour that summer time gives twice the first is taken, see `unfolded`.
        """
        if text.isdecimal():
            return int(text) if int(text) <= MAX_UNIX else None
        return UNKNOWN if text.strip().lower() in UNTOLD else self._local(text)

    def all(self, texts: Sequence[str]) -> list[int | None]:
        """Return what each of some texts tells."""
        return [int(text) if text.isdecimal() and len(text) < 12 else self(text) for text in texts]

    def _dated(self, text: str) -> int | None:
        try:
            date = datetime.fromisoformat(text.strip())
        except ValueError:
            return None
        if date.tzinfo is None:
            self.without_zone += 1
            date = date.replace(tzinfo=self.zone)
        seconds = date.timestamp()
        return int(seconds) if 0 <= seconds <= MAX_UNIX else None

    def unfolded(self, instant: int, earliest: int) -> int:
        """Return an instant read from a local date, an hour later if only then it is not before `earliest`.

        >>> read = Instants(zone_of("Europe/Berlin"))
        >>> start, end = read("2026-10-25T02:50:00"), read("2026-10-25T02:10:00")
        >>> read.unfolded(end, start) - start
        1200
        """
        if instant >= earliest or instant == UNKNOWN:
            return instant
        local = datetime.fromtimestamp(instant, self.zone)
        again = int(local.replace(fold=1).timestamp())
        return again if again >= earliest else instant


def seconds_of(text: str) -> int | None:
    """Return the seconds that a span of the form [DAYS-][[HOURS:]MINUTES:]SECONDS tells; None for anything else.

    >>> seconds_of("1-02:00:00"), seconds_of("00:00:10"), seconds_of("05:30.250"), seconds_of("soon")
    (93600, 10, 330, None)
    """
    days, dash, rest = text.strip().rpartition("-")
    parts = rest.split(".")[0].split(":")
    if not (all(part.isdecimal() for part in parts) and (days.isdecimal() or not dash) and len(parts) <= 3):
        return None
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + int(part)
    return seconds + 86_400 * int(days or 0)
