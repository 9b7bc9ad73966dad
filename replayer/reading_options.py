"""Options of every command that reads logs, for information that an accounting file or a table lacks."""

from pathlib import Path
from typing import Annotated

import typer

Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=COLUMN,…", help="Columns of a table by our names, as in submit=submitted_at."),
]
TimeZone = Annotated[
    str | None, typer.Option(metavar="ZONE", help="Of dates that tell of none, as Europe/Berlin; else UTC.")
]
Pools = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Pools of the machine: TOML, or output of scontrol show node.")
]
NamesFile = Annotated[
    Path | None,
    typer.Option("--names", metavar="FILE.json", help="Where names and their numbers are kept; else nowhere."),
]
NamesKey = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A key: names are kept as hashes made with it, not as they are.")
]
