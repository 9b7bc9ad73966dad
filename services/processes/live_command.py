"""The live page: `shadowtime live`, with the shadows of clusters beside their runs.

This module has only the options. The command imports its implementation when it runs, so help is fast.
"""

from pathlib import Path
from typing import Annotated

import typer

from shadowtime.services.processes.command_line import Allow
from shadowtime.shared.cli import SEE_SETTINGS, TAKES_SETTINGS, lasting_imports, run_app

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def live(
    context: typer.Context,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address of the page.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="Port; 0 for a free one.")] = 6080,
    allow: Allow = None,
    access: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File (TOML) with the rule of who sees whose jobs.")
    ] = None,
) -> None:
    """Serve a live page of runs: queue, machine, decisions with their reasons, bounds.

    Where Redis can be used, the page also gives advice, and shows the shadows of a cluster beside it.
    """
    with lasting_imports():
        import asyncio

        from shadowtime.services.processes.ask import Gate
        from shadowtime.services.processes.live import serve_live
        from shadowtime.shared.cli import start_logging
        from shadowtime.shared.streaming import read_settings

    settings = read_settings(context.args, "live")
    start_logging(settings.log_format, "live")
    gate = None if access is None else Gate.read(access)
    asyncio.run(serve_live(settings, host, port, allow or (), gate))


def main() -> None:
    """Run the command line."""
    run_app(app)
