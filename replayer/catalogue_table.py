"""Everything that a SPEC can name, as a table for people."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from shadowtime.replayer.sources import SOURCES
from shadowtime.services.catalogue import entries, sentence_of
from shadowtime.shared.errors import SettingsError


def print_catalogue(names: Sequence[str]) -> None:
    """Print everything that a SPEC can name, or the keys of some of it.

    Raises
    ------
    SettingsError
        If there is no such name.
    """
    found = list(entries())
    found += [("mode", name, sentence_of(source), []) for name, source in SOURCES.items()]
    if unknown := set(names) - {name for _, name, _, _ in found}:
        raise SettingsError(f"--list {', '.join(sorted(unknown))}: there is no such name; see --list")
    console = Console(highlight=False, markup=False)
    for option, of_option in groupby(found, lambda entry: entry[0]):
        chosen = [entry for entry in of_option if not names or entry[1] in names]
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for _, name, sentence, keys in chosen:
            table.add_row(f"  {name}", sentence)
            for key in keys if names else ():
                table.add_row(f"    {key.name}={key.default}", key.description)
        if chosen:
            console.print(f"--{option} {'NAME' if option == 'mode' else 'SPEC'}")
            console.print(table)
    if not names:
        console.print("A SPEC is NAME or NAME:key=value,…  The keys of each: --list NAME …")
