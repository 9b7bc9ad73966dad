"""Replay logs: `shadowtime replay [LOG[@PROCESSORS]]…`."""

from inspect import signature
from typing import Any

from shadowtime.replayer.commands.replay_options import Options
from shadowtime.replayer.options import NO_FILE
from shadowtime.shared.cli import application, lasting_imports


def replay(**typed: Any) -> None:
    """Replay batch logs through the whole pipeline, and compare policies on the same work."""
    options = Options(**typed)
    if options.list_:
        from shadowtime.replayer.presentation import print_catalogue

        print_catalogue(options.traces or [])
        return

    with lasting_imports():
        from shadowtime.replayer.commands.replay_run import compare_logs
    compare_logs(options)


replay.__signature__ = signature(Options)  # type: ignore[attr-defined]  # typer reads the options from it


app = application(replay)
ON_INTERRUPT = NO_FILE
