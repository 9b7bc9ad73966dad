"""All runs of the live page: each has its view, and there is room for so many of them; sans-I/O."""

from collections.abc import Mapping
from typing import Any

from shadowtime.services.processes.live.page_data import overview
from shadowtime.services.processes.live.run_view import LiveView
from shadowtime.shared.bounds import MAX_JOBS_SHOWN
from shadowtime.shared.errors import SequenceGap
from shadowtime.shared.messages import ClusterOpened, Envelope
from shadowtime.shared.stages import SCORES, Stage, StageRun

MAX_RUNS = 50
"""Runs that are remembered; of more, those are forgotten that were told of longest ago, closed ones first."""

LIVE = Stage("live", SCORES, "", LiveView)


class LiveRuns:
    """Every run that is told of, latest last; `version` grows with each event, and with news of shadows."""

    def __init__(self) -> None:
        self.version = 0
        self.behind: Mapping[int, int] = {}
        self._shadows: Mapping[str, int] = {}
        self._runs: dict[str, StageRun] = {}
        self._opened: dict[str, int] = {}
        self.remembered = 0
        """Jobs of all runs that are remembered."""

    def __contains__(self, name: str) -> bool:
        """Return whether a run is remembered."""
        return name in self._runs

    def push(self, envelope: Envelope) -> None:
        """Take in the next envelope of a run; what does not follow the one before it is passed over."""
        if isinstance(envelope.event, ClusterOpened) and envelope.sequence == 0 and envelope.run not in self._runs:
            if len(self._runs) == MAX_RUNS:
                self._forget()
            self._runs[envelope.run] = StageRun(LIVE)
            self._opened[envelope.run] = self.version

        run = self._runs.pop(envelope.run, None)
        if run is None:
            return  # its beginning is no longer there, or it was forgotten
        before = _jobs(run)
        try:
            run.push(envelope)
        except SequenceGap:
            run.spoiled = True

        while self.remembered + _jobs(run) - before > MAX_JOBS_SHOWN and self._runs:
            self._forget()
        self.version += 1
        if run.spoiled or run.handler is None:  # what was never opened, too, is nothing to be shown
            self.remembered -= before
            del self._opened[envelope.run]
            return

        self.remembered += _jobs(run) - before
        self._runs[envelope.run] = run

    def note_shadows(self, shadows: Mapping[str, int]) -> bool:
        """Take in how many shadows each cluster has that has any; return whether that is new."""
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
        """Return the runs, those first that go on, and among these the one that began last."""
        latest_first = sorted(self._runs, key=self._opened.__getitem__, reverse=True)
        return sorted(latest_first, key=lambda name: self.view(name).closed)

    def chosen(self, name: str | None) -> str | None:
        """Return the run that is meant: by default the first of `names`; None where there is none."""
        if name is not None:
            return name if name in self._runs else None
        return next(iter(self.names()), None)

    def state(self, name: str | None) -> dict[str, Any]:
        """Return what the page shows of a run, by default of the first of `names`; and which others there are."""
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
            shown = overview(view) | {"shadows": self._shadows.get(view.opened.cluster, 0)}
        return {"runs": runs, "behind": sum(self.behind.values()), "run": chosen_run, **shown}

    def view(self, name: str) -> LiveView:
        """Return the view of a run that is remembered."""
        view = self._runs[name].handler
        if not isinstance(view, LiveView):
            raise TypeError(f"run {name!r} has not been opened")
        return view


def _jobs(run: StageRun) -> int:
    """Return how many jobs of a run are remembered."""
    return run.handler.remembered if isinstance(run.handler, LiveView) else 0
