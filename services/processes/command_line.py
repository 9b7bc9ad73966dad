"""Readers and administration of the stream: `shadowtime watch`, `ask`, `rebuild`, ….

This module has only the options. A command imports its implementation when it runs. So help is fast, and it also works
in an installation without the packages for streaming.
"""

import logging
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from shadowtime.services.processes.workers import app as workers
from shadowtime.shared.cli import (
    INTERRUPTED,
    SEE_SETTINGS,
    TAKES_SETTINGS,
    lasting_imports,
    run_app,
    say,
    start_logging,
)
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.output import print_json
from shadowtime.shared.quoting import among, quote
from shadowtime.shared.stages import topics

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help=__doc__)

Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="NAME", help="Host name that requests may use, besides localhost and HOST; repeatable."
    ),
]

OF_JOB = ("job", "cluster", "run")
"""Parameters of a question about a job of the cluster."""

ASK_EXAMPLES = """Ask about a job, from the state in Redis. No worker need run. Three examples:

  shadowtime ask --cluster mine --job 2754_12
      Why does this job wait, and when will it start?
  shadowtime ask --cluster mine --advice --processors 16 --requested-time 14400 --user alice --partition gpu
      When would a job of 16 processors and 4 hours start, and what else could it request?
  shadowtime ask --cluster mine --processors 16 --partition gpu
      How long do 95 % of such jobs wait at most?

shadowtime queue shows all jobs. shadowtime ask --help has all options."""

app.add_typer(workers)


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def watch(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="One of: " + ", ".join((*topics.FLOW, topics.DEAD_LETTERS)))],
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="Only this cluster's runs.")] = None,
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Only this run.")] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="EVENT", help="Only events of this kind, such as Decided.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only jobs of this user that are submitted from now on.")
    ] = None,
    job: Annotated[
        str | None, typer.Option(metavar="ID", help="Only messages about this job, such as 2754_12.")
    ] = None,
    predictions: Annotated[bool, typer.Option("--predictions", help="Only messages that have predictions.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines also on a terminal, not sentences.")] = False,
    beginning: Annotated[
        bool, typer.Option("--beginning", help="Begin at the first message, not at the next.")
    ] = False,
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="End after N messages.")] = None,
) -> None:
    """Show the messages of a topic as they arrive: sentences on a terminal, JSON lines elsewhere.

    Sentences have the names and job ids of a followed cluster while Redis can be used, else numbers.
    """
    known = (*topics.FLOW, topics.DEAD_LETTERS)
    if topic not in known:
        raise SettingsError(f"unknown topic {quote(topic)}{among(topic, known)}")
    with lasting_imports():
        import asyncio
        from contextlib import AsyncExitStack, suppress

        from shadowtime.services.processes.ask import NAMES_OF, WordReader
        from shadowtime.services.processes.watch import (
            KINDS,
            JsonLines,
            MessageFilter,
            Printer,
            RunWords,
            Sentences,
            require_job_id,
            watch_topic,
        )
        from shadowtime.shared.streaming import read_settings, reading_later

    if kind is not None and kind not in KINDS:
        raise SettingsError(f"unknown kind {quote(kind)} of events{among(kind, KINDS)}")
    wanted = MessageFilter(run, cluster, kind, user, require_job_id(job), predictions)
    if topic == topics.DEAD_LETTERS and wanted != MessageFilter():
        raise SettingsError(
            "dead letters cannot be selected by cluster, run, kind, user, job or predictions; leave these options out"
        )
    settings = read_settings(context.args, "subscriber")
    start_logging(settings.log_format, "watch", logging.ERROR)
    as_json = json or not sys.stdout.isatty()

    async def show() -> None:
        async with AsyncExitStack() as stack:
            words = RunWords()
            if not as_json or user is not None or job is not None:
                with suppress(SettingsError):  # this user may not read the password: numbers are shown
                    reads = reading_later(read_settings(context.args, "ask"), NAMES_OF)
                    words = RunWords(WordReader(await stack.enter_async_context(reads)))
            console = Console(highlight=False, emoji=False)
            printer: Printer = JsonLines(sys.stdout.buffer, topic) if as_json else Sentences(console, topic, words)
            await watch_topic(settings, topic, wanted, printer, words, beginning=beginning, count=count)

    try:
        asyncio.run(show())
    except KeyboardInterrupt:  # the normal way to end the command: no message
        sys.exit(INTERRUPTED)


@app.command("rebuild", context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def rebuild_stage(
    context: typer.Context,
    stage: Annotated[str, typer.Argument(help="One of: " + ", ".join(topics.WRITTEN_BY))],
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Only this run; by default all runs.")] = None,
) -> None:
    """Rebuild the state of a stage from the beginning of its topic; stop its workers first."""
    if stage not in topics.WRITTEN_BY:
        raise SettingsError(f"unknown stage {quote(stage)}{among(stage, topics.WRITTEN_BY)}")
    with lasting_imports():
        import asyncio

        from shadowtime.services.processes.worker_start import require_servers, stage_of
        from shadowtime.shared.streaming import read_settings, rebuild

    settings = read_settings(context.args, stage)
    start_logging(settings.log_format, stage, logging.WARNING)

    async def work() -> None:
        await require_servers(settings)
        rebuilt = await rebuild(stage_of(stage), settings, run)
        for name, (sequence, answered) in rebuilt.items():
            if sequence is None:
                say(f"{stage}: run {name} is not rebuilt: its topic no longer has its beginning; its old state stays")
            else:
                short = "" if sequence == answered else f" only; expected {answered}, its last answer"
                say(f"{stage}: run {name} rebuilt up to sequence {sequence}{short}")
        if not rebuilt:
            say(f"{stage}: nothing to rebuild: it has answered for no run of its topic yet")
        if any(sequence != answered for sequence, answered in rebuilt.values()):
            raise typer.Exit(1)

    asyncio.run(_interruptible(work()))


@app.command("remove", context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def remove(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Name of the run, such as mine/shadow/easy.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also remove a run that is in progress.")] = False,
    keep_metrics: Annotated[bool, typer.Option("--keep-metrics", help="Keep the series of VictoriaMetrics.")] = False,
    metrics_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the deleteAuthKey of VictoriaMetrics.")
    ] = None,
) -> None:
    """Remove a run: its state of all stages, followers and shadows in Redis, and its series in VictoriaMetrics.

    Its messages stay in Kafka until their retention is over. Until then, begin no other run of this name.
    """
    with lasting_imports():
        import asyncio

        from shadowtime.services.processes.removal import Removal, RemovalRefused, remove_run
        from shadowtime.shared.streaming import read_secret, read_settings

    settings = read_settings(context.args, "admin")
    start_logging(settings.log_format, "remove", logging.WARNING)
    try:
        key = None if metrics_key is None else read_secret(metrics_key)
        lines = asyncio.run(remove_run(settings, run, Removal(dry_run, force, keep_metrics, key)))
    except (RemovalRefused, ValueError) as error:
        raise SettingsError(str(error)) from None
    say("would be removed:" if dry_run else "removed:")
    for line in lines:
        say(f"  {line}")


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def ask(
    context: typer.Context,
    cluster: Annotated[list[str] | None, typer.Option(metavar="NAME", help="The cluster; repeatable.")] = None,
    processors: Annotated[str | None, typer.Option(metavar="P", help="Processors that the job requests.")] = None,
    requested_time: Annotated[str | None, typer.Option(metavar="S", help="Seconds that the job requests.")] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "--partition", metavar="NAME", help="Partition that the job enters; repeatable."),
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="User who submits the job.")] = None,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Explain why a job waits, such as 2754_12.")] = None,
    quantile: Annotated[str, typer.Option(metavar="Q", help="Share of such jobs that wait within the bound.")] = "0.95",
    confidence: Annotated[str, typer.Option(metavar="C", help="Probability with which the bound holds.")] = "0.95",
    side: Annotated[str, typer.Option(metavar="SIDE", help="Side of the bound: upper, lower, both.")] = "upper",
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="A run; by default the followed or the latest.")
    ] = None,
    advise: Annotated[
        bool, typer.Option("--advice", help="How long the job would run, when it would start, what else to request.")
    ] = False,
    executable: Annotated[str | None, typer.Option(metavar="N", help="With --advice: job name, or a number.")] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", "--account", metavar="NAME", help="With --advice: the user's group or account."),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Pool of nodes for the job, if its partition does not determine the pool."),
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="MIB", help="With --advice: memory of all its nodes.")] = None,
    gpus: Annotated[str | None, typer.Option(metavar="N", help="With --advice: GPUs on all its nodes.")] = None,
    gpu_type: Annotated[str | None, typer.Option(metavar="NAME", help="With --advice: the type of these GPUs.")] = None,
    risk: Annotated[str | None, typer.Option(metavar="R", help="With --advice: accepted risk of being cut.")] = None,
    moldable: Annotated[bool, typer.Option("--moldable", help="With --advice: other sizes are possible.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, as the endpoint answers, not a table.")] = False,
    serving: Annotated[bool, typer.Option("--serve", help="Answer such questions over HTTP.")] = False,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address for --serve.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="Port for --serve; 0: any free.")] = 6090,
    allow: Allow = None,
    access: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --serve: who sees whose jobs, as for `live`.")
    ] = None,
) -> None:
    """Answer from Redis how long a new job would wait at most, what it should request, or why a job waits.

    No worker is involved. With --job, --cluster and --run select the job; options that describe a new job do not apply.
    With several clusters or queues, the answer is a table of them, the shortest wait first.
    """
    with lasting_imports():
        import asyncio

        from shadowtime.services.processes.ask import Gate, advise_once, bound_once, explain_once, offers_once, serve
        from shadowtime.shared.errors import Unanswerable
        from shadowtime.shared.streaming import read_settings

    sources = map(context.get_parameter_source, context.params)
    if not context.args and not any(source is not None and source.name == "COMMANDLINE" for source in sources):
        typer.echo(ASK_EXAMPLES)
        return
    settings = read_settings(context.args, "ask")
    if serving:
        start_logging(settings.log_format, "ask")
        asyncio.run(serve(settings, host, port, allow or (), None if access is None else Gate.read(access)))
        return

    if access is not None:
        raise SettingsError("--access is only for --serve; add --serve, or leave --access out")
    start_logging(settings.log_format, "ask", logging.WARNING)
    several = max(len(cluster or ()), len(queue or ())) > 1
    if several and (advise or job is not None or run is not None or pool is not None):
        raise SettingsError(
            "--advice, --job, --run and --pool need one cluster and one queue, found several; name one of each"
        )
    question: dict[str, object] = {"job": job, "run": run, "processors": processors, "requested_time": requested_time}
    place = {"cluster": cluster, "queue": queue}
    question |= place if several else {name: texts[0] if texts else None for name, texts in place.items()}
    question |= {"user": user, "pool": pool}
    more = {"executable": executable, "group": group, "risk": risk, "moldable": "yes" if moldable else None}
    more |= {"memory": memory, "gpus": gpus, "gpu_type": gpu_type}
    if not advise and (odd := next((name for name, value in more.items() if value is not None), None)):
        raise SettingsError(f"--{odd.replace('_', '-')} is only for --advice; add --advice, or leave it out")
    if job is not None:
        about_new = [name for name, value in question.items() if value is not None and name not in OF_JOB]
        if odd := "advice" if advise else next(iter(about_new), None):
            raise SettingsError(
                f"--{odd.replace('_', '-')} is about a new job, and --job about an existing job; leave one of them out"
            )
    else:
        question |= more if advise else {"quantile": quantile, "confidence": confidence, "side": side}
    known = {name: value for name, value in question.items() if value is not None}
    once = explain_once if job is not None else advise_once if advise else offers_once if several else bound_once
    try:
        answer = asyncio.run(once(settings, known))
    except Unanswerable as error:
        option = "" if error.parameter is None else f"--{error.parameter.replace('_', '-')}: "
        raise SettingsError(f"{option}{error.reason}") from None

    if json:
        print_json(answer.json.encode())
    elif isinstance(answer.shown, str):
        sys.stdout.buffer.write(answer.shown.encode() + b"\n")
    else:
        Console(highlight=False, markup=False, emoji=False).print(answer.shown)


@app.command("topics", context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def create_topics(context: typer.Context) -> None:
    """Create the missing topics. Where Kafka has access control, an administrator must do this.

    In existing topics, Kafka then keeps the compression of the sender (`compression.type=producer`). With
    --retention-hours, existing topics get the whole configuration of new ones, with this retention.
    """
    with lasting_imports():
        import asyncio

        from shadowtime.shared.streaming import keep_compression, keep_topics, prepare_topics, read_settings

    settings = read_settings(context.args, "admin")
    start_logging(settings.log_format, "topics", logging.WARNING)
    partitions = asyncio.run(prepare_topics(settings))
    asyncio.run(keep_topics(settings) if "retention_hours" in settings.model_fields_set else keep_compression(settings))
    say(f"{len(topics.FLOW) + 1} topics of {partitions} partition{'' if partitions == 1 else 's'}")


@app.command()
def asyncapi() -> None:
    """Print the topics as an AsyncAPI document."""
    with lasting_imports():
        import orjson

        from shadowtime.services.asyncapi import document
    sys.stdout.buffer.write(orjson.dumps(document(), option=orjson.OPT_INDENT_2) + b"\n")


@app.command("settings", context_settings=TAKES_SETTINGS)
def show_settings(context: typer.Context) -> None:
    """Print every setting with its flag, its name in the environment and its value; secrets are hidden."""
    with lasting_imports():
        from shadowtime.shared.streaming import Settings, read_settings
    settings = read_settings(context.args)
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        typer.echo(f"--{name.replace('_', '-')}, SHADOWTIME_{name.upper()} = {'' if value is None else value}")
        typer.echo(f"    {field.description}")


async def _interruptible(work: Coroutine[Any, Any, None]) -> None:
    import asyncio

    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await task


def main() -> None:
    """Run the command line. Other users cannot read the files that it writes."""
    os.umask(0o077)
    run_app(app)
