"""The queue of a cluster in the terminal: `shadowtime queue [CLUSTER]`.

This module has only the options and the drawing. The command imports its implementation when it runs, so help is fast.
"""

import getpass
import logging
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from shadowtime.shared.cli import INTERRUPTED, SEE_SETTINGS, TAKES_SETTINGS, lasting_imports, run_app, start_logging
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import among, json_text, quote

if TYPE_CHECKING:
    from shadowtime.services.processes.ask import QueueAnswer, QueueQuestion
    from shadowtime.shared.streaming import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

EVERY_SECONDS = 5.0
"""Seconds between two refreshes with `--watch`."""

NARROWEST = 60

ORDERS = ("queue", "start", "waited", "size", "user", "partition", "job")


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def queue(
    context: typer.Context,
    cluster: Annotated[
        str | None, typer.Argument(metavar="[CLUSTER]", help="The cluster; by default the only followed one.")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only jobs of this user.")] = None,
    me: Annotated[bool, typer.Option("--me", help="Only jobs of the user who runs this.")] = False,
    partition: Annotated[
        str | None, typer.Option("--partition", "--queue", metavar="NAME", help="Only jobs of this partition.")
    ] = None,
    sort: Annotated[str, typer.Option(metavar="ORDER", help=f"Order of waiting jobs: {', '.join(ORDERS)}.")] = "queue",
    run: Annotated[str | None, typer.Option(metavar="NAME", help="A run; by default the followed one.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every 5 s.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Show the jobs that wait, with their expected starts, and those that run, with their expected ends.

    Times count from the time of the log. START is the expected start. With a probability of 80 %, the job starts in the
    interval of column 80 %; with 95 %, before the time of column 95 %. Columns are left out until the table fits.
    """
    if sort not in ORDERS:
        raise SettingsError(f"--sort {quote(sort)}: unknown order{among(sort, ORDERS)}")
    if me and user is not None:
        raise SettingsError("--me and --user exclude each other; leave one of them out")
    if json + as_csv + watch > 1:
        raise SettingsError("expected one of --json, --csv and --watch; found several")
    with lasting_imports():
        import asyncio

        from shadowtime.services.processes.ask import QueueQuestion, queue_csv, queue_lines, read_as
        from shadowtime.shared.errors import Unanswerable
        from shadowtime.shared.streaming import read_settings

    settings = read_settings(context.args, "ask")
    start_logging(settings.log_format, "queue", logging.WARNING)
    asked = {"cluster": cluster, "run": run, "user": _own_name() if me else user, "queue": partition, "newcomer": me}

    def shown(answer: "QueueAnswer") -> str:
        if json:
            return json_text(answer.as_json()).decode() + "\n"
        if as_csv:
            return queue_csv(answer, sort)
        return "\n".join(queue_lines(answer, _width(), sort)) + "\n"

    screen = Screen(sys.stdout.write) if watch else None
    try:
        question = read_as(QueueQuestion, {name: value for name, value in asked.items() if value is not None})
        asyncio.run(_show(settings, question, shown, screen))
    except Unanswerable as error:
        known = {"queue": "--partition", "cluster": "CLUSTER"}
        option = "" if error.parameter is None else f"{known.get(error.parameter, f'--{error.parameter}')}: "
        raise SettingsError(f"{option}{error.reason}") from None
    except KeyboardInterrupt:  # the normal way to end --watch
        sys.exit(INTERRUPTED)
    finally:
        if screen is not None:
            screen.leave()


def _own_name() -> str:
    """Return the name of the user who runs this. Raise `SettingsError` if there is none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an OSError since Python 3.13
        raise SettingsError("--me: your user has no name on this machine; give it with --user NAME") from None


async def _show(
    settings: "Settings", question: "QueueQuestion", shown: Callable[["QueueAnswer"], str], screen: "Screen | None"
) -> None:
    import asyncio

    from shadowtime.services.processes.ask import queues

    async with queues(settings) as answers:
        while True:
            text = shown(await answers.queue(question))
            if screen is None:
                sys.stdout.buffer.write(text.encode())
                sys.stdout.buffer.flush()
                return
            screen.draw(text.splitlines()[: shutil.get_terminal_size((80, 24)).lines])
            await asyncio.sleep(EVERY_SECONDS)


def _width() -> int:
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


class Screen:
    r"""The screen of a terminal. Only the lines that have changed are written.

    >>> written = []
    >>> screen = Screen(written.append)
    >>> screen.draw(["a", "b"]); screen.draw(["a", "c"])
    >>> written[-1]
    '\x1b[2;1Hc\x1b[K'
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._lines: list[str] | None = None

    def draw(self, lines: list[str]) -> None:
        """Write the lines that differ from the last ones, and clear the lines below."""
        if self._lines is None:
            self._write("\x1b[?1049h\x1b[2J")
        before = self._lines or []
        for at in range(max(len(lines), len(before))):
            line = lines[at] if at < len(lines) else ""
            if at >= len(before) or before[at] != line:
                self._write(f"\x1b[{at + 1};1H{line}\x1b[K")
        self._lines = lines
        sys.stdout.flush()

    def leave(self) -> None:
        """Return to the screen before the first drawing."""
        if self._lines is not None:
            self._write("\x1b[?1049l")
            sys.stdout.flush()


def main() -> None:
    """Run the command line."""
    run_app(app)
