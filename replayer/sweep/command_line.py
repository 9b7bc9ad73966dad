"""Replay a grid of configurations: `shadowtime sweep LOG`."""

from pathlib import Path
from typing import Annotated

import typer

from shadowtime.replayer.reading_options import FirstJobs, RewrittenRequests, TooLarge
from shadowtime.shared.cli import application, lasting_imports, say


def sweep(
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="SPEC", help="SPECs with grids, such as 'easy:queue={srf,saf},threshold={20h..100h step 10h}'."
        ),
    ],
    log: Annotated[
        str | None, typer.Argument(metavar="LOG[@PROCESSORS]", help="A log, as for replay; by default the bundled log.")
    ] = None,
    processors: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Sizes of the machine, such as 80,96 or '80..160 step 8'.")
    ] = None,
    load: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Factors of the load, such as 0.9,1.1 or '0.8..1.2 step 0.1'.")
    ] = None,
    copies: Annotated[
        int, typer.Option(metavar="N", min=0, max=1_000, help="Perturbed copies beside the log, for intervals.")
    ] = 0,
    tail: Annotated[
        float, typer.Option(metavar="SHARE", min=0, help="Maximum tail of a winner, as a share of easy's.")
    ] = 1.25,
    user: Annotated[
        float, typer.Option(metavar="SHARE", min=0, help="Maximum mean wait of the worst user, as a share of easy's.")
    ] = 1.15,
    first: FirstJobs = None,
    filter_: TooLarge = "drop",
    requests: RewrittenRequests = "as-logged",
    show: Annotated[int, typer.Option(metavar="N", min=1, help="Rows of each table.")] = 20,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the results; by default sweep-LOG-results.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes; by default as many as cores.")
    ] = None,
    on: Annotated[
        str,
        typer.Option(metavar="cores|dask|dask=ADDRESS", help="Where to replay: on this machine's cores, or on Dask."),
    ] = "cores",
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="All rows as a page, with the frontier of each machine.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="The row of every replay.")] = None,
) -> None:
    """Replay every configuration of a grid, and name the best under constraints. Finished replays are not repeated."""
    with lasting_imports():
        from shadowtime.replayer.arguments import Preparation, read_cluster
        from shadowtime.replayer.campaign import How, find_logs, replayed, write_files
        from shadowtime.replayer.logs import BUNDLED
        from shadowtime.replayer.simulation import Machine
        from shadowtime.replayer.sweep.grid_sweep import Constraint, Grid, campaign_of, print_sweep
    log = log or str(BUNDLED)
    chosen = campaign_of(Grid(log, policy, processors, load, copies, first, filter_, requests))
    how = How(Path(log), Path(), out=out, workers=workers, on=on, first=None, report=report, csv=csv, latex=None)
    # Read the log here, to report the jobs left out: the processes of the replays report nothing.
    (one,) = find_logs(chosen.model_copy(update={"logs": chosen.logs[:1]}), how.logs)
    preparation = Preparation(one.processors, filter_, requests, first, size_options="--processors or LOG@PROCESSORS")
    read_cluster(one.path, preparation, say, Machine.name)
    done = replayed(chosen, how)
    write_files(done, how)
    print_sweep(done, Constraint(tail, user), show)


app = application(sweep)
ON_INTERRUPT = "interrupted; finished replays are kept; run the same command again to continue"
