"""Instants as accounting files write them: Unix times, or dates with or without a time zone."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from shadowtime.shared.accounting.reading import UNKNOWN
from shadowtime.shared.bounds import MAX_INTEGER
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.kernels import Integers
from shadowtime.shared.quoting import quote

NOT_SET = {
    *("", "unknown", "none", "n/a", "(null)", "invalid", "nat", "nan", "na", "<na>", "null", "nil", "-", "-1", "-1.0"),
    *("#n/a", "#na", "#n/a n/a", "n.a."),  # of spreadsheets
    *("\\n", "0000-00-00", "0000-00-00 00:00:00"),  # of MySQL
}
"""Texts that files have in place of a missing value, in lower case."""

DIGITS = len(str(MAX_INTEGER))

MAX_UNIX = 253_402_300_799
"""The last second of the year 9999."""

NO_YEARS = 1, 1601, 1899, 1900, 1969, 9999
"""Years of dates that programs, databases and spreadsheets write for no date. 1969 is Unix time 0 in America."""

EARLIEST = 631_152_000
"""The Unix time of 1990. The jobs of all files are later."""

SCALED = EARLIEST, 4_102_444_800
"""Unix times of 1990 and of 2100, between which numbers in smaller units than seconds must lie."""

SMALLER = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3))
"""The smallest numbers that count as nanoseconds, microseconds and milliseconds, each with the number of its units in a
second. 10^11 seconds are the year 5138; 10^11 milliseconds are the year 1973."""

COMPACT = ((19 * 10**12, 21 * 10**12, "%Y%m%d%H%M%S"), (19 * 10**10, 21 * 10**10, "%Y%m%d%H%M"))
"""Ranges of numbers that are dates without separators, such as 20261122053113: first number, end, format of the date.
As milliseconds, they would be of 1976, or of the years 2572 to 2635."""

_SLASHED = re.compile(
    r"(\d{1,2})([/.])(\d{1,2})[/.](\d{4})(?:[ T,]+(\d{1,2}:\d\d(?::\d\d)?)(?:\.\d+)?( ?[AaPp][Mm])?)?\Z"
)
"""A date whose year comes last. The first two groups are day and month, or month and day."""

_DAY_OF_SPREADSHEET = re.compile(r"(3[6-9]|4[0-9]|5[0-5])[0-9]{3}[.,][0-9]+\Z")
"""A date of 1998 to 2053 as spreadsheets store it: a day, counted from 1899, and a fraction."""

_ONE_DIGIT = re.compile(r"(?<=[- ])([0-9])(?=[-: ]|\Z)")
_NAMED_MONTHS = ("%a %b %d %H:%M:%S %Y", "%d-%b-%Y %H:%M:%S", "%d %b %Y %H:%M:%S")
"""Dates with the name of a month, as `ctime` and databases write them."""

_ZONE = re.compile(r"(.*\d:\d\d(?:[.,]\d+)?(?: ?[AaPp][Mm])?(?: ?[+-]\d\d:?\d\d)?) *([A-Z]{3,5})( \d{4})?\Z")
"""A date with the abbreviation of its time zone, such as CET, behind the time of day. Only the year may follow it."""

_OF_LOG = 10**8
"""Limit below which numbers are no Unix times, but seconds of a log or missing values."""

_TYPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\Z")
"""A date as Parquet and data frames state it."""

_CLOCK = {f"{minute:02}:{second:02}": 60 * minute + second for minute in range(60) for second in range(60)}


def zone_of(name: str | None) -> tzinfo:
    """Return the time zone called `name`; UTC if it is None.

    Raise `SettingsError` if no time zone has that name.
    """
    try:
        return UTC if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(f"time zone {quote(name or '')} is not known; expected one such as Europe/Berlin") from None


class Instants:
    """Parser of instants. It notes whether dates have no time zone.

    Parameters
    ----------
    zone
        Time zone of dates that do not name one. Dates may abbreviate its name; other abbreviations are unreadable,
        except UTC and GMT.
    date_format
        Format of dates as in `strptime`. `%Z` is such an abbreviation. None: ISO 8601, dates with the name of a month,
        and, once `learn_order` knows the order of day and month, dates with the year last.

    Examples
    --------
    >>> read = Instants(zone_of("Europe/Berlin"))
    >>> read("1795325473"), read("2026-11-22T05:31:13"), read("2026-11-22 05:31:13+0000"), read("Unknown")
    (1795325473, 1795321873, 1795325473, -1)
    >>> read("1795325473000"), read("1.795325473e9"), read("2026-11-22 05:31:13 UTC"), read("2026-11-22 06:31:13 CET")
    (1795325473, 1795325473, 1795325473, 1795325473)
    >>> read("22.11.2026 05:31") is None
    True
    >>> read.learn_order(["22.11.2026 05:31"])
    >>> read("22.11.2026 05:31")
    1795321860
    """

    def __init__(self, zone: tzinfo, date_format: str | None = None) -> None:
        self.zone = zone
        self.date_format = date_format
        self._of_digits = date_format not in (None, "%s") and f"{datetime(2026, 11, 22):{date_format}}".isdecimal()
        self.day_first: bool | None = None
        """Whether the day precedes the month in dates whose year comes last; None if unknown."""
        self.without_zone = 0
        """More than 0 if a date had no time zone."""
        self.absolute = False
        """Whether an instant needed no time zone: a Unix time, or a date that names a zone."""
        self._local = lru_cache(maxsize=4096)(self._dated)
        self._hours: dict[str, int | None] = {}

    @property
    def assumed(self) -> bool:
        """Whether UTC was assumed: some dates had no time zone, and the user named none."""
        return self.without_zone > 0 and self.zone is UTC

    def __call__(self, text: str) -> int | None:
        """Return the Unix time that a text states, in seconds.

        `UNKNOWN` if the text stands for a missing value, None if it is unreadable. At the end of summer time one local
        hour occurs twice. A date in this hour means its first occurrence; `twice` returns the second.
        """
        if (number := whole_number(text)) is not None and not self._of_digits:
            return self.of_number(number)
        if len(text) == 19 and self.date_format is None:  # mostly a date; it has no time zone
            clock, hour = _CLOCK.get(text[14:]), self._hour(text[:13])
            if clock is not None and hour is not None and text[13] == ":":
                self.without_zone += 1
                return hour + clock
        if (stripped := text.strip()) != text:
            return self(stripped)
        if text.lower() in NOT_SET:
            return UNKNOWN
        return self._number(text) if self.date_format is None and text[:1].isdecimal() else self._local(text)

    def learn_order(self, texts: Iterable[str]) -> None:
        """Find out whether day or month comes first in the dates whose year comes last, if there are such dates.

        Raise `TraceError` if all these dates fit both orders, if no order fits all of them, or if over nine tenths of
        the texts are days as spreadsheets count them.
        """
        if self.date_format is not None or self.day_first is not None:
            return
        texts = list(texts)
        days = [text for text in texts if _DAY_OF_SPREADSHEET.match(text.strip())]
        if 10 * len(days) > 9 * sum(text.strip().lower() not in NOT_SET for text in texts):
            raise TraceError(
                f"dates such as {quote(days[0])} are days as spreadsheets count them; format the cells as dates, "
                "YYYY-MM-DD HH:MM:SS"
            )
        matches = [match for text in texts if (match := _SLASHED.match(_zone_apart(text.strip())[0]))]
        if not matches:
            return
        day_first, month_first = (any(int(match[part]) > 12 for match in matches) for part in (1, 3))
        if day_first == month_first:
            why = "are ambiguous: day and month may be in either order" if not day_first else "have no common order"
            raise TraceError(
                f"dates such as {quote(matches[0][0])} {why}; state their format, for example "
                "--date-format '%d/%m/%Y %H:%M:%S'"
            )
        self.day_first = day_first
        self._local.cache_clear()

    def of_number(self, number: int) -> int | None:
        """Return the Unix time that a whole number states, in seconds; None if it is unreadable.

        >>> read = Instants(zone_of(None))
        >>> read.of_number(20261122053113), read.of_number(1795325473000), read.of_number(20261322053113)
        (1795325473, 1795325473, None)
        """
        for least, beyond, order in COMPACT:
            if least <= number < beyond:
                return self._unix(_in_order(str(number), order))
        self.absolute = self.absolute or number >= _OF_LOG
        return in_seconds(number)

    def of_numbers(self, numbers: Integers) -> Integers | None:
        """Return the Unix times of numbers of at most 15 digits, shape (n,), in seconds.

        None if `of_number` must read them one by one: some of them may be dates, or are unreadable.
        """
        if self._of_digits or any(((numbers >= least) & (numbers < beyond)).any() for least, beyond, _ in COMPACT):
            return None
        self.absolute = self.absolute or bool((numbers >= _OF_LOG).any())
        return in_seconds_all(numbers)

    def of_local(self, seconds: Integers) -> Integers | None:
        """Return the Unix times of local times, shape (n,). Local times are the seconds since 1970 on the local clock.

        None if the user has stated a format of dates, or if the clocks change within the hour of a local time.

        >>> Instants(zone_of("Europe/Berlin")).of_local(np.array([1_795_325_473])).tolist()
        [1795321873]
        """
        if self.date_format is not None:
            return None
        hours, places = np.unique(seconds // 3600, return_inverse=True)
        begun = [self._hour(f"{datetime.fromtimestamp(3600 * hour, UTC):%Y-%m-%dT%H}") for hour in hours.tolist()]
        if None in begun:
            return None
        self.without_zone += len(seconds)
        return np.array(begun, dtype=np.int64)[places] + seconds % 3600

    def _hour(self, text: str) -> int | None:
        """Return the first second of a local hour; None if the text is no hour, or the clocks change within it."""
        if text not in self._hours:
            first, last = (self._unix(_iso(f"{text}:{rest}")) for rest in ("00:00", "59:59"))
            self._hours[text] = first if None not in (first, last) and last - first == 3599 else None  # type: ignore[operator]
        return self._hours[text]

    def _number(self, text: str) -> int | None:
        """Return the instant of a number with a fraction or exponent, or of a date; None if it is unreadable."""
        if text.isdecimal() and text.isascii() and len(text) <= 19:  # nanoseconds are beyond `MAX_INTEGER`
            self.absolute = True
            return in_seconds(int(text))
        try:
            number = float(text) if text.isascii() and "_" not in text else None
        except ValueError:
            number = None
        return self._local(text) if number is None else self.of_number(int(number)) if 0 <= number < 10**19 else None

    def _dated(self, text: str) -> int | None:
        text, zone, order = text.strip(), "", self.date_format
        if order is None or "%Z" in order:
            text, zone = _zone_apart(text)
        if order is not None:
            date = _in_order(text, " ".join(order.replace("%Z", "").split()) if zone else order)
            if not zone and ("%Z" in order or date is None):  # dates of Parquet need no format
                date = _iso(text) if _TYPED.match(text) else None
            return self._unix(date, zone)
        match = _SLASHED.match(text)
        if match is not None and self.day_first is None:
            return None
        return self._unix(_iso(text) if match is None else self._slashed(match), zone)

    def _slashed(self, match: re.Match[str]) -> datetime | None:
        first, _, second, year, clock, half = match.groups()
        day, month = (first, second) if self.day_first else (second, first)
        order = "%d %m %Y %I:%M:%S %p" if half else "%d %m %Y %H:%M:%S"
        clock = clock or "00:00"
        clock += ":00" if clock.count(":") == 1 else ""
        return _in_order(f"{day} {month} {year} {clock} {(half or '').strip()}".strip(), order)

    def _unix(self, date: datetime | None, zone: str = "") -> int | None:
        """Return the Unix time of a date, `UNKNOWN` if it stands for no date; None if its zone is unknown."""
        if date is None or date.year in NO_YEARS:
            return None if date is None else UNKNOWN
        if date.tzinfo is not None or zone:
            self.absolute = True
        else:
            self.without_zone += 1
        if date.tzinfo is None:
            absolute = zone in ("UTC", "GMT")
            dates = (date.replace(tzinfo=UTC if absolute else self.zone, fold=fold) for fold in (0, 1))
            date = next((local for local in dates if absolute or zone in ("", local.tzname())), None)
        try:
            seconds = -1.0 if date is None else date.timestamp()
        except (OverflowError, ValueError):
            return None
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


def _zone_apart(text: str) -> tuple[str, str]:
    """Return a date without the abbreviation of its time zone, and the abbreviation; empty if there is none.

    >>> _zone_apart("2026-11-22 05:31:13 CET"), _zone_apart("22-NOV-2026 05:31:13")
    (('2026-11-22 05:31:13', 'CET'), ('22-NOV-2026 05:31:13', ''))
    """
    ends_in_year = text[-5:-4] == " "
    match = _ZONE.match(text) if ends_in_year or text[-1:].isupper() else None
    return (text, "") if match is None else (" ".join(f"{match[1]}{match[3] or ''}".split()), match[2])


def _in_order(text: str, order: str) -> datetime | None:
    """Return the date that a text states in a format of `strptime`; None if it has another form."""
    try:
        return datetime.strptime(text, order)
    except ValueError:
        return None


def _iso(text: str) -> datetime | None:
    """Return the date in a text in ISO 8601 or with the name of a month; None if it has another form."""
    text = re.sub(r" (?=[+-]\d\d(?::?\d\d)?\Z)", "", text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    try:  # slashes, or numbers of one digit
        return datetime.fromisoformat(_ONE_DIGIT.sub(r"0\1", text.replace("/", "-")))
    except ValueError:
        return next((date for order in _NAMED_MONTHS if (date := _in_order(text, order)) is not None), None)


def in_seconds(number: int) -> int | None:
    """Return a Unix time in seconds, from one in seconds, milliseconds, microseconds or nanoseconds.

    The size of the number shows its unit. None if the unit is below a second and the year is not within 1990 to 2099.

    >>> [in_seconds(number) for number in (1795325473, 1795325473999, 1795325473000000, 1795325473000000000)]
    [1795325473, 1795325473, 1795325473, 1795325473]
    >>> in_seconds(261122053113) is None  # in milliseconds, it would be of 1978
    True
    """
    for least, units in SMALLER:
        if number >= least:
            return number // units if SCALED[0] <= number // units < SCALED[1] else None
    return number


def in_seconds_all(numbers: Integers) -> Integers | None:
    """Return `in_seconds` of numbers of at most 15 digits, shape (n,); None if one of them is unreadable."""
    large = numbers >= SMALLER[-1][0]
    if not large.any():
        return numbers
    scaled = np.select([numbers >= least for least, _ in SMALLER], [numbers // units for _, units in SMALLER], numbers)
    return None if (large & ((scaled < SCALED[0]) | (scaled >= SCALED[1]))).any() else scaled


def whole_number(text: str) -> int | None:
    """Return the whole number in a text of ASCII digits; None for other texts and for numbers above `MAX_INTEGER`.

    >>> whole_number("17"), whole_number("9007199254740993"), whole_number("1.0"), whole_number("\u0661")
    (17, None, None, None)
    """
    if not (text.isdecimal() and text.isascii() and len(text) <= DIGITS):
        return None
    number = int(text)
    return number if number <= MAX_INTEGER else None
