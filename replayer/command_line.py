"""Replay logs: `shadowtime replay [LOG[@PROCESSORS]]…`."""

from inspect import signature
from typing import Any

from shadowtime.replayer.replay_options import Options
from shadowtime.shared.command_line import application, run_app
from shadowtime.shared.start_up import lasting_imports

INTERRUPTED = "interrupted; no result file was written"


def compare(**typed: Any) -> None:
    """Replay batch logs through the whole pipeline, and compare policies on the same work."""
    options = Options(**typed)
    if options.list_:
        from shadowtime.replayer.catalogue_table import print_catalogue

        print_catalogue(options.traces or [])
        return
    with lasting_imports():
        from shadowtime.replayer.compare import compare_logs
    compare_logs(options)


compare.__signature__ = signature(Options)  # type: ignore[attr-defined]  # typer asks for what this names


app = application(compare)


def main() -> None:
    """Run the command line."""
    run_app(app, INTERRUPTED)
