"""What the live page shows of each run, kept up to date by its envelopes; sans-I/O and of bounded size."""

from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Any

from shadowtime.shared.bounds import MAX_JOBS_SHOWN
from shadowtime.shared.errors import SequenceGap
from shadowtime.shared.events import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Rejected,
)
from shadowtime.shared.formatting import chosen, clock, lines
from shadowtime.shared.jobs_in_system import RunningJob
from shadowtime.shared.predictions import Coverage, WaitBound
from shadowtime.shared.scores import PolicyScores
from shadowtime.shared.stage import Stage, StageRun
from shadowtime.shared.stage_handler import StageHandler
from shadowtime.shared.topics import SCORES

MAX_RUNS = 50
"""Runs that are remembered; of more, those are forgotten that were told of longest ago, closed ones first."""

INSTANTS = 300
DECISIONS = 40
QUEUE_SHOWN = 25


class LiveView(StageHandler):
    """One run: its jobs, as every stage knows them, and what happened last."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self.busy = 0
        self.started = 0
        self.ended = 0
        self.wait = 0
        self.longest_wait = 0
        self.history: deque[tuple[int, int, int, int]] = deque(maxlen=INSTANTS)
        self.decisions: deque[dict[str, Any]] = deque(maxlen=DECISIONS)
        self.bounds: dict[int, int] = {}
        self.last_bounds: tuple[WaitBound, ...] = ()
        self.coverage: dict[tuple[str, int | None], Coverage] = {}
        self.scores: PolicyScores | None = None
        self.quarantined: str | None = None

    def handle(self, envelope: Envelope) -> Envelope:
        """Take in an event; when it is the first of an instant, note how the one before it ended."""
        if envelope.event.time > self.time and not isinstance(envelope.event, Rejected):
            self.history.append((self.time, self.busy, len(self.jobs.waiting), self.processors))
        return super().handle(envelope)

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Keep a bound on the wait of the job, and all that were issued last."""
        bound = chosen(envelope.wait_bounds)
        if bound is not None and bound.bound is not None:
            self.bounds[job.job_number] = bound.bound
        if envelope.wait_bounds:
            self.last_bounds = tuple(each for each in envelope.wait_bounds if each.queue is None)
        return envelope

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Count its processors as busy."""
        self.busy += started.processors
        return envelope

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Count the wait."""
        self.started += 1
        self.wait += wait
        self.longest_wait = max(self.longest_wait, wait)
        self.bounds.pop(job.job_number, None)
        self.coverage |= {(each.grouping, each.queue): each for each in envelope.coverage}
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Count its processors as free."""
        self.busy -= job.started.processors
        self.ended += not ended.requeued
        return envelope

    def on_decided(self, envelope: Envelope, decided: Decided) -> Envelope:
        """Note what was decided, and why."""
        for line in lines(envelope):
            self.decisions.append({"time": clock(decided.time), "job": line.job, "what": line.event, "why": line.words})
        return envelope

    def on_rejected(self, envelope: Envelope, rejected: Rejected) -> Envelope:
        """Note that a stage has quarantined the run: nothing more will come of it."""
        if rejected.code == "quarantined":
            self.quarantined = rejected.reason
        return envelope

    def on_closed(self, envelope: Envelope, closed: ClusterClosed) -> Envelope:
        """Keep the scores."""
        self.scores = None if envelope.scores is None else envelope.scores.policy
        return envelope

    def state(self) -> dict[str, Any]:
        """Return what the page shows; times in seconds, those of the day in words."""
        return {
            "cluster": self.opened.cluster,
            "policy": self.opened.policy,
            "mode": self.opened.mode,
            "clock": clock(self.time),
            "closed": self.closed,
            "quarantined": self.quarantined,
            "processors": self.processors,
            "busy": self.busy,
            "waiting": len(self.jobs.waiting),
            "running": len(self.jobs.running),
            "ended": self.ended,
            "mean_wait": self.wait / self.started if self.started else None,
            "longest_wait": self.longest_wait if self.started else None,
            "queue": [self._waiting(job) for job in islice(self.jobs.waiting.values(), QUEUE_SHOWN)],
            "history": [*self.history, (self.time, self.busy, len(self.jobs.waiting), self.processors)],
            "decisions": list(reversed(self.decisions)),
            "bounds": [
                {"grouping": each.grouping, "quantile": each.quantile, "bound": each.bound, "reason": each.reason}
                | self._covered(each.grouping)
                for each in self.last_bounds
            ],
            "scores": None if self.scores is None else self.scores.model_dump(),
        }

    def _waiting(self, job: JobSubmitted) -> dict[str, Any]:
        return {
            "job": job.job_number,
            "user": job.user_id,
            "processors": job.requested_processors,
            "requested_time": job.requested_time,
            "waited": self.time - job.time,
            "bound": self.bounds.get(job.job_number),
        }

    def _covered(self, grouping: str) -> dict[str, Any]:
        found = self.coverage.get((grouping, None))
        return {"covered": None if found is None else found.covered, "revealed": 0 if found is None else found.revealed}


LIVE = Stage("live", SCORES, "", LiveView)


class LiveRuns:
    """Every run that is told of, latest last; `version` grows with each event."""

    def __init__(self) -> None:
        self.version = 0
        self.behind: Mapping[int, int] = {}
        self._runs: dict[str, StageRun] = {}
        self._jobs = 0

    def __contains__(self, name: str) -> bool:
        """Return whether a run is remembered."""
        return name in self._runs

    def push(self, envelope: Envelope) -> None:
        """Take in the next envelope of a run; what does not follow the one before it is passed over."""
        if isinstance(envelope.event, ClusterOpened) and envelope.sequence == 0 and envelope.run not in self._runs:
            if len(self._runs) == MAX_RUNS:
                self._forget()
            self._runs[envelope.run] = StageRun(LIVE)
        run = self._runs.pop(envelope.run, None)
        if run is None:
            return  # its beginning is no longer there, or it was forgotten
        before = _jobs(run)
        try:
            run.push(envelope)
        except SequenceGap:
            run.spoiled = True
        while self._jobs + _jobs(run) - before > MAX_JOBS_SHOWN and self._runs:
            self._forget()
        self.version += 1
        if run.spoiled or run.handler is None:  # what was never opened, too, is nothing to be shown
            self._jobs -= before
            return
        self._jobs += _jobs(run) - before
        self._runs[envelope.run] = run

    def _forget(self) -> None:
        closed = (name for name in self._runs if self._view(name).closed)
        self._jobs -= _jobs(self._runs.pop(next(closed, next(iter(self._runs)))))

    def names(self) -> list[str]:
        """Return the runs, those first that go on, and among these the one told of last."""
        latest_first = list(reversed(self._runs))
        return sorted(latest_first, key=lambda name: self._view(name).closed)

    def state(self, name: str | None) -> dict[str, Any]:
        """Return what the page shows of a run, by default of the first of `names`; and which others there are."""
        names = self.names()
        found = name if name in self._runs else None
        if found is None and name is None and names:
            found = names[0]
        runs = [
            {"run": each, "cluster": view.opened.cluster, "policy": view.opened.policy, "closed": view.closed}
            for each, view in ((each, self._view(each)) for each in names)
        ]
        shown = None if found is None else {"run": found} | self._view(found).state()
        return {"runs": runs, "behind": sum(self.behind.values()), "shown": shown}

    def _view(self, name: str) -> LiveView:
        view = self._runs[name].handler
        if not isinstance(view, LiveView):
            raise TypeError(f"run {name!r} has not been opened")
        return view


def _jobs(run: StageRun) -> int:
    """Return how many jobs of a run wait or run."""
    return 0 if run.handler is None else len(run.handler.jobs.waiting) + len(run.handler.jobs.running)
