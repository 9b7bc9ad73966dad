"""How a run on the stream stands, live or over: `shadowtime scores RUN`, from the scoreboard's state in Redis."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from shadowtime.services.workers import SEE_SETTINGS, TAKES_SETTINGS
from shadowtime.shared.command_line import run_app
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.start_up import lasting_imports
from shadowtime.shared.wording import quoted, shortened

with lasting_imports():
    from shadowtime.replayer.columns import Column, numbers, seconds, shares
    from shadowtime.replayer.expected_starts import starts_table, words
    from shadowtime.replayer.fitted_table import FittedTable
    from shadowtime.shared.scores import Scores

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def tables(run: str, scores: Scores) -> Iterator[FittedTable]:
    """Yield what is told of a run: its jobs, run times, bounds on waits, and the site's own word on starts."""
    jobs, run_time = scores.policy, scores.run_time
    fared = [numbers("ended", [jobs.jobs], 0), seconds("mean wait", [jobs.mean_wait])]
    fared += [seconds("longest", [jobs.max_wait]), shares("at once", [jobs.zero_wait_share])]
    yield _table("Jobs so far", [*fared, numbers("slowdown", [jobs.mean_bounded_slowdown])], {"run": [run]})
    if run_time.jobs:
        figures = [seconds("error", [run_time.mean_absolute_error]), seconds("of a mean of", [run_time.mean_run_time])]
        figures += [numbers("log score", [run_time.log_score], 3), seconds("CRPS", [run_time.crps])]
        yield _table("Run times predicted", figures, {"run": [run]})
    if bounds := [each for each in scores.wait_bounds if each.queue is None]:
        held = [shares("held", [each.coverage for each in bounds])]
        held += [numbers(name, [getattr(each, name) for each in bounds], 0) for name in ("predictions", "without")]
        names = {
            "bound": [each.grouping for each in bounds],
            "for": [f"{100 * each.quantile:.4g} %" for each in bounds],
        }
        yield _table("Bounds on waits", held, names)
    rows = [
        ("", "all" if each.queue is None else str(each.queue), word)
        for each in scores.expected_starts or ()
        for word in words(each.model_dump())
    ]
    if rows:
        yield starts_table(run, rows)


def _table(title: str, columns: Sequence[Column], names: Mapping[str, Sequence[str]]) -> FittedTable:
    return FittedTable(title, names, [each.unmarked() for each in columns])


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def scores(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run, such as CLUSTER/live.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
) -> None:
    """How does a run stand? What the scoreboard knows of it now, also of one that never ends."""
    with lasting_imports():
        import asyncio

        from rich.console import Console

        from shadowtime.services.pipeline import STAGES
        from shadowtime.services.scoreboard.handler import Scoreboard
        from shadowtime.shared.stage import StageRun
        from shadowtime.shared.streaming.run_follower import RunFollower, reading
        from shadowtime.shared.streaming.settings import read_settings
    settings = read_settings(context.args, "ask")
    stage = STAGES[-1]

    def standing(state: StageRun) -> Scores | None:
        return state.handler.tally.scores() if isinstance(state.handler, Scoreboard) else None

    async def ask() -> tuple[Scores | None, list[str]]:
        async with reading(settings, stage.name) as reader:
            found = await RunFollower(stage, reader, run).ask(standing)
            return found, [] if found else list(await reader.names())

    found, others = asyncio.run(ask())
    if found is None:
        known = shortened(", ".join(others)) if others else "none"
        raise SettingsError(f"there is no run {quoted(run)}; known: {known}")
    if json:
        sys.stdout.buffer.write(found.model_dump_json().encode() + b"\n")
        return
    console = Console(highlight=False, markup=False, emoji=False)
    for table in tables(run, found):
        console.print(table)


def main() -> None:
    """Run the command line."""
    run_app(app)
