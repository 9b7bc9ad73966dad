"""Write a log of a synthetic workload: `shadowtime generate`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from shadowtime.replayer.comparison import Plan, carry_out
from shadowtime.replayer.logs import FIELDS, Trace, prepare
from shadowtime.replayer.options import DEFAULT_LOAD
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli import application, lasting_imports, run_app
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Envelope, JobStarted

# The waits of a generated trace: those that EASY would have given its jobs.
#
# A workload model knows no scheduler, but a log has waits: recorded replay and everything that learns from waits need
# them. So the jobs are replayed once, closed, through the project's own pipeline.


def easy_waits(header: Mapping[str, str], table: Integers) -> Integers:
    """Return the wait in seconds, shape (n,), of each job of a trace under EASY with requests as run times.

    Parameters
    ----------
    header : Mapping[str, str]
        Values of the SWF header; `MaxProcs` is the size of the machine.
    table : numpy.ndarray
        (n, 18) integers as in `replayer.swf.FIELDS`, sorted by submit time. A job that no replay can use keeps the
        wait that it has.

    Examples
    --------
    >>> import numpy as np
    >>> row = dict.fromkeys(FIELDS, -1) | {"run_time": 60, "requested_time": 90, "requested_processors": 3}
    >>> rows = [row | {"job_number": number, "submit_time": 10 * number} for number in (1, 2)]
    >>> easy_waits({"MaxProcs": "4"}, np.array([list(row.values()) for row in rows])).tolist()
    [0, 50]
    """
    workload = prepare(Trace("generated", header, table))
    started: dict[int, int] = {}

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobStarted):
            started[envelope.event.job_number] = envelope.event.time

    carry_out(Plan("easy", workload.name, workload, configure("easy")), [note])
    waits = table[:, FIELDS.index("wait_time")].copy()
    for row, (number, submit_time) in enumerate(table[:, :2].tolist()):
        if number in started:
            waits[row] = started[number] - submit_time
    return waits


def command(
    jobs: Annotated[int, typer.Option(help="Number of jobs.")],
    processors: Annotated[int, typer.Option(help="Size of the machine.")],
    seed: Annotated[int, typer.Option(help="The same seed makes the same trace.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="FILE.swf or FILE.swf.gz")],
    load: Annotated[float, typer.Option(help="Offered load, as a share of the machine.")] = DEFAULT_LOAD,
    waits: Annotated[
        Literal["easy", "none"], typer.Option(help="Whose waits the jobs have: those under EASY, or unknown.")
    ] = "easy",
) -> None:
    """Write a generated trace."""
    with lasting_imports():
        from shadowtime.replayer.logs import FIELDS, write_swf
        from shadowtime.replayer.synthetic import generate
    header, table = generate(jobs, processors, seed, load)
    if waits == "easy":
        table[:, FIELDS.index("wait_time")] = easy_waits(header, table)
        header["Note"] = header["Note"].replace("--waits none", "--waits easy")
    write_swf(output, header, table)


app = application(command)


def main() -> None:
    """Run the command line."""
    run_app(app)
