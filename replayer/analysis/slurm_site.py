"""Export of the settings of a live Slurm into a file: its commands are run, and names become numbers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shadowtime.services.follower import COMMANDS, Commands, Site, site_of
from shadowtime.shared.accounting import Names, read_names, read_parts
from shadowtime.shared.output import require_places, result_file


async def asked(commands: Commands) -> dict[str, str]:
    """Run all of Slurm's `COMMANDS`, and return the output of each by its name in `COMMANDS`.

    Raise `FollowError` if a command fails. The error has the message of the command.
    """
    return {name: await commands.text(*command) for name, command in COMMANDS.items()}


def site_in(texts: Mapping[str, str], pools: Path, names: Names) -> Site:
    """Return a site's settings from the output of its commands. Write its nodes and partitions to the file `pools`."""
    with result_file(pools) as file:
        file.write(f"{texts['nodes']}\n{texts['partitions']}\n".encode())
    return site_of(texts, read_parts(pools), names)


def as_toml(site: Site, names: Names) -> str:
    """Return the text of the settings file, with comments that map numbers to names."""
    lines = [*(f"# not modelled: {note}" for note in site.notes), *toml_of(site.keys)]
    for kind in ("user", "account", "partition", "qos"):
        listed = ", ".join(f"{number} {name}" for name, number in names.of[kind].items())
        lines.append(f"# {kind}: {listed or 'none'}")
    return "\n".join([*lines, ""])


def toml_of(keys: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a settings file for these keys, as TOML."""
    for key, value in keys.items():
        if isinstance(value, list):
            yield from (f"{key} = [", *(f"    {row}," for row in value), "]")
        else:
            yield f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


async def write_site(commands: Commands, output: Path, pools: Path, names_file: Path, key_file: Path | None) -> Site:
    """Query a Slurm, and write three files: its settings, its pools and the numbers of names. Return the site.

    With a key file, names are written as keyed hashes.

    Raises
    ------
    SettingsError
        If two of these files are the same, or one is the key file.
    FollowError
        If a command of Slurm fails.
    """
    require_places([output, pools, names_file], [key_file])
    names = read_names(names_file, key_file)
    site = site_in(await asked(commands), pools, names)
    names.write(names_file)
    with result_file(output) as file:
        file.write(as_toml(site, names).encode())
    return site
