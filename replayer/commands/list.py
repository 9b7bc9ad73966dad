"""List the names that a SPEC or option can use: `shadowtime list`."""

from typing import Annotated

import typer

from shadowtime.replayer.options import KINDS
from shadowtime.shared.cli import application, lasting_imports


def list_names(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help=f"One of {', '.join(KINDS)}, orders; by default all.")
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A name of that kind: show its keys.")] = None,
) -> None:
    """List all policies, predictors, adjusters, bounders, sources and orders, or one of them with its keys."""
    with lasting_imports():
        from shadowtime.replayer.presentation import print_names
    print_names(kind, name)


app = application(list_names)
