"""The catalogue of everything that a user can name: `shadowtime list`."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from shadowtime.replayer.options import KINDS
from shadowtime.replayer.simulation import SOURCES
from shadowtime.services.catalogue import REGISTRIES, SpecKey, entries, sentence_of
from shadowtime.services.scheduler import ORDERS
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.plugins import Plugins
from shadowtime.shared.quoting import quote

KEY = re.compile(r",(?=\w+=)")
"""A comma between two keys of a SPEC. The table adds a space there, so that it can wrap. A quoted SPEC may have it."""

Entry = tuple[str, str, str, list[SpecKey]]

LISTED = KINDS | {"orders": "order"}
"""Kinds that are listed; orders are values of the keys `queue` and `candidates`."""


def everything() -> list[Entry]:
    """Return the option, name, summary sentence and keys of every component and mode."""
    return [*entries(), *(("mode", name, sentence_of(source), []) for name, source in SOURCES.items())]


def orders() -> list[Entry]:
    """Return the same tuple as `everything` for each order of waiting jobs."""
    return [("order", name, sentence_of(key), []) for name, key in ORDERS.items()]


def classes_of(kind: str) -> Plugins[Any]:
    """Return the classes of a kind, a key of `LISTED`, by their names; for `orders`, the functions."""
    if kind == "orders":
        return ORDERS
    return SOURCES if kind == "sources" else REGISTRIES[KINDS[kind]].classes


def faults() -> list[str]:
    """Return a line for each installed plug-in that cannot be used."""
    return [line for kind in LISTED for line in classes_of(kind).errors()]


def print_catalogue(names: Sequence[str]) -> None:
    """Print every name that a SPEC can use. If `names` is not empty, print only those, with their keys.

    Raise `SettingsError` if a name is unknown.
    """
    entries = everything()
    if unknown := set(names) - {name for _, name, _, _ in entries}:
        raise SettingsError(f"--list: unknown name {', '.join(sorted(unknown))}; --list without a name shows all")
    console = Console(highlight=False, markup=False, emoji=False)
    for option in KINDS.values():
        chosen = [entry for entry in entries if entry[0] == option and (not names or entry[1] in names)]
        if chosen:
            console.print(f"--{option} {'NAME' if option == 'mode' else 'SPEC'}")
            console.print(_table(chosen, with_keys=bool(names)))

    _warn()
    if not names:
        console.print("A SPEC is NAME or NAME:key=value,…  The keys of each: --list NAME …")


def print_names(kind: str | None, name: str | None) -> None:
    """Print the names of a kind, or of all kinds if `kind` is None. With `name`, print only that name, with its keys.

    Raise `SettingsError` if the kind or the name is unknown.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    _warn()
    entries = [*everything(), *orders()]
    of_kind = {kind: [entry for entry in entries if entry[0] == option] for kind, option in LISTED.items()}
    if kind is None:
        rows = ((kind, ", ".join(entry[1] for entry in known)) for kind, known in of_kind.items())
        console.print(_grid(rows))
        console.print("One kind: shadowtime list KIND; one of it, with its keys: shadowtime list KIND NAME")
        return

    if kind not in LISTED:
        raise SettingsError(f"unknown kind {quote(kind)}; known: {', '.join(LISTED)}")
    chosen = [entry for entry in of_kind[kind] if name in (None, entry[1])]
    if not chosen:
        known = ", ".join(entry[1] for entry in of_kind[kind])
        raise SettingsError(f"there is no {quote(name or '')} among the {kind}; known: {known}")
    console.print(_table(chosen, with_keys=name is not None))


def _warn() -> None:
    for line in faults():
        typer.echo(f"warning: {line}", err=True)


def _table(chosen: Iterable[Entry], *, with_keys: bool) -> Table:
    rows = []
    for _, name, sentence, keys in chosen:
        rows.append((f"  {name}", sentence))
        rows += [(f"    {key.name}={key.default}", key.description) for key in keys if with_keys]
    return _grid(rows)


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, KEY.sub(", ", text))
    return table
