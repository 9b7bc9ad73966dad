"""Compare the schedule of another simulator with a policy's own: `shadowtime check-schedule LOG SCHEDULE`."""

from pathlib import Path
from typing import Annotated

import typer

from shadowtime.replayer.reading_options import FirstJobs, MachineSize, RewrittenRequests, TakenSizes, TooLarge
from shadowtime.shared.cli import application, lasting_imports, say
from shadowtime.shared.output import print_json


def check_schedule(
    log: Annotated[str, typer.Argument(metavar="LOG.swf[.gz][@PROCESSORS]", help="The log.")],
    schedule: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Starts in the other simulator: .swf (by its waits), .csv or .parquet as of --schedule.",
        ),
    ],
    policy: Annotated[str, typer.Option(metavar="SPEC", help="The policy to compare the schedule with.")] = "easy",
    requests: RewrittenRequests = "as-logged",
    sizes: TakenSizes = "requested",
    filter_: TooLarge = "drop",
    jobs: FirstJobs = None,
    processors: MachineSize = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Compare a schedule of another simulator with a policy's; print the first different start, and the reason.

    Times are seconds of the log. The exit status is 0 if every job starts at the same second, 1 if one does not, and 2
    if the schedules cannot be compared: other jobs, starts before submissions, too many processors in use.
    """
    with lasting_imports():
        import orjson

        from shadowtime.replayer.analysis import first_deviation, starts_of
        from shadowtime.replayer.arguments import Preparation, origin_of, read_cluster
        from shadowtime.replayer.comparison import RunPlan
        from shadowtime.replayer.logs import read_starts
        from shadowtime.replayer.simulation import Machine
        from shadowtime.services.catalogue import configure, spelled_out

    preparation = Preparation(
        processors, filter_, requests, jobs, sizes=sizes, size_options="--processors or LOG@PROCESSORS"
    )
    cluster = read_cluster(log, preparation, say, Machine.name)
    theirs = read_starts(schedule, cluster.workload)
    plan = RunPlan(policy, cluster.name, cluster.workload, configure(policy))
    ours = starts_of(plan)
    different = int((theirs != ours).sum())
    first = first_deviation(plan, theirs, ours)
    if as_json:
        summary = {
            "policy": str(spelled_out(plan.configuration)),
            "jobs": len(ours),
            "different": different,
            "first": None if first is None else first._asdict(),
        }
        print_json(orjson.dumps(origin_of(log) | summary))
    elif first is None:
        typer.echo(f"{schedule}: all {len(ours):,} jobs start as under {policy}")
    else:
        typer.echo(
            f"{schedule}: {different:,} of {len(ours):,} jobs do not start as under {policy}; the first:\n{first}"
        )

    raise typer.Exit(int(first is not None))


app = application(check_schedule)
