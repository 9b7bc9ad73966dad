"""Export the settings of a Slurm: `shadowtime slurm-site -o FILE --pools FILE --names FILE`."""

from pathlib import Path
from typing import Annotated

import typer

from shadowtime.shared.cli import application, lasting_imports


def command(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File for the settings, for slurm:site=FILE.")
    ],
    pools: Annotated[Path, typer.Option(metavar="FILE", help="File for its nodes and partitions, for replay --pools.")],
    names: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File for the numbers of names; an existing file is extended, as by replay."),
    ],
    names_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Key file: names are stored as hashes, as by replay and follow.")
    ] = None,
    via: Annotated[str, typer.Option(metavar="COMMAND", help="Prefix of Slurm's commands, such as 'ssh login'.")] = "",
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="Timeout of one command.")] = 60.0,
) -> None:
    """Read the settings of a Slurm, for the policy slurm. Nothing is changed in Slurm."""
    with lasting_imports():
        import asyncio

        from shadowtime.replayer.analysis import write_site
        from shadowtime.services.follower import Commands, words_of

    site = asyncio.run(write_site(Commands(words_of(via), timeout), output, pools, names, names_key))
    for note in site.notes:
        typer.echo(f"not modelled: {note}", err=True)


app = application(command)
