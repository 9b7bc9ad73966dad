"""Search a log for a set of templates: `shadowtime search-templates TRACE.swf[.gz][@PROCESSORS] -o FILE`."""

from pathlib import Path
from typing import Annotated

import typer

from shadowtime.shared.cli import application, lasting_imports, run_app


def command(
    trace: Annotated[str, typer.Argument(metavar="TRACE.swf[.gz][@PROCESSORS]", help="The log to search on.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The set; - is standard output.")],
    jobs: Annotated[int, typer.Option(metavar="N", help="Search on the first N jobs only.")] = 10_000,
    population: Annotated[int, typer.Option(metavar="N", help="Sets in a generation; even.")] = 40,
    generations: Annotated[int, typer.Option(metavar="N", help="Generations.")] = 30,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed finds the same set.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", help="Threads; 0: as many as cores.")] = 0,
) -> None:
    """Search for the template set that predicts the run times of a log best, for `templates:set=FILE`."""
    with lasting_imports():
        from shadowtime.replayer.analysis import write_templates
    write_templates(trace, output, jobs, population, generations, seed, workers)


app = application(command)


def main() -> None:
    """Run the command line."""
    run_app(app, "interrupted; no result file was written")
