"""Instants as accounting files write them: Unix times in seconds, or dates with or without a time zone."""

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.bounds import MAX_INTEGER
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote

NOT_SET = {"", "unknown", "none", "n/a", "(null)", "invalid"}
"""Words that files write in place of a missing value, in lower case."""

DIGITS = len(str(MAX_INTEGER))

MAX_UNIX = 253_402_300_799
"""The last second of the year 9999."""


def zone_of(name: str | None) -> tzinfo:
    """Return the time zone called `name`; UTC if it is None.

    Raises
    ------
    SettingsError
        If no time zone has that name.
    """
    try:
        return UTC if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(f"time zone {quote(name or '')} is not known; expected one such as Europe/Berlin") from None


class Instants:
    """Parser of instants. It counts the dates that have no time zone.

    Parameters
    ----------
    zone
        Time zone of dates that do not name one.

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

    @property
    def assumed(self) -> bool:
        """Whether UTC was assumed: some dates had no time zone, and the user named none."""
        return self.without_zone > 0 and self.zone is UTC

    def __call__(self, text: str) -> int | None:
        """Return the Unix time that a text states, in seconds.

        `UNKNOWN` if the text stands for a missing value, None if it is unreadable. At the end of summer time one local
        hour occurs twice. A date in it is taken for the first occurrence, see `twice`.
        """
        if (seconds := whole_number(text)) is not None:
            return seconds if seconds <= MAX_UNIX else None
        return UNKNOWN if text.strip().lower() in NOT_SET else self._local(text)

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

    def twice(self, instant: int) -> int:
        """Return the last instant that has the same local time as `instant`.

        The end of summer time repeats one local hour. For an instant in this hour, the result is one hour later. Any
        other instant is returned unchanged.

        >>> read = Instants(zone_of("Europe/Berlin"))
        >>> [read.twice(read(date)) - read(date) for date in ("2026-10-25T02:10:00", "2026-10-25T03:10:00")]
        [3600, 0]
        """
        try:
            return int(datetime.fromtimestamp(instant, self.zone).replace(fold=1).timestamp())
        except (OverflowError, ValueError, OSError):
            return instant


def whole_number(text: str) -> int | None:
    """Return the whole number in a text of ASCII digits; None for other texts and for numbers above `MAX_INTEGER`.

    >>> whole_number("17"), whole_number("9007199254740993"), whole_number("1.0"), whole_number("\u0661")
    (17, None, None, None)
    """
    if not (text.isdecimal() and text.isascii() and len(text) <= DIGITS):
        return None
    number = int(text)
    return number if number <= MAX_INTEGER else None
