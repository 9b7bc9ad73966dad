"""Replay traces: `shadowtime replay [TRACE.swf[.gz][@PROCESSORS]]…`."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shadowtime.replayer.arguments import (
    Preparation,
    configurations,
    parse_changes,
    parse_mode,
    parse_pace,
    parse_speedup,
    parse_wait_bound,
    read_clusters,
    require_seed,
)
from shadowtime.replayer.catalogue_table import print_catalogue
from shadowtime.replayer.comparison import Plan, Result, carry_out, carry_out_paced, carry_out_streamed, run_name
from shadowtime.replayer.comparison_json import as_json
from shadowtime.replayer.interruption import Interruption
from shadowtime.replayer.machine import Machine
from shadowtime.replayer.pace import Pace
from shadowtime.replayer.progress import Observers, with_progress
from shadowtime.replayer.results import Targets, in_parts, print_tables, result_files
from shadowtime.replayer.source import JobTraits
from shadowtime.replayer.sources import SOURCES
from shadowtime.replayer.swf import BUNDLED
from shadowtime.replayer.workload import Oversized, Requests
from shadowtime.shared.command_line import application, run_app, say
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.logs import start_logging

if TYPE_CHECKING:
    from shadowtime.shared.streaming.settings import Settings

YesNo = Literal["yes", "no"]


def compare(
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRACE.swf[.gz][@PROCESSORS]]…", help="Several: several clusters. None: the bundled one."
        ),
    ] = None,
    policy: Annotated[list[str] | None, typer.Option(metavar="SPEC", help="Repeat to compare; see --list.")] = None,
    runtime: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Run-time predictor of policies that name none.")
    ] = None,
    adjustment: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Walltime adjustment of policies that name none.")
    ] = None,
    wait_bound: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="Bounds on the wait; in recorded mode all, unless told otherwise."),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="|".join(SOURCES), callback=parse_mode, help="Whether jobs start as decided, or as they did."
        ),
    ] = Machine.name,
    transport: Annotated[
        Literal["embedded", "kafka"], typer.Option(help="Stages in this process, or workers over Kafka.")
    ] = "embedded",
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the run over Kafka; a known one is resumed.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the stream, as in --set kafka-bootstrap=…"),
    ] = None,
    speed: Annotated[str, typer.Option(metavar="max|FACTOR", help="Trace seconds per second of real time.")] = "max",
    requests: Annotated[Requests, typer.Option(help="Rewrite requested times.")] = "as-logged",
    filter_: Annotated[
        Oversized, typer.Option("--filter", help="What to do with jobs larger than the machine.")
    ] = "drop",
    restartable: Annotated[YesNo, typer.Option(help="Whether jobs may be killed and requeued.")] = "yes",
    moldable: Annotated[YesNo, typer.Option(help="Whether jobs may run on other sizes.")] = "yes",
    speedup: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="How moldable jobs scale: constant, amdahl:serial=SHARE or downey:parallelism=MULTIPLE,sigma=NUMBER, "
            "the average parallelism as a multiple of the processors requested.",
        ),
    ] = "constant",
    capacity: Annotated[
        list[str] | None,
        typer.Option(metavar="SECONDS:PROCESSORS", help="The machine's size from a time of the trace on; repeatable."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs.")] = None,
    processors: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Size of the machine; else the trace's.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of every draw of chance.")] = 0,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Scores as JSON; - is standard output.")] = None,
    schedule: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="When each job ran.")] = None,
    decisions: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Every decision with its reason.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="The comparison as a page.")] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Name every policy and predictor; of those named behind it, tell the keys.")
    ] = False,
) -> None:
    """Replay batch logs through the whole pipeline, and compare policies on the same work."""
    if list_:
        print_catalogue(traces or [])
        return
    chosen = configurations(mode, policy or ["easy"], runtime, adjustment)
    bounder = parse_wait_bound(wait_bound, mode)
    changes = parse_changes(capacity or ())
    traits = JobTraits(restartable == "yes", moldable == "yes", parse_speedup(speedup))
    interruption = Interruption()
    pace = parse_pace(speed, interruption.sleep)
    require_seed(seed)
    settings = read_stream_settings(transport, run, setting)
    logs = traces or [str(BUNDLED)]
    targets = Targets(decisions, schedule, json, report)
    targets.require_usable(one_run=len(logs) * len(chosen) == 1, side_by_side=settings is not None or pace is not None)

    clusters = read_clusters(logs, Preparation(processors, filter_, requests, jobs), say, mode)
    plans = [
        Plan(label, run_name(each.name), each.workload, configuration, mode, bounder, seed, changes, traits)
        for each in clusters
        for label, configuration in chosen
    ]
    with result_files(targets, plans) as files, nullcontext() if settings is not None else interruption:
        if settings is not None:
            carry_out_all = partial(stream, settings=settings, run=run, pace=pace)
        else:
            carry_out_all = partial(replay, pace=pace, interruption=interruption)
        results = with_progress(plans, files.observers, carry_out_all, exact=pace is not None)
        by_cluster = in_parts(results, len(clusters))
        rewritten = {"requests": requests, "filter": filter_, "transport": transport, "speed": speed}
        files.write([as_json(each, rewritten) for each in by_cluster])
    if not targets.take_standard_output:
        print_tables(by_cluster)
    if report is not None:
        say(f"wrote {report}")


def read_stream_settings(transport: str, run: str | None, given: Sequence[str] | None) -> "Settings | None":
    """Return the settings of a replay over Kafka; None for an embedded one."""
    if transport == "kafka":
        from shadowtime.shared.streaming.settings import read_settings

        return read_settings([f"--{each}" for each in given or ()], "replayer")
    if run is not None or given:
        raise SettingsError("--run and --set go with --transport kafka")
    return None


def replay(plans: Sequence[Plan], observers: Observers, pace: Pace | None, interruption: Interruption) -> list[Result]:
    """Carry out all plans in this process: one after another, or side by side in real time."""
    observers = [[*those, interruption] for those in observers]
    if pace is None:
        return [carry_out(plan, those) for plan, those in zip(plans, observers, strict=True)]
    return carry_out_paced(plans, pace, observers)


def stream(
    plans: Sequence[Plan], observers: Observers, settings: "Settings", run: str | None, pace: Pace | None
) -> list[Result]:
    """Carry out all plans over Kafka, side by side."""
    start_logging(settings.log_format, level=logging.WARNING)
    try:
        import uvloop

        return uvloop.run(carry_out_streamed(plans, settings, run, pace, observers))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def main() -> None:
    """Run the command line."""
    run_app(application(compare), "interrupted; no result file was written")
