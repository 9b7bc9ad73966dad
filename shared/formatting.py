"""Times, shares and work as text for people."""

import numpy as np

DAY = 86_400
FAR = 180 * DAY
"""Seconds from the current day beyond which a date has its year."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def clock(second: int, unix_start: int = 0, today: int | None = None) -> str:
    """Return a second of a log as day and time of day. The day is a date in UTC, or the days since the log's beginning.

    Parameters
    ----------
    second
        Second on the cluster's own time line.
    unix_start
        Unix time of second 0; 0 if unknown.
    today
        A second of the current day. A time on that day is returned without the day. A date that is more than `FAR` from
        it has its year.

    >>> clock(93_784), clock(-1), clock(93_784, today=93_000)
    ('1 d 02:03:04', '-1 d 23:59:59', '02:03:04')
    >>> clock(93_784, 843_436_800), clock(93_784, 843_436_800, today=93_000)
    ('24 Sep 02:03:04', '02:03:04')
    >>> clock(400 * DAY, 843_436_800, today=0)
    '28 Oct 1997 00:00:00'
    """
    at = unix_start + second
    days, rest = divmod(at, DAY)
    time = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    if today is not None and (unix_start + today) // DAY == days:
        return time
    if not unix_start:
        return f"{days} d {time}"
    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    of_year = f" {year}" if today is not None and abs(second - today) > FAR else ""
    return f"{int(day)} {MONTHS[int(month) - 1]}{of_year} {time}"


def utc_clock(second: int, unix_start: int) -> str:
    """Return a second of a log as in `clock`, with the time zone if it is a date.

    >>> utc_clock(93_784, 0), utc_clock(93_784, 843_436_800)
    ('1 d 02:03:04', '24 Sep 02:03:04 UTC')
    """
    return clock(second, unix_start) + (" UTC" if unix_start else "")


def counted(count: int, of: str) -> str:
    """Return a count and a noun as text. The noun gets an "s", unless the count is 1.

    >>> counted(1, "day"), counted(0, "job"), counted(1_200, "job")
    ('1 day', '0 jobs', '1,200 jobs')
    """
    return f"{count:,} {of}{'s' * (count != 1)}"


def duration(seconds: float | None) -> str:
    """Return a duration as text, in hours, minutes or seconds; "-" for None.

    >>> duration(93784), duration(90), duration(5), duration(None)
    ('26.1 h', '1.5 min', '5 s', '-')
    """
    if seconds is None:
        return "-"
    if seconds >= 3600:
        return f"{seconds / 3600:,.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def hours_minutes(seconds: int) -> str:
    """Return a requested time as hours and minutes, with seconds unless they are 0.

    >>> hours_minutes(14_400), hours_minutes(100), hours_minutes(93_784)
    ('4:00 h', '0:01:40 h', '26:03:04 h')
    """
    rest = f":{seconds % 60:02}" if seconds % 60 else ""
    return f"{seconds // 3600}:{seconds % 3600 // 60:02}{rest} h"


def signed_duration(seconds: float) -> str:
    """Return a difference of times as text, with its sign.

    >>> signed_duration(90), signed_duration(-5)
    ('+1.5 min', '-5 s')
    """
    return f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"


def percent(share: float, form: str = ".1f") -> str:
    """Return a share in 0 to 1 as percent, formatted by a format specification.

    >>> percent(0.951), percent(0.5, ".0f"), percent(0.12345, ".3g")
    ('95.1 %', '50 %', '12.3 %')
    """
    return f"{100 * share:{form}} %"


def slowdown(value: float | None) -> str:
    """Return a bounded slowdown as text.

    >>> slowdown(1234.567), slowdown(None)
    ('1,234.57', '-')
    """
    return "-" if value is None else f"{value:,.2f}"


def work(processor_seconds: float) -> str:
    """Return work, in processor seconds, as text in a suitable unit.

    >>> work(864_000), work(5400), work(90)
    ('10.0 processor days', '1.5 processor hours', '90 processor seconds')
    """
    for unit, name in ((DAY, "days"), (3600, "hours")):
        if processor_seconds >= unit:
            return f"{processor_seconds / unit:,.1f} processor {name}"
    return f"{processor_seconds:.0f} processor seconds"
