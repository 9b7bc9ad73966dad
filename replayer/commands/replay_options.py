"""The options of `shadowtime replay`, each defined once: its type, default and help.

Other modules are imported only on use, so that `--help` is fast.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from shadowtime.replayer.options import Objective, Transport, YesNo
from shadowtime.replayer.reading_options import FirstJobs, ReadingOptions, RewrittenRequests, TakenSizes, TooLarge
from shadowtime.shared.cli import lasting_imports


def known_mode(text: str) -> str:
    """Return the name of an event source. Raise `typer.BadParameter` if it is unknown."""
    with lasting_imports():
        from shadowtime.replayer.arguments import parse_mode
    return parse_mode(text)


@dataclass(frozen=True)
class Options(ReadingOptions):
    """Options of a replay. None means that an option is not given."""

    traces: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOG[@PROCESSORS]]…",
            help="SWF, accounting (sacct, PBS, LSF, …), CSV or Parquet. Each is a cluster; default: the bundled log.",
        ),
    ] = None
    policy: Annotated[list[str] | None, typer.Option(metavar="SPEC", help="Repeat to compare; see --list.")] = None
    objective: Annotated[
        Objective | None, typer.Option(help="Also replay the policy that is recommended for this objective.")
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="The policy to compare the others with; default: easy if it is replayed, else the first.",
        ),
    ] = None
    runtime: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Run-time predictor of policies that name none.")
    ] = None
    adjustment: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Walltime adjustment of policies that name none.")
    ] = None
    wait_bound: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="Bounds on the wait; by default none, in recorded mode bmbp."),
    ] = None
    mode: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            callback=known_mode,
            help="Whether jobs start as decided (closed), or as in the log (recorded); see --list.",
        ),
    ] = "closed"
    transport: Annotated[Transport, typer.Option(help="Stages in this process, or workers over Kafka.")] = "embedded"
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the run over Kafka; an existing run is resumed.")
    ] = None
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the stream, as in --set kafka-bootstrap=…"),
    ] = None
    speed: Annotated[str, typer.Option(metavar="max|FACTOR", help="Trace seconds per second of real time.")] = "max"
    requests: RewrittenRequests = "as-logged"
    sizes: TakenSizes = "requested"
    load: Annotated[
        float, typer.Option(metavar="FACTOR", help="Divide the gaps between submissions by this; 2: twice as fast.")
    ] = 1.0
    filter_: TooLarge = "drop"
    restartable: Annotated[YesNo, typer.Option(help="Whether jobs may be killed and requeued.")] = "yes"
    moldable: Annotated[YesNo, typer.Option(help="Whether jobs may run on other numbers of processors.")] = "yes"
    speedup: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="How moldable jobs scale: constant, amdahl:serial=SHARE or downey:parallelism=MULTIPLE,sigma=VARIANCE"
            "; parallelism is the average parallelism as a multiple of the requested processors.",
        ),
    ] = "constant"
    capacity: Annotated[
        list[str] | None,
        typer.Option(metavar="SECONDS:PROCESSORS", help="The machine's size from a time of the trace on; repeatable."),
    ] = None
    jobs: FirstJobs = None
    processors: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Size of the machine; by default the log's.")
    ] = None
    in_pieces: Annotated[
        bool, typer.Option("--in-pieces", help="Read the log while it is replayed: an SWF log larger than memory.")
    ] = False
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all random numbers.")] = 0
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Scores as JSON; - is standard output.")] = None
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv|FILE.parquet", help="Scores as a table, one row per policy and log."),
    ] = None
    schedule: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv|FILE.parquet|FILE.swf",
            help="When each job ran; as FILE.swf or FILE.swf.gz a log that can be replayed.",
        ),
    ] = None
    decisions: Annotated[Path | None, typer.Option(metavar="FILE.jsonl", help="Every decision with its reason.")] = None
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="The comparison as a page.")] = None
    pipeline: Annotated[
        bool,
        typer.Option(
            "--pipeline", help="Use the pipeline even where the faster compiled machine has the same starts and scores."
        ),
    ] = False
    seconds: Annotated[bool, typer.Option("--seconds", help="Exact times in tables: seconds, not hours.")] = False
    predictions: Annotated[
        bool,
        typer.Option(
            "--predictions/--no-predictions",
            help="Also score the predictions at submission, under EASY: run times, waits and bounds on waits.",
        ),
    ] = False
    list_: Annotated[
        bool,
        typer.Option(
            "--list", help="List every policy and predictor; with names behind it, list only these, with keys."
        ),
    ] = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The options with another value than their default, as values of JSON, without those in `NOT_CITED`."""
        return {
            field.name: str(value) if isinstance(value, Path) else value
            for field in fields(self)
            if field.name not in NOT_CITED and (value := getattr(self, field.name)) != field.default
        }


NOT_CITED = {
    *("json", "results", "schedule", "decisions", "report", "seconds", "list_", "pipeline"),
    *("transport", "run", "setting", "speed", "names", "names_key"),
}
"""Options that change no result: files to write, and how the replay is carried out. A mapping of names is private."""
