"""Write the usable jobs of a log as a new log or table: `shadowtime convert`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowtime.replayer.reading_options import (
    FirstJobs,
    MachineSize,
    RewrittenRequests,
    TakenSizes,
    TooLarge,
    with_reading_options,
)
from shadowtime.shared.cli import application, lasting_imports, say
from shadowtime.shared.errors import SettingsError

if TYPE_CHECKING:
    from shadowtime.replayer.logs import Workload
    from shadowtime.shared.accounting import Reading

LOGS, TABLES = (".swf", ".swf.gz"), (".csv", ".parquet")


def header_of(workload: "Workload", note: str) -> dict[str, str]:
    """Return the SWF header of a log of these jobs. The note states how the log was made."""
    header = {
        "Version": "2.2",
        "Computer": workload.name,
        "Conversion": f"Shadowtime: {note}",
        "MaxJobs": str(len(workload)),
        "MaxRecords": str(len(workload)),
        "MaxNodes": str(workload.processors),
        "MaxProcs": str(workload.processors),
    }
    if workload.assumed_size:
        header["Note"] = "MaxProcs is the most that were held at one time; the converted log states no size"
    if workload.pools is not None:
        header |= {f"partition_number {at}": pool.name for at, pool in enumerate(workload.pools, 1)}
    return header | ({"UnixStartTime": str(workload.unix_start_time)} if workload.unix_start_time else {})


@with_reading_options
def convert(
    log: Annotated[
        str, typer.Argument(metavar="LOG[@PROCESSORS]", help="SWF, accounting (sacct, PBS, LSF, …), CSV or Parquet.")
    ],
    place: Annotated[Path | None, typer.Argument(metavar="[OUT]", help="FILE.swf, .swf.gz, .csv or .parquet")] = None,
    option: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="The same, as an option.")
    ] = None,
    requests: RewrittenRequests = "as-logged",
    sizes: TakenSizes = "requested",
    filter_: TooLarge = "drop",
    jobs: FirstJobs = None,
    processors: MachineSize = None,
    removed: Annotated[
        str | None,
        typer.Option("--put-back", metavar="KEYS", help="Generate jobs that the log lacks: first=N,last=N,user=N,…"),
    ] = None,
    *,
    reading: "Reading",
) -> None:
    """Write the usable jobs of a log: as a clean log, or as a table with a column for each field.

    Problems of the log are reported, and jobs that no replay can use are left out, as in a replay. In an accounting
    file, users, accounts, job names and partitions become numbers. With --names, their names are written as comments,
    with --names-key as hashes.
    """
    output = place or option
    if output is None or (place and option):
        raise SettingsError("expected the output file once, as OUT or as --output OUT")
    if not output.name.endswith(LOGS + TABLES):
        raise SettingsError(f"{output}: expected a name that ends in one of {', '.join(LOGS + TABLES)}")
    with lasting_imports():
        import numpy as np

        from shadowtime.replayer.arguments import Preparation, read_cluster, split_size
        from shadowtime.replayer.comparison import as_standard
        from shadowtime.replayer.logs import (
            FIELDS,
            parse_put_back,
            require_parquet,
            table_of,
            write_columns,
            write_swf,
        )
        from shadowtime.replayer.simulation import Machine
        from shadowtime.shared.accounting import KINDS, read_names
        from shadowtime.shared.formatting import counted
        from shadowtime.shared.output import require_places, result_file

    require_places([output, reading.names], [split_size(log)[0], reading.pools, reading.names_key])
    lacking = None if removed is None else parse_put_back(removed)
    preparation = Preparation(processors, filter_, requests, jobs, reading, sizes=sizes, put_back=lacking)
    workload = read_cluster(log, preparation, say, Machine.name).workload
    require_parquet(output)
    if output.name.endswith(TABLES):
        with result_file(output) as file:
            write_columns(file, output, {name: column.tolist() for name, column in workload.columns.items()})
    else:
        part = "" if jobs is None else f", the first {jobs} jobs"
        note = f"requests {requests}, sizes {sizes}, larger jobs {filter_}{part}"
        note += "" if removed is None else f", generated jobs put back by {removed}"
        processors_of = dict.fromkeys(("allocated_processors", "requested_processors"), workload.columns["processors"])
        statuses = np.array([as_standard(status) for status in workload.columns["status"].tolist()], dtype=np.int64)
        table = table_of({**workload.columns, **workload.unused, **processors_of, "status": statuses})
        header = header_of(workload, note)
        if reading.names is not None:
            known = read_names(reading.names, None).of
            header |= {
                f"{field} {number}": name
                for kind, field in KINDS.items()
                if field in FIELDS
                for name, number in known[kind].items()
            }

        write_swf(output, header, table)

    say(f"wrote {counted(len(workload), 'job')} on {workload.processors:,} processors to {output}")


app = application(convert)
