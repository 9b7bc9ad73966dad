"""Workers, one command each: `shadowtime serve`.

This module has only the commands. A command imports its implementation when it runs, so help is fast.
"""

import os
from itertools import pairwise

import typer

from shadowtime.shared.cli import SEE_SETTINGS, TAKES_SETTINGS, lasting_imports, run_app
from shadowtime.shared.stages import FLOW, WRITTEN_BY

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help="Run a worker, until SIGTERM."
)


def add_worker(stage: str, reads: str, writes: str) -> None:
    """Add the command that runs one stage as a worker."""

    @app.command(
        stage, context_settings=TAKES_SETTINGS, help=f"Run one worker: {reads} to {writes}.", epilog=SEE_SETTINGS
    )
    def work(context: typer.Context) -> None:
        with lasting_imports():
            from shadowtime.services.processes.worker_start import serve_stage
        serve_stage(stage, context.args)


for name, (before, behind) in zip(WRITTEN_BY, pairwise(FLOW), strict=True):
    add_worker(name, before, behind)


@app.command(context_settings=TAKES_SETTINGS, epilog=SEE_SETTINGS)
def metrics(context: typer.Context) -> None:
    """Write the scoreboard's samples to VictoriaMetrics and, where Grafana is named, show decisions in Grafana Live."""
    with lasting_imports():
        from shadowtime.services.processes.worker_start import serve_metrics
    serve_metrics(context.args)


def main() -> None:
    """Run the command line. Other users cannot read the files that it writes."""
    os.umask(0o077)
    run_app(app)
