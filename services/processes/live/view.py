"""All runs of the live page, each with its view. Their number is bounded. Sans-I/O."""

import logging
from collections.abc import Mapping
from typing import Any

from shadowtime.services.processes.ask import NO_WORDS, ClusterWords
from shadowtime.services.processes.live.page_data import overview
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.shared.bounds import MAX_JOBS_SHOWN
from shadowtime.shared.errors import SequenceGap
from shadowtime.shared.messages import SHADOW, ClusterOpened, Envelope, current_run, run_name
from shadowtime.shared.quoting import quote
from shadowtime.shared.stages import SCORES, Stage, StageRun

MAX_RUNS = 50
"""The maximum number of remembered runs. Closed runs are forgotten first, then runs with the oldest last event."""

MAX_NOTED = 1_000
"""The maximum number of runs without a known beginning that are remembered."""

log = logging.getLogger("shadowtime.live")

LIVE = Stage("live", SCORES, "", LiveView)


class LiveRuns:
    """The remembered runs. The run with the latest event comes last.

    `version` counts events and changes of shadows. `behind` has the number of unread messages, by partition.
    """

    def __init__(self) -> None:
        self.version = 0
        self.behind: Mapping[int, int] = {}
        self._shadows: Mapping[str, int] = {}
        self._runs: dict[str, StageRun] = {}
        self._opened: dict[str, int] = {}
        self._headless: dict[str, str | None] = {}
        """The cluster of each run whose beginning Kafka no longer has, and None for each run that was opened here."""
        self.remembered = 0
        """The number of remembered jobs of all runs."""

    def __contains__(self, name: str) -> bool:
        """Return whether a run is remembered."""
        return name in self._runs

    def push(self, envelope: Envelope) -> None:
        """Apply the next envelope of a run. Ignore duplicates. Forget a run that fails or has a gap in its sequence."""
        if isinstance(envelope.event, ClusterOpened) and envelope.sequence == 0 and envelope.run not in self._runs:
            if len(self._runs) == MAX_RUNS:
                self._forget()
            self._runs[envelope.run] = StageRun(LIVE)
            self._opened[envelope.run] = self.version
            self._note_beginning(envelope.run, None)

        run = self._runs.pop(envelope.run, None)
        if run is None:  # the beginning of the run was not read, or the run was forgotten
            if envelope.run not in self._headless:
                log.warning("run %s is not shown: Kafka no longer has its beginning", quote(envelope.run))
                self._note_beginning(envelope.run, envelope.cluster)
            return
        before = _jobs(run)
        try:
            run.push(envelope)
        except SequenceGap:
            run.spoiled = True

        while self.remembered + _jobs(run) - before > MAX_JOBS_SHOWN and self._runs:
            self._forget()
        self.version += 1
        if run.spoiled or run.handler is None:  # without its opening event, a run cannot be shown
            self.remembered -= before
            del self._opened[envelope.run]
            return

        self.remembered += _jobs(run) - before
        self._runs[envelope.run] = run

    def _note_beginning(self, run: str, cluster: str | None) -> None:
        self._headless.pop(run, None)
        self._headless[run] = cluster
        if len(self._headless) > MAX_NOTED:
            del self._headless[next(iter(self._headless))]

    def headless(self, cluster: str | None) -> list[str]:
        """Return the runs of a cluster, or of all clusters, whose beginning Kafka no longer has."""
        return sorted(run for run, of in self._headless.items() if of is not None and cluster in (None, of))

    def note_shadows(self, shadows: Mapping[str, int]) -> bool:
        """Record the number of shadows of each cluster with shadows. Return whether any number has changed."""
        if shadows == self._shadows:
            return False
        self._shadows = dict(shadows)
        self.version += 1
        return True

    def _forget(self) -> None:
        closed = (name for name in self._runs if self.view(name).closed)
        name = next(closed, next(iter(self._runs)))
        self.remembered -= _jobs(self._runs.pop(name))
        del self._opened[name]

    def names(self) -> list[str]:
        """Return the names of open runs, open shadows, closed runs, closed shadows, the latest opened of each first.

        A shadow is opened after the cluster that it shadows, but is not the one to show first.
        """

        def order(name: str) -> tuple[bool, bool]:
            view = self.view(name)
            return view.closed, name.startswith(run_name(view.opened.cluster, SHADOW, ""))

        latest_first = sorted(self._runs, key=self._opened.__getitem__, reverse=True)
        return sorted(latest_first, key=order)

    def chosen(self, name: str | None) -> str | None:
        """Return the run to show: the run called `name`, by default the first of `names`. None if there is none."""
        if name is not None:
            return name if name in self._runs else None
        return next(iter(self.names()), None)

    def followed(self, cluster: str | None = None) -> str | None:
        """Return the run that follows a cluster, by default the newest such cluster; None if there is none."""
        views = {name: view for name in self.names() if (view := self.view(name)).followed}
        if cluster is None:
            cluster = next((view.opened.cluster for view in views.values()), "")
        ends = {name: view.opened.unix_start + view.time for name, view in views.items()}
        return current_run(cluster, {name: end for name, end in ends.items() if views[name].opened.cluster == cluster})

    def state(self, name: str | None, words: ClusterWords = NO_WORDS) -> dict[str, Any]:
        """Return the state of the page of a run, by default the first of `names`, with the list of all runs."""
        chosen_run = self.chosen(name)
        runs = [
            {
                "run": run,
                "cluster": view.opened.cluster,
                "name": view.opened.name or view.opened.policy,
                "closed": view.closed,
            }
            for run, view in ((run, self.view(run)) for run in self.names())
        ]
        shown: dict[str, Any] = {}
        if chosen_run is not None:
            view = self.view(chosen_run)
            shown = overview(view, words) | {"shadows": self._shadows.get(view.opened.cluster, 0)}
        return {"runs": runs, "behind": sum(self.behind.values()), "run": chosen_run, **shown}

    def view(self, name: str) -> LiveView:
        """Return the view of a run that is remembered.

        Raises
        ------
        KeyError
            If no run of that name is remembered.
        TypeError
            If the run has not been opened.
        """
        view = self._runs[name].handler
        if not isinstance(view, LiveView):
            raise TypeError(f"run {name!r} has not been opened")
        return view


def _jobs(run: StageRun) -> int:
    """Return how many jobs of a run are remembered."""
    return run.handler.remembered if isinstance(run.handler, LiveView) else 0
