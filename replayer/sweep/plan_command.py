"""Find the smallest machine or the largest load that keeps a target: `shadowtime plan LOG --target TEXT`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowtime.replayer.options import Oversized
from shadowtime.replayer.reading_options import FirstJobs, RewrittenRequests, with_reading_options
from shadowtime.shared.cli import application, lasting_imports, say
from shadowtime.shared.output import print_json

if TYPE_CHECKING:
    from shadowtime.shared.accounting import Reading


@with_reading_options
def plan(
    target: Annotated[
        str, typer.Option(metavar="TEXT", help="The target, such as 'p95 wait <= 4h' or 'mean slowdown <= 20'.")
    ],
    log: Annotated[
        str | None, typer.Argument(metavar="LOG[@PROCESSORS]", help="A log, as for replay; by default the bundled log.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="A policy; repeatable. Default: easy and best.")
    ] = None,
    of_load: Annotated[
        bool, typer.Option("--load", help="Find the largest load on the log's machine, not the smallest machine.")
    ] = False,
    copies: Annotated[
        int, typer.Option(metavar="N", min=0, max=100, help="Perturbed copies beside the log, for intervals.")
    ] = 4,
    first: FirstJobs = None,
    filter_: Annotated[
        Oversized, typer.Option("--filter", help="With `align`, jobs larger than a machine are cut to its size.")
    ] = "drop",
    requests: RewrittenRequests = "as-logged",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    reading: "Reading",
) -> None:
    """Find the smallest machine, or the largest load, with which policies keep a target, over copies of a log."""
    with lasting_imports():
        import orjson
        from rich.console import Console

        from shadowtime.replayer.arguments import report_left_out, split_size
        from shadowtime.replayer.logs import BUNDLED, prepare, read_trace, size_note
        from shadowtime.replayer.sweep.capacity_plan import (
            CapacityQuestion,
            answers,
            parse_target,
            plan_table,
            sentence,
        )

    wanted = parse_target(target)
    path, size = split_size(log or str(BUNDLED))
    trace = read_trace(Path(path), reading)
    workload = prepare(trace, size, limit=first, oversized=filter_, requests=requests)
    report_left_out(workload, (*trace.notes, size_note(trace, size, "LOG@PROCESSORS or --pools")), say)
    question = CapacityQuestion(
        trace, workload.processors, of_load, copies, first, filter_, requests, workload.assumed_size
    )
    results = []
    for answer in answers(question, wanted, policy or ["easy", "best"]):
        results.append(answer)
        say(f"{answer.policy}: done")
    if as_json:
        value = [{"policy": result.policy, "values": result.values, "interval": result.interval} for result in results]
        document = {"target": wanted.text, "of": "load in hundredths" if of_load else "processors", "policies": value}
        print_json(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        return
    console = Console(highlight=False, emoji=False)
    console.print(plan_table(question, wanted, results, workload.name))
    console.print(sentence(question, wanted, results), soft_wrap=False)


app = application(plan)
