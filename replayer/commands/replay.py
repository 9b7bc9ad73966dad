"""Replay logs, and compare policies: `shadowtime replay [LOG[@PROCESSORS]]…`, `shadowtime compare [LOG]…`."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

from shadowtime.replayer.commands.replay_options import Options
from shadowtime.shared.cli import application, lasting_imports, run_app

INTERRUPTED = "interrupted; no result file was written"

CHOICES: dict[str, object] = {
    "policy": ["fcfs", "easy", "easy-sjbf", "lwf", "wfp", "best"],
    "report": Path("comparison.html"),
}
"""What `compare` takes unless told otherwise; all else is as for `replay`."""


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


replay.__signature__ = signature(Options)  # type: ignore[attr-defined]  # typer asks for what this names


def with_defaults(command: Callable[..., None], defaults: dict[str, object], text: str) -> Callable[..., None]:
    """Return a command that differs from another in some defaults and in what its help says."""

    @wraps(command)
    def changed(*arguments: Any, **options: Any) -> None:
        command(*arguments, **options)

    told = signature(command)
    parameters = [each.replace(default=defaults.get(name, each.default)) for name, each in told.parameters.items()]
    changed.__signature__ = told.replace(parameters=parameters)  # type: ignore[attr-defined]
    changed.__doc__ = text
    return changed


compare = with_defaults(
    replay, CHOICES, "Replay logs under the best-known policies and ours, and write a page that compares them."
)
compare.__name__ = "compare"  # what typer calls it


app = application(replay, compare)


def main() -> None:
    """Run the command line."""
    run_app(app, INTERRUPTED)
