"""How far a campaign is, and how long it will take: one line that is renewed, or one now and then in a pipe."""

import time
from collections.abc import Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from shadowtime.shared.command_line import messages, say
from shadowtime.shared.formatting import duration

Each = TypeVar("Each")
EVERY = 30.0
"""Seconds between two lines in a pipe."""


def with_progress(results: Iterator[Each], total: int) -> Iterator[Each]:
    """Yield what is yielded, and tell how many of them there have been."""
    if not messages.is_terminal:
        yield from _in_lines(results, total)
        return
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        yield from progress.track(results, total=total)


def _in_lines(results: Iterator[Each], total: int) -> Iterator[Each]:
    began = told = time.monotonic()
    for done, each in enumerate(results, 1):
        yield each
        now = time.monotonic()
        if now - told >= EVERY and done < total:
            told = now
            say(f"{done:,} of {total:,} cells, about {duration((now - began) / done * (total - done))} left")
