"""A progress bar for each run and a line at its end, if there is a terminal."""

import sys
from collections.abc import Callable, Sequence

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from shadowtime.replayer.comparison.plan import RunPlan, RunResult
from shadowtime.replayer.simulation import Observer
from shadowtime.shared.cli import messages
from shadowtime.shared.messages import ClusterClosed, Envelope, JobEnded
from shadowtime.shared.quoting import one_line
from shadowtime.shared.text import sentences

Observers = Sequence[Sequence[Observer]]
"""For each plan, its observers. They receive every envelope that leaves the last stage."""


EVERY = 256
"""Ended jobs between two moves of a bar."""


class ProgressBar:
    """The progress bar of a run: an observer that counts ended jobs. It appears with the first envelope."""

    def __init__(self, progress: Progress, plan: RunPlan, *, exact: bool) -> None:
        self._progress = progress
        self._plan = plan
        self._every = 1 if exact else EVERY
        self._name = f"{one_line(plan.cluster)} {plan.label}"
        self._task: TaskID | None = None
        self._ended = 0

    def __call__(self, envelope: Envelope) -> None:
        """Update the bar with an envelope."""
        task = self._begun()
        if isinstance(envelope.event, ClusterClosed):
            self._progress.update(task, completed=self._ended)
            for sentence in sentences(envelope):
                self._progress.console.print(f"{self._name}: {sentence}", markup=False, highlight=False)
        elif isinstance(envelope.event, JobEnded) and not envelope.event.requeued:
            self._ended += 1
            if self._ended % self._every == 0:
                self._progress.update(task, completed=self._ended)

    def show(self, ended: int) -> None:
        """Show the number of ended jobs of a replay in another process. The bar appears with the first ended job."""
        if ended:
            self._progress.update(self._begun(), completed=ended)

    def _begun(self) -> TaskID:
        if self._task is None:
            self._task = self._progress.add_task(self._name, total=len(self._plan.workload))
        return self._task


def with_progress(
    plans: Sequence[RunPlan],
    observers: Observers,
    carry_out_all: Callable[[Sequence[RunPlan], Observers], list[RunResult]],
    *,
    exact: bool,
) -> list[RunResult]:
    """Run `carry_out_all` with progress bars if there is a terminal, and return its results.

    With `exact`, bars move after every job, else after every 256 jobs.
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages, transient=True, disable=not sys.stderr.isatty()) as progress:
        if not progress.disable:
            bars = [ProgressBar(progress, plan, exact=exact) for plan in plans]
            observers = [[*those, bar] for those, bar in zip(observers, bars, strict=True)]
        return carry_out_all(plans, observers)
