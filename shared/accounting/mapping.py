"""The mapping of our names of fields to the columns of a file: `--columns submit=queued_at,limit=wanted:min`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shadowtime.shared.accounting.cells import STATED, UNITS
from shadowtime.shared.accounting.reading import NUMBERS, TEXTS
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import among, quote

INSTANTS = ("submit", "eligible", "start", "end", "handed_in")
SPANS = ("run_time", "suspended", "limit", "wait")
NAMES = (*NUMBERS, "wait", "handed_in", "state", *TEXTS, "cluster")
"""Names that `--columns` accepts."""

_IN_NAME = re.compile(r"(?:\A|[ _(\[])([a-zµ]+)[)\]]?\Z")


class Mapped(NamedTuple):
    """A column of a file; an empty name for none. `unit` is the unit of its numbers, if the user has stated it."""

    column: str
    unit: str | None = None

    @property
    def unit_in_name(self) -> str | None:
        """The unit of time at the end of the column's name; None if it is seconds, or there is none.

        >>> Mapped("timelimit_minutes").unit_in_name, Mapped("limit").unit_in_name, Mapped("wait (h)").unit_in_name
        ('minutes', None, 'h')
        """
        match = _IN_NAME.search(self.column.lower())
        unit = match[1] if match and match[1] != self.column.lower() else ""
        return unit if UNITS.get(unit, (1, 1)) != (1, 1) else None


def notes_on_units(columns: Mapping[str, Mapped]) -> list[str]:
    """Return a note for each column that is read in the unit at the end of its name."""
    return [
        f"{name} is read in {mapped.unit_in_name}, as the name of column {quote(mapped.column)} says; "
        f"--columns {name}={mapped.column}:s would read it in seconds"
        for name, mapped in columns.items()
        if name in (*SPANS, *INSTANTS) and mapped.unit is None and mapped.unit_in_name
    ]


def parse_columns(texts: Iterable[str]) -> dict[str, str]:
    """Return the columns by our names, from texts such as `submit=queued_at,limit=wanted:min,gpus=`.

    A column may have a unit behind a colon. An empty column means that the name is not read. Raise `SettingsError` if a
    text is malformed, or a name is unknown or has two columns.

    >>> parse_columns(["submit=queued_at,limit=wanted:min", "gpus="])
    {'submit': 'queued_at', 'limit': 'wanted:min', 'gpus': ''}
    """
    mapping: dict[str, str] = {}
    for text in texts:
        for pair in text.split(","):
            name, equals, column = pair.partition("=")
            if not equals or name not in NAMES:
                raise SettingsError(
                    f"--columns {quote(pair)}: expected NAME=COLUMN, NAME=COLUMN:UNIT or NAME=, with NAME one of "
                    f"{', '.join(NAMES)} and UNIT one of {', '.join(STATED)}"
                )
            if mapping.setdefault(name, column) != column:
                raise SettingsError(f"--columns: {name} has two columns, {mapping[name]!r} and {column!r}; name one")

    return mapping


def is_table(mapping: Mapping[str, str]) -> bool:
    """Return whether a mapping is for a table: the user names the columns of job numbers and submissions."""
    return bool(mapping.get("job_number") and mapping.get("submit"))


def resolved(mapping: Mapping[str, str], there: Sequence[str]) -> dict[str, Mapped]:
    """Return the mapped columns of a file whose columns have the names `there`. An empty column stands for none.

    Raise `SettingsError` if a name is unknown, the file has no such column, or a unit does not fit.

    >>> resolved({"limit": "wanted:min", "gpus": ""}, ["wanted"])
    {'limit': Mapped(column='wanted', unit='min'), 'gpus': Mapped(column='', unit=None)}
    """
    columns: dict[str, Mapped] = {}
    for name, text in mapping.items():
        if name not in NAMES:
            raise SettingsError(f"columns: unknown name {quote(name)}{among(name, NAMES)}")
        column, colon, unit = text.rpartition(":")
        if not text or text in there:
            columns[name] = Mapped(text)
        elif colon and column in there:
            if unit not in STATED or name not in (*INSTANTS, *SPANS):
                raise SettingsError(
                    f"--columns {quote(f'{name}={text}')}: expected a unit of time, one of {', '.join(STATED)}, "
                    f"for one of {', '.join((*INSTANTS, *SPANS))}"
                )
            columns[name] = Mapped(column, unit)
        else:
            raise SettingsError(f"no column {quote(text)} for {name}; name another, or leave it out with {name}=")
    return columns
