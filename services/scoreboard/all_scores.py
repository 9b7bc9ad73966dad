"""All counts of a run so far, from which its scores are computed."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from shadowtime.services.scoreboard.drift_monitor import PredictionsHeld, of_tenths
from shadowtime.services.scoreboard.drift_scopes import Outcomes, add_to
from shadowtime.services.scoreboard.scores import (
    Calibration,
    Capacity,
    ExpectedStarts,
    MemberRecord,
    PredictionWorkload,
    RunTimeDistributionScores,
    RunTimeErrors,
    SaidProbabilities,
    StartDistributions,
    StartsBy,
    WaitBoundCoverage,
    WaitForecastErrors,
    WaitScores,
    WalltimeAccuracy,
)
from shadowtime.shared.bounds import saturated, storable
from shadowtime.shared.messages import Happenings, JobEnded, JobSubmitted, PolicyScores, RunTimePrediction, Scores

COUNTERS = (
    *("waits", "run_times", "workload", "distributions", "accuracy", "calibration", "coverage", "forecasts"),
    *("starts", "cuts", "expected", "starts_by", "capacity", "held"),
)
"""Attributes of `Tally` whose snapshots are stored under the names of the attributes."""

NUMBERS = ("scheduling_points", "ended_at_limit", "killed")


class Tally:
    """The counters of a run, one for each kind of score. `Scoreboard` adds the events to them."""

    def __init__(self) -> None:
        self.waits = WaitScores()
        self.run_times = RunTimeErrors()
        self.workload = PredictionWorkload()
        self.distributions = RunTimeDistributionScores()
        self.accuracy = WalltimeAccuracy()
        self.calibration = Calibration()
        self.coverage = WaitBoundCoverage()
        self.forecasts = WaitForecastErrors()
        self.starts = StartDistributions()
        self.cuts = SaidProbabilities()
        self.expected = ExpectedStarts()
        self.starts_by = StartsBy()
        self.capacity = Capacity()
        self.members = MemberRecord()
        self.held = PredictionsHeld()
        self.happenings: Counter[str] = Counter()
        self.scheduling_points = 0
        self.ended_at_limit = 0
        self.killed = 0
        self.wasted_processor_seconds = 0

    def end(
        self, job: JobSubmitted, ended: JobEnded, prediction: RunTimePrediction | None, adjusted_time: int | None
    ) -> None:
        """Score the run-time prediction and the adjusted request of an ended job.

        `adjusted_time`, in seconds, equals the request if it was not adjusted; None without a request. A killed job
        counts only in the errors of point predictions, because its full run time is unknown.
        """
        run_time, requested_time = ended.own_run_time, job.requested_time
        self.run_times.add(None if prediction is None else prediction.point, requested_time, run_time)
        if ended.outcome == "killed":
            return
        if prediction is not None:
            cell = self.held.run_time(job, prediction, run_time)
            cut = None if requested_time is None else ended.outcome == "limit"
            self.distributions.add(prediction, requested_time, run_time, partial(self._scored, cell, cut))
        if requested_time is not None and adjusted_time is not None:
            self.accuracy.add(run_time, requested_time, adjusted_time)
            if adjusted_time != requested_time:
                self.held.adjustment(job, requested_time, adjusted_time, run_time)

    def _scored(self, cell: Outcomes | None, cut: bool | None, first: float, last: float, at_limit: float) -> None:
        """Add what follows from the score of a distribution to its cell, and to the probabilities of an end by a limit.

        `cut` is whether the limit ended the job; None without a limit.
        """
        if cell is not None:
            add_to(cell, of_tenths(first, last))
        if cut is not None:
            self.cuts.add(at_limit, came=cut)

    def enter(self, time: int, waiting: Mapping[int, JobSubmitted]) -> None:
        """Test the last day for drifts if it has ended by `time`. Call this before you add an event of the new day.

        `waiting` has the waiting jobs by number.
        """
        if self.held.due(time):
            self.distributions.fold()
            self.held.enter(time, waiting, self.coverage)

    def scores(self) -> Scores:
        """Return the scores over all events so far."""
        self.waits.fold()
        self.distributions.fold()
        run_times = self.run_times.scores()
        return Scores(
            policy=PolicyScores(
                **self.waits.summary(self.capacity.until(self.waits.last_end)),
                ended_at_limit=self.ended_at_limit,
                killed=self.killed,
                wasted_processor_seconds=saturated(self.wasted_processor_seconds),
                scheduling_points=self.scheduling_points,
            ),
            run_time=run_times.model_copy(update=self.distributions.summary()),
            adjustment=self.accuracy.scores(),
            calibration=self.calibration.scores(),
            wait_bounds=self.coverage.scores(),
            wait_forecast=self.forecasts.scores(),
            starts=self.starts.scores(),
            cuts=self.cuts.scores(),
            portfolio=self.members.scores(),
            happenings=Happenings(**self.happenings) if self.happenings else None,
            expected_starts=self.expected.scores(),
            starts_by=self.starts_by.scores(),
            drifts=self.held.scores(),
            prediction_workload=self.workload.scores(run_times.mean_run_time),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        self.distributions.fold()
        return {
            **{name: getattr(self, name).snapshot() for name in COUNTERS},
            **self.members.snapshot(),
            "happenings": dict(self.happenings),
            **{name: getattr(self, name) for name in NUMBERS},
            **storable({"wasted_processor_seconds": self.wasted_processor_seconds}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        state = {"starts_by": (), **state}  # a state of an older version lacks this key
        for name in COUNTERS:
            getattr(self, name).restore(state[name])

        self.members.restore(state)
        self.happenings = Counter(state["happenings"])
        for name in NUMBERS:
            setattr(self, name, state[name])

        self.wasted_processor_seconds = int(state["wasted_processor_seconds"])
