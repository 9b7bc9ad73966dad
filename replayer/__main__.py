"""Replay traces: `python -m replayer [TRACE.swf[.gz][@PROCESSORS]]…`."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import orjson
import typer
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from dashboards.report import write_report
from replayer.comparison import Plan, Result, as_json, carry_out, carry_out_paced, carry_out_streamed
from replayer.comparison_table import comparison_table
from replayer.embedded import Observer
from replayer.output import STANDARD_OUTPUT, result_file
from replayer.pace import Pace
from replayer.records import DecisionLog, Schedule
from replayer.swf import BUNDLED, Oversized, Requests, Workload, prepare, read_swf
from services.catalogue import Configuration, canonical, configure, entries
from shared.errors import SettingsError, ShadowtimeError
from shared.events import CapacityChanged, Envelope, JobEnded
from shared.logs import start_logging
from shared.settings import Settings, read_settings

messages = Console(stderr=True, highlight=False, soft_wrap=True)

YesNo = Literal["yes", "no"]


class Cluster(NamedTuple):
    """A trace as named on the command line, ready to be replayed."""

    name: str
    workload: Workload


def main(
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
    wait_bound: Annotated[list[str] | None, typer.Option(metavar="SPEC", help="Bounds on the wait.")] = None,
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
    capacity: Annotated[
        list[str] | None,
        typer.Option(metavar="SECONDS:PROCESSORS", help="The machine's size from a time of the trace on; repeatable."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Only the first N jobs.")] = None,
    processors: Annotated[int | None, typer.Option(metavar="N", help="Size of the machine; else the trace's.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of every draw of chance.")] = 0,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Scores as JSON; - is standard output.")] = None,
    schedule: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="When each job ran.")] = None,
    decisions: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Every decision with its reason.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="The comparison as a page.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name every policy and predictor with its keys.")] = False,
) -> None:
    """Replay batch logs through the whole pipeline, and compare policies on the same work."""
    if list_:
        print_catalogue()
        return
    clusters = [read_cluster(text, processors, filter_, requests, jobs) for text in traces or [str(BUNDLED)]]
    changes = tuple(sorted(map(parse_capacity, capacity or ()), key=lambda change: change.time))
    plans = [
        Plan(
            label,
            cluster.name,
            cluster.workload,
            configuration,
            mode,
            canonical("wait-bound", (wait_bound or ["none"])[0]),
            seed,
            changes,
            restartable == "yes",
            moldable == "yes",
        )
        for cluster in clusters
        for label, configuration in configurations(mode, policy or ["easy"], runtime, adjustment)
    ]
    pace = None if speed == "max" else Pace(parse_factor(speed))
    if transport == "embedded" and (run is not None or setting):
        raise SettingsError("--run and --set go with --transport kafka")
    side_by_side = transport == "kafka" or pace is not None
    if len(plans) > 1 and (schedule is not None or (decisions is not None and side_by_side)):
        raise SettingsError("--schedule and --decisions record one run here: name one trace and one policy")
    with ExitStack() as files:
        observers: list[Observer] = []
        if decisions is not None:
            observers.append(DecisionLog(files.enter_context(result_file(decisions))))
        recorder = Schedule()
        if schedule is not None:
            observers.append(recorder)
        if transport == "kafka":
            settings = read_settings([f"--{each}" for each in setting or ()])
            carry_out_all = partial(stream, settings=settings, run=run, pace=pace)
        else:
            carry_out_all = partial(replay, pace=pace)
        results = with_progress(plans, observers, carry_out_all, exact=pace is not None)
        if schedule is not None:
            recorder.write(files.enter_context(result_file(schedule)))
    by_cluster = [[each for each in results if each.plan.workload is cluster.workload] for cluster in clusters]
    tell(by_cluster, quiet=Path(STANDARD_OUTPUT) in (json, schedule, decisions))
    if json is not None:
        documents = [as_json(each) for each in by_cluster]
        with result_file(json) as file:
            file.write(orjson.dumps(documents if len(documents) > 1 else documents[0], option=orjson.OPT_INDENT_2))
            file.write(b"\n")
    if report is not None:
        write_report(report, [as_json(each) for each in by_cluster], sys.argv[1:])
        messages.print(f"wrote {report}")


def read_cluster(
    text: str, processors: int | None, oversized: Oversized, requests: Requests, jobs: int | None
) -> Cluster:
    """Read a trace named as `FILE` or `FILE@PROCESSORS`, and say what was left out of it."""
    path, _, size = text.rpartition("@") if "@" in text and text.rpartition("@")[2].isdigit() else (text, "", "")
    trace = read_swf(path)
    workload = prepare(trace, int(size) if size else processors, oversized=oversized, requests=requests, limit=jobs)
    for note in trace.notes:
        messages.print(f"{trace.name}: {note}")
    if workload.skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in workload.skipped.items())
        messages.print(f"{trace.name}: skipped {sum(workload.skipped.values()):,} jobs: {reasons}")
    if workload.aligned:
        messages.print(f"{trace.name}: cut {workload.aligned:,} jobs to {workload.processors} processors")
    return Cluster(f"{trace.name}@{size}" if size else trace.name, workload)


def parse_capacity(text: str) -> CapacityChanged:
    """Return the change that `SECONDS:PROCESSORS` spells."""
    time, _, processors = text.partition(":")
    if not (time.isdigit() and processors.isdigit()):
        raise SettingsError(f"--capacity {text!r}: expected SECONDS:PROCESSORS")
    return CapacityChanged(time=int(time), processors=int(processors))


def parse_factor(text: str) -> float:
    """Return the factor that `--speed` names."""
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"--speed {text!r}: expected max or a factor above 0") from None


def configurations(
    mode: str, policies: Sequence[str], runtimes: Sequence[str] | None, adjustments: Sequence[str] | None
) -> list[tuple[str, Configuration]]:
    """Return label and configuration of each pass over a trace.

    Closed mode makes one pass per policy. Recorded mode has one schedule, the one that happened, and makes as many
    passes as there are predictors or adjustments to score.
    """
    if mode == "closed":
        for option, given in (("--runtime", runtimes), ("--adjustment", adjustments)):
            if given and len(given) > 1:
                raise SettingsError(
                    f"{option} is taken once in closed mode; a policy can name its own, as in easy:runtime=…"
                )
        pair = ((runtimes or ["requested"])[0], (adjustments or ["none"])[0])
        return [(each, configure(each, *pair)) for each in policies]
    if len(policies) > 1:
        raise SettingsError("--policy is taken once in recorded mode: jobs start as they did")
    pairs = zip_longest(runtimes or ["requested"], adjustments or ["none"])
    return [("recorded", configure(policies[0], a or "requested", b or "none")) for a, b in pairs]


ObserversOf = Callable[[Plan], Sequence[Observer]]


def replay(plans: Sequence[Plan], observers_of: ObserversOf, pace: Pace | None) -> list[Result]:
    """Carry out all plans in this process: one after another, or side by side in real time."""
    if pace is None:
        return [carry_out(plan, observers_of(plan)) for plan in plans]
    done = {id(result.plan): result for result in carry_out_paced(plans, pace, observers_of)}
    return [done[id(plan)] for plan in plans]


def stream(
    plans: Sequence[Plan], observers_of: ObserversOf, settings: Settings, run: str | None, pace: Pace | None
) -> list[Result]:
    """Carry out all plans over Kafka, side by side."""
    start_logging(settings.log_format, level=logging.WARNING)
    try:
        return uvloop.run(carry_out_streamed(plans, settings, run, pace, observers_of))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


def with_progress(
    plans: Sequence[Plan],
    observers: Sequence[Observer],
    carry_out_all: Callable[[Sequence[Plan], ObserversOf], list[Result]],
    *,
    exact: bool,
) -> list[Result]:
    """Carry out all plans, with a progress bar where there is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages, transient=True, disable=not sys.stderr.isatty()) as progress:

        def observers_of(plan: Plan) -> list[Observer]:
            if progress.disable:
                return list(observers)
            task = progress.add_task(f"{plan.cluster} {plan.label}", total=len(plan.workload))
            ended = 0

            def count(envelope: Envelope) -> None:
                nonlocal ended
                if isinstance(envelope.event, JobEnded) and not envelope.event.requeued:
                    ended += 1
                    if exact or ended % 256 == 0:
                        progress.update(task, completed=ended)

            return [*observers, count]

        return carry_out_all(plans, observers_of)


def tell(by_cluster: Sequence[Sequence[Result]], *, quiet: bool) -> None:
    """Print a table per cluster, unless standard output is taken."""
    if not quiet:
        for results in by_cluster:
            Console(highlight=False).print(comparison_table(results))


def print_catalogue() -> None:
    """Print everything that a SPEC can name."""
    table = Table("option", "name", "what it does", show_lines=False, title="SPEC: NAME or NAME:key=value,key=value")
    for option, name, sentence, keys in entries():
        table.add_row(f"--{option}", name, sentence)
        for key in keys:
            table.add_row("", f"  {key.name}={key.default}", key.description)
    Console(highlight=False).print(table)


def command_line() -> None:
    """Run the command line: errors as one line each, no traceback."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    try:
        app()
    except ShadowtimeError as error:
        messages.print(f"error: {error}", markup=False, style="red")
        sys.exit(2)
    except KeyboardInterrupt:
        messages.print("interrupted; no result file was written")
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        sys.exit(0)


if __name__ == "__main__":
    command_line()
