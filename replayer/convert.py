"""Write the jobs of a log that a replay uses as a log of its own: `shadowtime convert`."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from shadowtime.replayer.arguments import Preparation, read_cluster
from shadowtime.replayer.machine import Machine
from shadowtime.replayer.options import Oversized, Requests
from shadowtime.replayer.output import result_file
from shadowtime.replayer.swf import FIELDS, write_swf
from shadowtime.replayer.workload import Job, Workload
from shadowtime.shared.arrays import IntegerTable
from shadowtime.shared.command_line import application, run_app, say
from shadowtime.shared.errors import SettingsError

ENDS = (".swf", ".swf.gz", ".csv")
REWRITTEN = "processors"
"""The one field of a job that is none of the log's: the size that counts."""


def as_table(workload: Workload) -> IntegerTable:
    """Return the jobs as a log has them, shape (n, 18), columns as in `replayer.swf.FIELDS`, -1 where unknown."""
    table = np.full((len(workload), len(FIELDS)), -1, dtype=np.int64)
    for name, column in workload.columns.items():
        for field in ("allocated_processors", "requested_processors") if name == REWRITTEN else (name,):
            table[:, FIELDS.index(field)] = column
    return table


def header_of(workload: Workload, note: str) -> dict[str, str]:
    """Return the header of a log of these jobs."""
    header = {
        "Version": "2.2",
        "Computer": workload.name,
        "Conversion": f"Shadowtime: {note}",
        "MaxJobs": str(len(workload)),
        "MaxRecords": str(len(workload)),
        "MaxNodes": str(workload.processors),
        "MaxProcs": str(workload.processors),
    }
    return header | ({"UnixStartTime": str(workload.unix_start_time)} if workload.unix_start_time else {})


def convert(
    log: Annotated[str, typer.Argument(metavar="LOG.swf[.gz][@PROCESSORS]", help="The log.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="FILE.swf, FILE.swf.gz or FILE.csv")],
    requests: Annotated[Requests, typer.Option(help="Rewrite requested times.")] = "as-logged",
    filter_: Annotated[
        Oversized, typer.Option("--filter", help="What to do with jobs larger than the machine.")
    ] = "drop",
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs.")] = None,
    processors: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Size of the machine; else the log's.")
    ] = None,
) -> None:
    """Write the jobs of a log that a replay uses as a clean log, or as CSV with a column for each field.

    What is wrong with the log is said, and jobs that no replay can use are left out, as a replay does.
    """
    if not output.name.endswith(ENDS):
        raise SettingsError(f"{output}: a log ends in {', '.join(ENDS)}")
    if output.exists() and Path(log).exists() and output.samefile(log):
        raise SettingsError(f"{output} is the log itself")
    workload = read_cluster(log, Preparation(processors, filter_, requests, jobs), say, Machine.name).workload
    if output.name.endswith(".csv"):
        with result_file(output) as file:
            names = [field.name for field in fields(Job)]
            file.write(f"{','.join(names)}\n".encode())
            np.savetxt(file, np.stack([workload.columns[name] for name in names], axis=1), fmt="%d", delimiter=",")
    else:
        note = f"requests {requests}, larger jobs {filter_}{'' if jobs is None else f', the first {jobs} jobs'}"
        write_swf(output, header_of(workload, note), as_table(workload))
    say(f"wrote {len(workload):,} jobs on {workload.processors:,} processors to {output}")


def main() -> None:
    """Run the command line."""
    run_app(application(convert))
