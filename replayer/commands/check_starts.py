"""Measure how close policies come to the real starts of a site: `shadowtime check-starts LOG --policy SPEC …`."""

from typing import TYPE_CHECKING, Annotated

import typer

from shadowtime.replayer.reading_options import FirstJobs, TooLarge, with_reading_options
from shadowtime.shared.cli import application, lasting_imports, say
from shadowtime.shared.output import print_json

if TYPE_CHECKING:
    from shadowtime.shared.accounting import Reading


@with_reading_options
def check_starts(
    log: Annotated[str, typer.Argument(metavar="LOG[@PROCESSORS]", help="A log with recorded waits.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="A policy to compare; repeatable. Default: slurm and easy."),
    ] = None,
    after: Annotated[
        float, typer.Option(metavar="SHARE", min=0, max=1, help="Compare only jobs after this share of the log.")
    ] = 0.0,
    filter_: TooLarge = "drop",
    jobs: FirstJobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="A line of JSON for each policy, in the order given.")
    ] = False,
    *,
    reading: "Reading",
) -> None:
    """Replay a log under policies, and report how close their starts are to the real ones.

    Jobs arrive and run as recorded. The policy decides their starts: alone, and step by step from the recorded state.
    """
    with lasting_imports():
        import numpy as np
        import orjson
        from rich.console import Console

        from shadowtime.replayer.analysis import met_by, met_table
        from shadowtime.replayer.arguments import Preparation, origin_of, read_cluster
        from shadowtime.replayer.comparison import RunPlan
        from shadowtime.replayer.logs import real_starts
        from shadowtime.replayer.simulation import Machine
        from shadowtime.services.catalogue import configure
        from shadowtime.shared.formatting import duration

    preparation = Preparation(
        None, filter_, "as-logged", jobs, reading=reading, size_options="LOG@PROCESSORS or --pools"
    )
    cluster = read_cluster(log, preparation, say, Machine.name)
    starts = real_starts(cluster.workload)
    of = np.arange(len(starts)) >= after * len(starts)
    rows = [
        met_by(RunPlan(chosen, cluster.name, cluster.workload, configure(chosen)), of)
        for chosen in policy or ["slurm", "easy"]
    ]
    if as_json:
        for row in rows:
            print_json(orjson.dumps(origin_of(log) | row._asdict()))
        return

    real = rows[0]
    title = f"{cluster.name}: {real.jobs:,} jobs, real mean wait {duration(real.real_mean_wait)}"
    Console(highlight=False, markup=False, emoji=False).print(met_table(title, rows))


app = application(check_starts)
