"""Fit the policy `slurm` to the log of a site with unknown settings: `shadowtime fit-slurm LOG -o FILE`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowtime.replayer.options import NO_FILE
from shadowtime.replayer.reading_options import TooLarge, with_reading_options
from shadowtime.shared.cli import application, lasting_imports, say

if TYPE_CHECKING:
    from shadowtime.shared.accounting import Reading


@with_reading_options
def command(
    log: Annotated[str, typer.Argument(metavar="LOG[@PROCESSORS]", help="A log with recorded waits.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File for the settings, for slurm:site=FILE.")
    ],
    train: Annotated[
        int, typer.Option("--train", metavar="N", min=2, help="Fit on the first N jobs, at most half of the log.")
    ] = 5_000,
    filter_: TooLarge = "drop",
    jobs: Annotated[int | None, typer.Option(metavar="N", min=4, help="Only the first N jobs of the log.")] = None,
    *,
    reading: "Reading",
) -> None:
    """Fit the settings of the policy slurm to the starts of a site, and report the accuracy on later jobs.

    The fit uses the beginning of the log. The report covers its second half, next to EASY and Slurm's defaults.
    If one of these meets more starts within a minute, alone or step by step, no file is written.
    """
    with lasting_imports():
        import numpy as np
        from rich.console import Console

        from shadowtime.replayer.analysis import fit, met_by, met_table, policy_of, require_better, toml_of
        from shadowtime.replayer.arguments import Preparation, read_cluster, split_size
        from shadowtime.replayer.comparison import RunPlan
        from shadowtime.replayer.simulation import Machine
        from shadowtime.services.catalogue import configure
        from shadowtime.shared.formatting import duration
        from shadowtime.shared.output import require_places, result_file

    require_places([output, reading.names], [split_size(log)[0], reading.pools, reading.names_key])
    preparation = Preparation(
        None, filter_, "as-logged", jobs, reading=reading, size_options="LOG@PROCESSORS or --pools"
    )
    cluster = read_cluster(log, preparation, say, Machine.name)
    workload = cluster.workload
    best = fit(workload, train, say)
    later = np.arange(len(workload)) >= len(workload) // 2
    policies = {"fitted": policy_of(best.keys), "slurm": "slurm", "easy": "easy"}
    rows = [met_by(RunPlan(name, cluster.name, workload, configure(spec)), later) for name, spec in policies.items()]
    title = f"{cluster.name}: its {rows[0].jobs:,} later jobs, real mean wait {duration(rows[0].real_mean_wait)}"
    Console(highlight=False, markup=False, emoji=False).print(met_table(title, rows))
    require_better(rows[0], rows[1:])
    with result_file(output) as file:
        file.write("\n".join([*toml_of(best.keys), ""]).encode())


app = application(command)
ON_INTERRUPT = NO_FILE
