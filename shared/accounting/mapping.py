"""The mapping of our names of fields to the columns of a file: `--columns submit=queued_at,limit=wanted:min`."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from shadowtime.shared.accounting.cells import MEMORY, STATED, UNITS, spans_of
from shadowtime.shared.accounting.columns import as_it_is
from shadowtime.shared.accounting.instants import Instants
from shadowtime.shared.accounting.reading import NUMBERS, TEXTS
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import Integers
from shadowtime.shared.quoting import among, quote

INSTANTS = ("submit", "eligible", "start", "end", "handed_in")
SPANS = ("run_time", "suspended", "limit", "wait")
NAMES = (*NUMBERS, "wait", "handed_in", "state", "tres", *TEXTS, "cluster")
"""Names that `--columns` accepts."""

_LAST_TIME, _LAST_MEMORY = (
    re.compile(rf"(?:[ _(\[/-]|(?<=[a-z])(?=[A-Z]))((?i:{'|'.join(units)}))[)\]]?\Z") for units in (UNITS, MEMORY)
)
"""A unit as the last word of a column's name."""

_MINUTES_OF_SLURM = {"timelimitraw", "timelimit_raw"}
"""Names of columns that have minutes, as sacct prints them, in lower case."""


class Mapped(NamedTuple):
    """A column of a file; an empty name for none. `unit` is the unit of its numbers, if the user has stated it."""

    column: str
    unit: str | None = None

    def unit_in_name(self, name: str) -> str | None:
        """Return the unit at the end of the column's name, for one of our names; None without one, and for seconds.

        >>> [Mapped(text).unit_in_name("limit") for text in ("limit_minutes", "limit", "wait (h)", "TimelimitRaw")]
        ['minutes', None, 'h', 'min']
        >>> [Mapped(text).unit_in_name("limit") for text in ("wallTimeHours", "limit_sec", "hours", "Timelimit")]
        ['hours', None, None, None]
        >>> [Mapped(text).unit_in_name("memory") for text in ("memGiB", "mem_bytes", "mem (GB)", "ReqMem")]
        ['gib', 'bytes', 'gb', None]
        """
        if self.column.lower() in _MINUTES_OF_SLURM:
            return "min"
        match = (_LAST_MEMORY if name == "memory" else _LAST_TIME).search(self.column)
        unit = match[1].lower() if match else None
        return None if UNITS.get(unit or "s") == UNITS["s"] else unit

    def unit_of(self, name: str) -> str | None:
        """Return the unit of the column's numbers, stated or in its name; None if there is none."""
        return self.unit or self.unit_in_name(name)

    def at_once(self, name: str, instants: Instants) -> tuple[Callable[[Integers], Integers | None], ...]:
        """Return the functions that convert whole numbers, and local dates, of the column (`CellColumn.numbers`).

        There are none if the numbers have a unit.
        """
        if name == "memory" or self.unit_of(name) is not None:
            return ()
        if name in INSTANTS:
            return instants.of_numbers, instants.of_local
        return (spans_of if name in SPANS else as_it_is,)


def notes_on_units(columns: Mapping[str, Mapped]) -> list[str]:
    """Return a note for each column that is read in the unit at the end of its name."""
    return [
        f"{name} is read in {unit}, as the name of column {quote(mapped.column)} says; --columns "
        f"{name}={mapped.column}:{'M would read it in MiB' if name == 'memory' else 's would read it in seconds'}"
        for name, mapped in columns.items()
        if name in (*SPANS, *INSTANTS, "memory") and mapped.unit is None and (unit := mapped.unit_in_name(name))
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
                    f"{', '.join(NAMES)} and UNIT one of {', '.join(STATED)} (of memory: B, K, M, G, T)"
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
            if unit not in STATED if name in (*INSTANTS, *SPANS) else name != "memory" or unit.lower() not in MEMORY:
                raise SettingsError(
                    f"--columns {quote(f'{name}={text}')}: expected a unit of time, one of {', '.join(STATED)}, "
                    f"for one of {', '.join((*INSTANTS, *SPANS))}; or of memory, one of B, K, M, G, T, for memory"
                )
            columns[name] = Mapped(column, unit)
        else:
            raise SettingsError(f"no column {quote(text)} for {name}; name another, or leave it out with {name}=")
    return columns
