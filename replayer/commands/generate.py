"""Write a log of a synthetic workload: `shadowtime generate`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from shadowtime.replayer.options import DEFAULT_LOAD
from shadowtime.shared.cli import application, lasting_imports


def command(
    jobs: Annotated[int, typer.Option(help="Number of jobs.")],
    processors: Annotated[int, typer.Option(help="Size of the machine.")],
    seed: Annotated[int, typer.Option(help="Seed; the same seed makes the same log.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="FILE.swf or FILE.swf.gz")],
    load: Annotated[float, typer.Option(help="Offered load, as a share of the machine.")] = DEFAULT_LOAD,
    waits: Annotated[
        Literal["easy", "none"], typer.Option(help="Waits of the jobs: those under EASY, or none.")
    ] = "easy",
) -> None:
    """Generate a log of a synthetic workload."""
    with lasting_imports():
        from shadowtime.replayer.logs import FIELDS, write_swf
        from shadowtime.replayer.synthetic import easy_waits, generate
        from shadowtime.shared.output import require_suffix
    require_suffix("--output", output, ".swf", ".swf.gz")
    header, table = generate(jobs, processors, seed, load)
    if waits == "easy":
        table[:, FIELDS.index("wait_time")] = easy_waits(header, table)
        header["Note"] = header["Note"].replace("--waits none", "--waits easy")
    write_swf(output, header, table)


app = application(command)
