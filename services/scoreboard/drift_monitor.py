"""Monitor of a run's predictions: when they held, when they did not, and the alarms to publish.

See docs/algorithms.md#drift.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shadowtime.services.scoreboard.drift_scopes import DriftWatch, Outcomes, Owner, Statistic, add_to
from shadowtime.services.scoreboard.scores import WaitBoundCoverage
from shadowtime.shared.bounds import MAX_DRIFTS, MAX_EPISODES
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import (
    HALF,
    LONGER,
    OFF,
    OUTSIDE,
    SHORTER,
    TOO_SHORT,
    TWICE,
    Drift,
    DriftEpisode,
    DriftScores,
    JobSubmitted,
    RunTimePrediction,
    adjustment_class,
)

# Degrees of failure of a job's predictions, each in 0 to 1. Drift is detected from them: docs/algorithms.md#drift.

TENTH: Final = 0.1
"""Share of jobs that end in the first tenth, and in the last tenth, of their distributions if predictions hold."""

IN_THE_LAST: Final = Statistic("run_time", LONGER, TENTH)
IN_THE_FIRST: Final = Statistic("run_time", SHORTER, TENTH)
IN_EITHER: Final = Statistic("run_time", OUTSIDE, 2 * TENTH)
TWICE_AS_LONG: Final = Statistic("run_time", TWICE, 0.0)
HALF_AS_LONG: Final = Statistic("run_time", HALF, 0.0)
BADLY_ADJUSTED: Final = Statistic("adjustment", TOO_SHORT, 0.0)
BADLY_FORECAST: Final = Statistic("forecast", OFF, 0.0)

Outcome = tuple[Statistic, float]


def of_point(prediction: RunTimePrediction, run_time: int) -> list[Outcome]:
    """Return the outcomes of the point of a run-time prediction. `run_time` is in seconds.

    >>> example = RunTimePrediction(point=100.0, observations=3)
    >>> [(statistic.what, failed) for statistic, failed in of_point(example, 300)]
    [('twice', 1.0), ('half', 0.0)]
    """
    point = prediction.point
    return [(TWICE_AS_LONG, float(run_time > 2 * point)), (HALF_AS_LONG, float(2 * run_time < point))]


def of_tenths(first: float, last: float) -> list[Outcome]:
    """Return the outcomes of a predicted distribution: the job's shares of the first and of the last tenth.

    They are shares of the probability integral transform.
    """
    return [(IN_THE_LAST, last), (IN_THE_FIRST, first), (IN_EITHER, min(first + last, 1.0))]


def of_adjustment(run_time: int, requested_time: int, adjusted_time: int) -> list[Outcome]:
    """Return the outcome of an adjusted request: whether it was too short by half an hour or more. Times in seconds.

    The list is empty if the adjusted time equals the request.
    """
    outcome = adjustment_class(run_time, requested_time, adjusted_time)
    return [] if outcome == "none" else [(BADLY_ADJUSTED, float(outcome == "bad"))]


def of_forecast(forecast: int, wait: int) -> Outcome:
    """Return the outcome of a wait forecast: |forecast - wait| / (forecast + wait); 0 if both are 0. Times in seconds.

    >>> of_forecast(100, 100)[1], of_forecast(0, 60)[1], of_forecast(30, 10)[1]
    (0.0, 1.0, 0.5)
    """
    return BADLY_FORECAST, abs(forecast - wait) / max(forecast + wait, 1)


Key = tuple[str, str, str, int | None]


class PredictionsHeld:
    """Drift detector of a run, and its alarms. The caller adds each outcome when it becomes known. Memory is bounded.

    A wait counts as a miss on the day on which it exceeds its bound. The day on which the job starts would be too late,
    because long waits are known last.
    """

    def __init__(self) -> None:
        self.watch = DriftWatch()
        self.episodes: list[DriftEpisode] = []
        self.left_out = 0
        self.alarms: dict[Key, Drift] = {}
        """Alarms that have not ended."""
        self.unpublished: list[Drift] = []
        self.outlived: dict[int, int] = {}
        """Bounds that were already counted as missed, by waiting job: a bit mask over the bounds of the job."""

    def due(self, time: int) -> bool:
        """Return whether `enter` has an effect at `time`, in seconds."""
        return self.watch.day is None or time // DAY > self.watch.day

    def enter(self, time: int, waiting: Mapping[int, JobSubmitted], coverage: WaitBoundCoverage) -> None:
        """Test the last day if it has ended by `time`. Call this before you add an outcome of the new day.

        `waiting` has the waiting jobs by number. A bound counts as missed on that day if a waiting job exceeded it by
        the end of the day.
        """
        watch = self.watch
        if not self.due(time):
            return
        if watch.due(time) and watch.day is not None:
            over = (watch.day + 1) * DAY
            for number in coverage.waiting:
                if (job := waiting.get(number)) is not None and job.since < over:
                    self._bounds(job, _owner(job), coverage, over - job.since, started=False)

        for drift in watch.close(time):
            self._note(drift, time)

    def _note(self, drift: Drift, time: int) -> None:
        self.unpublished.append(drift)
        if drift.holds:
            began = self.alarms.pop(drift.key)
            for place in range(len(self.episodes) - 1, -1, -1):
                episode = self.episodes[place]
                if episode.until is None and (episode.of, episode.what, episode.scope, episode.number) == began.key:
                    self.episodes[place] = episode.model_copy(update={"until": time})
                    break

            return

        self.alarms[drift.key] = drift
        if len(self.episodes) < MAX_EPISODES:
            self.episodes.append(DriftEpisode(**drift.model_dump(exclude={"holds"}), told=time))
        else:
            self.left_out += 1

    def take_drifts(self) -> tuple[Drift, ...]:
        """Return the next drifts to publish, at most `MAX_DRIFTS`, and drop them from the queue."""
        drifts, self.unpublished = tuple(self.unpublished[:MAX_DRIFTS]), self.unpublished[MAX_DRIFTS:]
        return drifts

    def run_time(self, job: JobSubmitted, prediction: RunTimePrediction, run_time: int) -> Outcomes | None:
        """Add the outcomes of a run-time prediction by its point. `run_time` is in seconds.

        Return the cell to which the outcomes by tenths (`of_tenths`) are added before the day is closed. A guess, based
        on no ended job, has no outcomes.
        """
        if not prediction.observations:
            return None
        cell = self.watch.cell("all", _owner(job))
        if cell is not None:
            add_to(cell, of_point(prediction, run_time))
            if IN_EITHER not in cell and any(prediction.histogram):
                cell |= {statistic: [0.0, 0] for statistic, _ in of_tenths(0.0, 0.0)}
        return cell

    def adjustment(self, job: JobSubmitted, requested_time: int, adjusted_time: int, run_time: int) -> None:
        """Add the outcome of an adjusted request. Times in seconds."""
        self.watch.add("all", _owner(job), of_adjustment(run_time, requested_time, adjusted_time))

    def wait(self, job: JobSubmitted, wait: int, coverage: WaitBoundCoverage, forecast: int | None) -> None:
        """Add the outcomes of a known wait, and of its forecast if there is one; both in seconds.

        Call this before `coverage` drops the job's bounds.
        """
        owner = _owner(job)
        self._bounds(job, owner, coverage, wait, started=True)
        self.outlived.pop(job.job_number, None)
        if forecast is not None:
            self.watch.add("all", owner, (of_forecast(forecast, wait),))

    def withdraw(self, job: JobSubmitted, waited: int, coverage: WaitBoundCoverage) -> None:
        """Add the misses of a job that left the queue without starting, after `waited` seconds.

        Call this before `coverage` drops the job's bounds.
        """
        self._bounds(job, _owner(job), coverage, waited, started=False)
        self.outlived.pop(job.job_number, None)

    def _bounds(
        self, job: JobSubmitted, owner: Owner, coverage: WaitBoundCoverage, waited: int, *, started: bool
    ) -> None:
        kept = coverage.waiting.get(job.job_number)
        if kept is None:
            return
        before = self.outlived.get(job.job_number, 0)
        missed = {
            place: float(bound < waited)
            for place, bound in enumerate(kept.bounds)
            if bound is not None and (started or bound < waited) and not before >> place & 1
        }
        for reach, queue, misses in kept.of.by_reach(tuple(missed), kept.shown):
            outcomes = [(miss, missed[place]) for place, miss in misses]
            self.watch.add(reach, owner if queue is None else owner._replace(queue=queue), outcomes)

        if missed and not started:
            self.outlived[job.job_number] = before | sum(1 << place for place in missed)

    def scores(self) -> DriftScores | None:
        """Return the episodes in which predictions did not hold, or None before a day with outcomes has ended."""
        if not self.watch.days:
            return None
        return DriftScores(days=self.watch.days, episodes=tuple(self.episodes), left_out=self.left_out)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return {
            "watch": self.watch.snapshot(),
            "episodes": [episode.model_dump() for episode in self.episodes],
            "left_out": self.left_out,
            "alarms": [alarm.model_dump() for alarm in self.alarms.values()],
            "untold": [drift.model_dump() for drift in self.unpublished],
            "outlived": list(self.outlived.items()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.watch.restore(state["watch"])
        self.episodes = [DriftEpisode.model_validate(episode) for episode in state["episodes"]]
        self.left_out = state["left_out"]
        alarms: Iterable[Drift] = map(Drift.model_validate, state["alarms"])
        self.alarms = {alarm.key: alarm for alarm in alarms}
        self.unpublished = [Drift.model_validate(drift) for drift in state["untold"]]
        self.outlived = dict(state["outlived"])


def _owner(job: JobSubmitted) -> Owner:
    return Owner(job.user_id, job.queue_number, job.partition_number)
