"""Grids in words: `{srf,saf}` and `{20h..100h step 10h}` in a SPEC, `80..160 step 8` for sizes and loads."""

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import product

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote

MAX_VALUES = 10_000
"""Maximum number of values of a range, and of SPECs of a grid."""

UNITS = {"": 1, "s": 1, "min": 60, "h": 3_600, "d": 86_400}
PLAIN = r"\d+(?:\.\d+)?"
UNIT = "|".join(sorted(UNITS, reverse=True))
NUMBER = rf"({PLAIN})({UNIT})"
RANGE = re.compile(rf"\s*{NUMBER}\s*\.\.\s*{NUMBER}\s*(?:step\s+{NUMBER}\s*)?\Z")
DURATION = re.compile(rf"{NUMBER}\Z")
BRACES = re.compile(r"\{([^{}]*)\}")
EXAMPLE = "expected {srf,saf} or {20h..100h step 10h}"


def _seconds(number: str, unit: str) -> Decimal:
    return Decimal(number) * UNITS[unit]


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"


def values_of(text: str) -> list[str]:
    """Return the values of a range or of a list with commas. Durations with a unit are turned into seconds.

    The last value of a range is at most its end. Without a step, the step is 1, in the unit of the end.

    Raise `SettingsError` if the text is neither, or a range is empty or too long.

    >>> values_of("80..160 step 40"), values_of("srf, saf"), values_of("20h..22h")
    (['80', '120', '160'], ['srf', 'saf'], ['72000', '75600', '79200'])
    """
    if ".." not in text:
        values = [value.strip() for value in text.split(",")]
        if not all(values):
            raise SettingsError(f"{quote(text)}: a value is empty; {EXAMPLE}")
        matches = [DURATION.match(value) for value in values]
        return [
            _plain(_seconds(*match.groups())) if match and match[2] else value
            for value, match in zip(values, matches, strict=True)
        ]

    if (match := RANGE.match(text)) is None:
        raise SettingsError(f"{quote(text)}: not a range of numbers; expected FIRST..LAST or FIRST..LAST step STEP")
    first, last = _seconds(match[1], match[2]), _seconds(match[3], match[4])
    step = _seconds(match[5], match[6]) if match[5] else _seconds("1", match[4])
    if step <= 0 or last < first:
        raise SettingsError(
            f"{quote(text)}: the range is empty; its end must not be below its beginning, nor its step 0"
        )
    count = int((last - first) / step) + 1
    if count > MAX_VALUES:
        raise SettingsError(f"{quote(text)}: {count:,} values; at most {MAX_VALUES:,} are allowed: take a larger step")
    return [_plain(first + place * step) for place in range(count)]


def specs_of(grid: str) -> list[str]:
    """Return the SPECs of a grid: one for each combination of the values in braces, the last braces fastest.

    `{seed}` is unchanged, because it stands for the seeds of a campaign.

    Raise `SettingsError` if braces do not match or are nested, a range is malformed, or the grid is too large.

    >>> specs_of("easy:queue={srf,saf},threshold={10h..20h step 10h}")[1:3]
    ['easy:queue=srf,threshold=72000', 'easy:queue=saf,threshold=36000']
    """
    parts = BRACES.split(grid)
    texts, braces = parts[::2], parts[1::2]
    if any("{" in text or "}" in text for text in texts):
        raise SettingsError(f"{quote(grid)}: unmatched or nested braces; {EXAMPLE}")
    every: list[Sequence[str]] = [["{seed}"] if inner == "seed" else values_of(inner) for inner in braces]
    count = 1
    for values in every:
        count *= len(values)
    if count > MAX_VALUES:
        raise SettingsError(f"{quote(grid)}: {count:,} SPECs; at most {MAX_VALUES:,} are allowed: take larger steps")
    return [
        "".join(part for pair in zip(texts, [*chosen, ""], strict=True) for part in pair) for chosen in product(*every)
    ]
