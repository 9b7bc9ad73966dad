"""Options of commands that read logs: how a file is read, what it lacks, and which jobs count."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.shared.cli import lasting_imports
from shadowtime.shared.errors import SettingsError

if TYPE_CHECKING:
    from shadowtime.shared.accounting import Reading

RewrittenRequests = Annotated[
    Requests,
    typer.Option(
        help="Rewrite requested times: to the run time (actual), at least to it (at-least-run), to twice as long "
        "(doubled), or to the longest run of the job's queue, which looks ahead (queue-maximum)."
    ),
]
TakenSizes = Annotated[Sizes, typer.Option(help="Whether jobs use the requested or the allocated processors.")]
TooLarge = Annotated[Oversized, typer.Option("--filter", help="What to do with jobs larger than the machine.")]
FirstJobs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs.")]
MachineSize = Annotated[int | None, typer.Option(metavar="N", min=1, help="Size of the machine; by default the log's.")]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options for reading a file, as typed on the command line. None means that an option is not given."""

    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN,…", help="Columns by our names, as in submit=t,limit=l:min; NAME= leaves NAME out."
        ),
    ] = None
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Columns of a published data set: see docs/datasets.md.")
    ] = None
    time_zone: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="Zone of dates that state none, such as Europe/Berlin; by default UTC."),
    ] = None
    pools: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pools of the machine: TOML, or output of scontrol show node.")
    ] = None
    names: Annotated[
        Path | None,
        typer.Option("--names", metavar="FILE.json", help="File to store names and their numbers in."),
    ] = None
    names_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Key file: names are stored as hashes made with it.")
    ] = None
    fields: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Fields of a file without a header, as in sacct -o A,B,…")
    ] = None
    delimiter: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text between two fields; detected by default.")
    ] = None
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="The cluster to read, if a file has several.")] = (
        None
    )
    date_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="How dates are written, in the codes of strptime.")
    ] = None
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Accept a file even if over a tenth of its rows cannot be read.")
    ] = False


def reading_of(options: ReadingOptions) -> "Reading":
    """Return the options for reading accounting files and tables. Raise `SettingsError` if one is invalid."""
    with lasting_imports():
        from shadowtime.shared.accounting import Reading

    typed = {field.name: getattr(options, field.name) for field in fields(ReadingOptions)}
    typed["fields"] = tuple((options.fields or "").split(",")) if options.fields else ()
    if options.delimiter == "":
        raise SettingsError("--delimiter: expected at least one character, found ''; leave it out to detect it")
    columns, preset = typed.pop("columns"), typed.pop("preset")
    if columns or preset:
        from shadowtime.shared.accounting import parse_columns, preset_columns  # here: few logs are tables

        typed["columns"] = (preset_columns(preset) if preset else {}) | parse_columns(columns or [])
    return Reading(**typed)


def with_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of `ReadingOptions`. The command gets them as its parameter `reading`."""
    own = [known for known in signature(command).parameters.values() if known.name != "reading"]
    more = list(signature(ReadingOptions).parameters.values())

    @wraps(command)
    def run(*words: Any, **typed: Any) -> None:
        options = {option.name: typed.pop(option.name) for option in more if option.name in typed}
        command(*words, **typed, reading=reading_of(ReadingOptions(**options)))

    parameters = [known.replace(kind=Parameter.KEYWORD_ONLY) for known in [*own, *more]]
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {known.name: known.annotation for known in parameters}
    return run
