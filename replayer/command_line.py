"""Replay traces: `shadowtime replay [TRACE.swf[.gz][@PROCESSORS]]…`."""

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from shadowtime.dashboards.report.page import page
from shadowtime.replayer.arguments import (
    configurations,
    parse_capacity,
    parse_factor,
    parse_speedup,
    parse_wait_bound,
    read_cluster,
    require_different,
    split_size,
)
from shadowtime.replayer.comparison import (
    Plan,
    Result,
    as_json,
    carry_out,
    carry_out_paced,
    carry_out_streamed,
    run_name,
)
from shadowtime.replayer.comparison_table import comparison_table, forecast_table, prediction_table, wait_bound_table
from shadowtime.replayer.embedded import Observer
from shadowtime.replayer.interruption import Interruption
from shadowtime.replayer.output import STANDARD_OUTPUT, result_file
from shadowtime.replayer.pace import Pace
from shadowtime.replayer.records import DecisionLog, Schedule
from shadowtime.replayer.run_record import RunRecord
from shadowtime.replayer.source import JobTraits
from shadowtime.replayer.swf import BUNDLED
from shadowtime.replayer.workload import Oversized, Requests
from shadowtime.services.catalogue import entries
from shadowtime.shared.command_line import application, messages, one_line, run_app, say
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.events import Envelope, JobEnded
from shadowtime.shared.logs import start_logging
from shadowtime.shared.message import MAX_INTEGER

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
        Literal["closed", "recorded"], typer.Option(help="Whether jobs start as decided, or as they did.")
    ] = "closed",
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
    bound = parse_wait_bound(wait_bound, mode)
    changes = tuple(sorted(map(parse_capacity, capacity or ()), key=lambda change: change.time))
    interruption = Interruption()
    pace = None if speed == "max" else Pace(parse_factor(speed), sleep=interruption.sleep)
    if not 0 <= seed <= MAX_INTEGER:
        raise SettingsError(f"--seed {seed}: expected 0 to {MAX_INTEGER}")
    if transport == "embedded" and (run is not None or setting):
        raise SettingsError("--run and --set go with --transport kafka")
    settings = None
    if transport == "kafka":
        from shadowtime.shared.streaming.settings import read_settings

        settings = read_settings([f"--{each}" for each in setting or ()], "replayer")
    names = traces or [str(BUNDLED)]
    one_run = len(names) * len(chosen) == 1
    if not one_run and (schedule is not None or (decisions is not None and (settings or pace))):
        raise SettingsError("--schedule and --decisions record one run here: name one trace and one policy")
    targets = [path for path in (json, schedule, decisions, report) if path is not None]
    if len(set(targets)) < len(targets):
        raise SettingsError(f"two results cannot go to one place: {', '.join(map(str, targets))}")
    clusters = [read_cluster(name, processors, filter_, requests, jobs, say, mode) for name in names]
    require_different(
        "log",
        (
            (name, (Path(split_size(name)[0]).resolve(), cluster.workload.processors))
            for name, cluster in zip(names, clusters, strict=True)
        ),
    )
    plans = [
        Plan(
            label,
            run_name(cluster.name),
            cluster.workload,
            configuration,
            mode,
            bound,
            seed,
            changes,
            JobTraits(restartable == "yes", moldable == "yes", parse_speedup(speedup)),
        )
        for cluster in clusters
        for label, configuration in chosen
    ]
    with ExitStack() as files:  # every file is opened before the work begins, and is there only if all went well
        decisions_file, schedule_file, json_file, report_file = (
            None if path is None else files.enter_context(result_file(path))
            for path in (decisions, schedule, json, report)
        )
        observers: list[Observer] = [] if decisions_file is None else [DecisionLog(decisions_file)]
        recorder = Schedule()
        if schedule_file is not None:
            observers.append(recorder)
        if settings is not None:
            carry_out_all = partial(stream, settings=settings, run=run, pace=pace)
        else:
            carry_out_all = partial(replay, pace=pace)
            observers.append(files.enter_context(interruption))
        records = {id(plan): RunRecord(plan) for plan in plans} if report_file is not None else {}

        def observers_of(plan: Plan) -> list[Observer]:
            return [*observers, records[id(plan)]] if records else observers

        results = with_progress(plans, observers_of, carry_out_all, exact=pace is not None)
        by_cluster = [[each for each in results if each.plan.workload is cluster.workload] for cluster in clusters]
        rewritten = {"requests": requests, "filter": filter_, "transport": transport, "speed": speed}
        documents = [as_json(each, rewritten) for each in by_cluster]
        if schedule_file is not None:
            recorder.write(schedule_file)
        if json_file is not None:
            whole = documents if len(documents) > 1 else documents[0]
            json_file.write(orjson.dumps(whole, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        if report_file is not None:
            runs = [[records[id(each.plan)] for each in of_cluster] for of_cluster in by_cluster]
            report_file.write(page(documents, sys.argv[1:], runs).encode())
    if Path(STANDARD_OUTPUT) not in (json, schedule, decisions, report):
        recorded = [prediction_table, *([] if bound == "none" else [wait_bound_table])]
        for each in by_cluster:
            forecast = any(result.scores.wait_forecast for result in each)
            for table in [*(recorded if mode == "recorded" else [comparison_table]), *[forecast_table] * forecast]:
                Console(highlight=False).print(table(each))
    if report is not None:
        say(f"wrote {report}")


ObserversOf = Callable[[Plan], Sequence[Observer]]


def replay(plans: Sequence[Plan], observers_of: ObserversOf, pace: Pace | None) -> list[Result]:
    """Carry out all plans in this process: one after another, or side by side in real time."""
    if pace is None:
        return [carry_out(plan, observers_of(plan)) for plan in plans]
    done = {id(result.plan): result for result in carry_out_paced(plans, pace, observers_of)}
    return [done[id(plan)] for plan in plans]


def stream(
    plans: Sequence[Plan], observers_of: ObserversOf, settings: "Settings", run: str | None, pace: Pace | None
) -> list[Result]:
    """Carry out all plans over Kafka, side by side."""
    start_logging(settings.log_format, level=logging.WARNING)
    try:
        import uvloop

        return uvloop.run(carry_out_streamed(plans, settings, run, pace, observers_of))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def with_progress(
    plans: Sequence[Plan],
    observers_of: ObserversOf,
    carry_out_all: Callable[[Sequence[Plan], ObserversOf], list[Result]],
    *,
    exact: bool,
) -> list[Result]:
    """Carry out all plans, with a progress bar where there is a terminal."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages, transient=True, disable=not sys.stderr.isatty()) as progress:

        def counted(plan: Plan) -> Sequence[Observer]:
            if progress.disable:
                return observers_of(plan)
            task = progress.add_task(f"{one_line(plan.cluster)} {plan.label}", total=len(plan.workload))
            ended = 0

            def count(envelope: Envelope) -> None:
                nonlocal ended
                if isinstance(envelope.event, JobEnded) and not envelope.event.requeued:
                    ended += 1
                    if exact or ended % 256 == 0:
                        progress.update(task, completed=ended)

            return [*observers_of(plan), count]

        return carry_out_all(plans, counted)


def print_catalogue(names: Sequence[str]) -> None:
    """Print everything that a SPEC can name, or the keys of some of it."""
    found = list(entries())
    if unknown := set(names) - {name for _, name, _, _ in found}:
        raise SettingsError(f"--list {', '.join(sorted(unknown))}: there is no such name; see --list")
    console = Console(highlight=False, markup=False)
    for option, of_option in groupby(found, lambda entry: entry[0]):
        chosen = [entry for entry in of_option if not names or entry[1] in names]
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for _, name, sentence, keys in chosen:
            table.add_row(f"  {name}", sentence)
            for key in keys if names else ():
                table.add_row(f"    {key.name}={key.default}", key.description)
        if chosen:
            console.print(f"--{option} SPEC")
            console.print(table)
    if not names:
        console.print("A SPEC is NAME or NAME:key=value,…  The keys of each: --list NAME …")


def main() -> None:
    """Run the command line."""
    run_app(application(compare), "interrupted; no result file was written")
