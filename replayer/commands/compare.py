"""Compare a default set of policies, with a report: `shadowtime compare [LOG]…`."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

from shadowtime.replayer.commands.replay import replay
from shadowtime.replayer.options import NO_FILE
from shadowtime.shared.cli import application

CHOICES: dict[str, object] = {
    "policy": ["fcfs", "easy", "easy-sjbf", "lwf", "wfp", "best"],
    "report": Path("comparison.html"),
    "predictions": True,
}
"""Defaults of `compare` that differ from those of `replay`."""


WITHOUT = {"in_pieces"}
"""Options of `replay` that `compare` lacks, because its page needs all jobs at once."""


def with_defaults(command: Callable[..., None], defaults: dict[str, object], text: str) -> Callable[..., None]:
    """Return a copy of a command with other defaults and another help text, and without the options `WITHOUT`."""

    @wraps(command)
    def changed(*arguments: Any, **options: Any) -> None:
        command(*arguments, **options)

    described = signature(command)
    parameters = [
        parameter.replace(default=defaults.get(name, parameter.default))
        for name, parameter in described.parameters.items()
        if name not in WITHOUT
    ]
    changed.__signature__ = described.replace(parameters=parameters)  # type: ignore[attr-defined]
    changed.__doc__ = text
    return changed


compare = with_defaults(
    replay, CHOICES, "Replay logs under the best-known policies and ours, and write a page that compares them."
)

app = application(compare)
ON_INTERRUPT = NO_FILE
