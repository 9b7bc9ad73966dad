"""Print the scores of a live or finished run on the stream, from Redis: `shadowtime scores RUN`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowtime.shared.cli import SEE_SETTINGS, TAKES_SETTINGS, lasting_imports
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.output import print_json, require_suffix
from shadowtime.shared.quoting import quote, truncate

if TYPE_CHECKING:
    from shadowtime.services.processes import ClusterWords
    from shadowtime.shared.messages import ClusterOpened, Scores
    from shadowtime.shared.stages import StageRun

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def scores(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run, such as CLUSTER/live.")],
    statement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page on the predictions of the last 30 days, .html or .pdf, in place of tables.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
) -> None:
    """Print the current scores of a run, as the scoreboard has them; the run may still be live.

    With --statement, RUN may also be the name of a followed cluster.
    """
    if statement is not None:
        _state(statement, run, json, context.args)
        return
    with lasting_imports():
        import asyncio

        from rich.console import Console

        from shadowtime.replayer.presentation import tables
        from shadowtime.services.pipeline import STAGES
        from shadowtime.services.processes import NAMES_OF, NO_WORDS, WordReader, age_line, log_age
        from shadowtime.services.scoreboard import Scoreboard
        from shadowtime.shared.formatting import duration
        from shadowtime.shared.streaming import RunFollower, read_settings, reading, reading_later

    settings = read_settings(context.args, "ask")
    stage = STAGES[-1]

    def standing(state: "StageRun") -> "tuple[Scores, int | None, ClusterOpened] | None":
        handler = state.handler
        if not isinstance(handler, Scoreboard):
            return None
        return handler.tally.scores(), log_age(handler.opened, handler.time), handler.opened

    async def ask() -> "tuple[tuple[Scores, int | None, ClusterOpened] | None, list[str], ClusterWords]":
        async with reading(settings, stage.name) as reader, reading_later(settings, NAMES_OF) as names:
            answer = await RunFollower(stage, reader, run).ask(standing)
            words = NO_WORDS if answer is None else await WordReader(names).of(answer[2].cluster, run)
            return answer, [] if answer else list(await reader.names()), words

    answer, others, words = asyncio.run(ask())
    if answer is None:
        known = truncate(", ".join(others)) if others else "none"
        raise SettingsError(f"there is no run {quote(run)}; known: {known}")
    known_scores, age, opened = answer
    if json:
        print_json(known_scores.as_json())
        return
    console = Console(highlight=False, markup=False, emoji=False)
    if age is not None:
        console.print(*(age_line(age) or [f"the log is {duration(age)} old"]))
    name = partial(words.name, "partition")
    for table in tables(run, known_scores, name, opened.unix_start, words.speak):
        console.print(table)


def _state(path: Path, run: str, json: bool, options: list[str]) -> None:
    """Write the statement of a run to a file."""
    require_suffix("--statement", path, ".html", ".pdf")
    if json:
        raise SettingsError("expected --json or --statement, found both")
    with lasting_imports():
        import asyncio

        from shadowtime.replayer.statement import gather, publish, require_printer
        from shadowtime.shared.streaming import read_settings

    require_printer(path)
    publish(asyncio.run(gather(read_settings(options, "live"), run)), path)
