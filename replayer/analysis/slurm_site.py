"""Write what a live Slurm is set to into a file: its commands asked, names made numbers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shadowtime.services.follower import COMMANDS, Commands, Site, site_of
from shadowtime.shared.accounting import Names, read_names, read_parts
from shadowtime.shared.output import result_file


async def asked(commands: Commands) -> dict[str, str]:
    """Return what each command prints.

    Raises
    ------
    FollowError
        If one fails; says what it said.
    """
    return {name: await commands.text(*command) for name, command in COMMANDS.items()}


def site_in(texts: Mapping[str, str], pools: Path, names: Names) -> Site:
    """Return the settings of a site; its pools, as replays number them, are written to a file."""
    with result_file(pools) as file:
        file.write(f"{texts['nodes']}\n{texts['partitions']}\n".encode())
    return site_of(texts, read_parts(pools), names)


def as_toml(site: Site, names: Names) -> str:
    """Return a site as a file has it, with whose numbers they are."""
    lines = [*(f"# not modelled: {note}" for note in site.notes), *toml_of(site.keys)]
    for kind in ("user", "account", "partition", "qos"):
        listed = ", ".join(f"{number} {name}" for name, number in names.of[kind].items())
        lines.append(f"# {kind}: {listed or 'none'}")
    return "\n".join([*lines, ""])


def toml_of(keys: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of keys as a file has them."""
    for key, value in keys.items():
        if isinstance(value, list):
            yield from (f"{key} = [", *(f"    {row}," for row in value), "]")
        else:
            yield f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


async def write_site(commands: Commands, output: Path, pools: Path, names_file: Path, key_file: Path | None) -> Site:
    """Ask a Slurm, and write its settings, its pools and the numbers of names."""
    names = read_names(names_file, key_file)
    site = site_in(await asked(commands), pools, names)
    names.write(names_file)
    with result_file(output) as file:
        file.write(as_toml(site, names).encode())
    return site
