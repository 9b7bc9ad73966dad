"""Search logs for sets of templates: `shadowtime search-templates TRACE.swf[.gz][@PROCESSORS] -o FILE`."""

from pathlib import Path
from typing import Annotated

import typer

from shadowtime.replayer.reading_options import RewrittenRequests
from shadowtime.shared.cli import application, lasting_imports


def command(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE.swf[.gz][@PROCESSORS]…", help="The logs to search on.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="File for the set, - is standard output; a folder for several sets."
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Judge sets by the predictions that this policy makes; repeat for several."),
    ] = None,
    purpose: Annotated[
        list[str] | None,
        typer.Option(
            "--for", metavar="waits|schedule", help="Predictions to forecast waits, or to decide; both by default."
        ),
    ] = None,
    requests: RewrittenRequests = "as-logged",
    jobs: Annotated[int, typer.Option(metavar="N", help="Search on the first N jobs only.")] = 10_000,
    population: Annotated[int, typer.Option(metavar="N", help="Sets in a generation; even.")] = 40,
    generations: Annotated[int, typer.Option(metavar="N", help="Number of generations.")] = 30,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed finds the same set.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", help="Threads; 0: as many as cores.")] = 0,
) -> None:
    """Search for the template set that predicts the run times of a log best, for `templates:set=FILE`."""
    with lasting_imports():
        from shadowtime.replayer.analysis import SearchOptions, searches_of, write_templates
    options = SearchOptions(jobs, population, generations, seed, workers, requests)
    write_templates(searches_of(traces, policy or (), purpose or ()), output, options)


app = application(command)
ON_INTERRUPT = "interrupted; only the sets that were reported are written"
