"""The story of one job, from its submission to its end, with the prediction of each stage beside the outcome."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shadowtime.shared.formatting import clock
from shadowtime.shared.messages import (
    Drift,
    Envelope,
    JobEnded,
    JobExpected,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    WaitBound,
    describe_drift,
    moment,
    whose,
)
from shadowtime.shared.stages import RunningJob, StartPredictions

NOTES = 30
"""The maximum number of decisions that a story keeps. The oldest are dropped first."""


class Weighed(NamedTuple):
    """The last evaluation of a candidate that was not started: its time, the head, and the delay probability."""

    time: int
    head: int
    probability: float


class Bounded(NamedTuple):
    """A bound on the wait, in seconds. If there is none, `reason` says why.

    `bound` is from above, `lower` from below; either is None if waits are not bounded on this side.
    """

    grouping: str
    quantile: float
    bound: int | None
    reason: str | None
    lower: int | None = None


class Expected(NamedTuple):
    """The expected end of a running job, as a second of the log. Unless it is `predicted`, the limit gives the end."""

    end: int
    predicted: bool


class Awaited(NamedTuple):
    """The site's own forecasts of a start: the first and the last, as (time of forecast, start), and their number."""

    first: tuple[int, int]
    last: tuple[int, int]
    times: int


class Story:
    """The story of one job."""

    __slots__ = (
        *("adjusted", "adjustment", "advised", "awaited", "bounds", "ended"),
        *("forecast", "forecast_reason", "job", "notes", "overtaken", "overtaken_by", "ranges", "run_time", "started"),
        *("submitted", "suspended", "times_weighed", "predicted", "unlimited", "weighed", "withdrawn", "lost"),
    )

    def __init__(self, envelope: Envelope, job: JobSubmitted) -> None:
        self.job = self.submitted = job
        """The present version of the job, and the version that was submitted."""
        prediction = envelope.run_time
        self.run_time = prediction.point if prediction is not None and prediction.observations else None
        adjustment = envelope.adjustment
        self.adjusted = None if adjustment is None or adjustment.key is None else adjustment.adjusted_time
        self.adjustment: str | None = None
        self.bounds = tuple(_bounded(wait_bound) for wait_bound in envelope.wait_bounds if wait_bound.queue is None)
        self.predicted = StartPredictions.of(envelope.forecast, envelope.wait_bounds)
        self.forecast = None if envelope.forecast is None else envelope.forecast.wait
        self.forecast_reason = None if envelope.forecast is None else envelope.forecast.reason
        self.awaited: Awaited | None = None
        self.started: JobStarted | None = None
        self.unlimited = False
        """Whether its limit was taken away while it ran."""
        self.ended: JobEnded | None = None
        self.withdrawn: JobWithdrawn | None = None
        self.suspended = False
        self.lost = 0
        """Seconds for which the job was suspended."""
        self.advised: int | None = None
        self.weighed: Weighed | None = None
        self.times_weighed = 0
        self.notes: deque[tuple[int, str]] | None = None
        self.overtaken = 0
        self.overtaken_by: tuple[int, int] | None = None
        """Time and number of the last job that started while the job of this story was the head of the queue."""
        self.ranges: tuple[tuple[int, int], ...] = ()

    @property
    def limit(self) -> int | None:
        """Seconds that the job may run; None if nothing ends it, or that is unknown."""
        if self.unlimited:
            return None
        limit = None if self.started is None else self.started.limit
        return self.job.requested_time if limit is None else limit

    @property
    def wait(self) -> int | None:
        """Seconds that the job waited; None before its start."""
        return None if self.started is None else moment(self.started) - self.job.since

    def bound_of(self, grouping: str) -> int | None:
        """Return the upper bound in seconds that its wait got in a grouping of the cluster; None without one."""
        return next((entry.bound for entry in self.bounds if entry.grouping == grouping), None)

    def expect(self, expected: JobExpected) -> None:
        """Record the start that the site's own scheduler expects."""
        word = moment(expected), expected.start
        self.predicted = self.predicted._replace(site=expected.start)
        first, _, times = self.awaited or Awaited(word, word, 0)
        self.awaited = Awaited(first, word, times + 1)

    def overtake(self, time: int, number: int) -> None:
        """Count a job that starts while the job of this story is the head of the queue."""
        self.overtaken += 1
        self.overtaken_by = time, number

    def note(self, time: int, sentence: str) -> None:
        """Record a decision about the job, or a change of it."""
        if self.notes is None:
            self.notes = deque(maxlen=NOTES)
        self.notes.append((time, sentence))

    def start(self, started: JobStarted) -> None:
        """Record the start of the job."""
        self.started, self.unlimited, self.lost = started, False, 0

    def change(self, job: RunningJob) -> None:
        """Record the new size or limit of the running job."""
        self.started, self.unlimited = job.started, job.unlimited

    def withdraw(self, withdrawn: JobWithdrawn) -> None:
        """Record that the job has left the queue."""
        self.withdrawn = withdrawn

    def resume(self, lost: int) -> None:
        """Record that the job continues, and the total seconds of its suspensions."""
        self.suspended, self.lost = False, lost

    def end(self, ended: JobEnded) -> None:
        """Record the end of the job. A requeued job waits as if it had not started."""
        if ended.requeued:
            self.started = self.advised = self.awaited = None
            self.predicted = self.predicted._replace(site=None)
            self.suspended = False
            return
        self.ended = ended

    def expected_end(self, now: int) -> Expected | None:
        """Return the expected end by the prediction or else the limit; None unless it runs and one of them is known."""
        if self.started is None or self.suspended:
            return None
        began, run_time, limit = self._began(self.started), self.run_time, self.limit
        if run_time is not None and now - began < run_time and (limit is None or run_time < limit):
            return Expected(began + round(run_time), True)
        return self.end_at_limit()

    def end_at_limit(self) -> Expected | None:
        """Return the end at the limit; None unless it runs and has a limit."""
        if self.started is None or self.suspended or self.limit is None:
            return None
        return Expected(self._began(self.started) + self.limit, False)

    def _began(self, started: JobStarted) -> int:
        """Return the second at which it would have started without its suspensions."""
        return moment(started) + self.lost


def _bounded(wait_bound: WaitBound) -> Bounded:
    return Bounded(wait_bound.grouping, wait_bound.quantile, wait_bound.bound, wait_bound.reason, wait_bound.lower)


# The predictions of a run that have active drift alarms.

SHOWN = 12
"""The maximum number of alarms that are listed."""


class Trust:
    """The active drift alarms of the scoreboard. They are few: the scoreboard bounds their number.

    >>> trust = Trust()
    >>> trust.take_in([Drift(of="run_time", what="twice", scope="user", number=7, since=86400, share=0.4, most=0.2)])
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, user_id=7)
    >>> trust.since(job, "run_time"), trust.since(job.model_copy(update={"user_id": 8}), "run_time")
    (86400, None)
    """

    def __init__(self) -> None:
        self._alarms: dict[tuple[str, str, str, int | None], Drift] = {}

    def take_in(self, drifts: Iterable[Drift]) -> None:
        """Apply alarms that began or ended."""
        for drift in drifts:
            self._alarms.pop(drift.key, None)
            if not drift.holds:
                self._alarms[drift.key] = drift

    def of(self, job: JobSubmitted, of: str, what: str | None = None) -> Iterator[Drift]:
        """Yield the alarms about one kind of prediction of a job; `what` selects one grouping of bounds on waits."""
        owners = {"user": job.user_id, "queue": job.queue_number, "partition": job.partition_number, "cluster": None}
        for alarm in self._alarms.values():
            if alarm.of == of and alarm.number == owners[alarm.scope] and what in (None, alarm.what):
                yield alarm

    def since(self, job: JobSubmitted, of: str, what: str | None = None) -> int | None:
        """Return the second of the log from which on the prediction has an alarm; None if there is no alarm."""
        return min((record.since for record in self.of(job, of, what)), default=None)

    def marks(self, story: Story) -> dict[str, int]:
        """Return the shown predictions of a job that have alarms, each with the second at which its alarm began."""
        known = [entry.grouping for entry in story.bounds if entry.bound is not None]
        named = "ensemble" if "ensemble" in known else known[0] if known else ""
        statistics = {
            of: self.since(story.job, of, named if of == "wait_bound" else None)
            for of in ("run_time", "adjustment", "wait_bound", "forecast")
        }
        return {of: since for of, since in statistics.items() if since is not None}

    def words(self, unix_start: int) -> list[str]:
        """Return up to `SHOWN` alarms in words: those of the whole cluster, then others, each group latest first.

        If there are more, the last text says how many.
        """
        alarms = sorted(self._alarms.values(), key=lambda alarm: (alarm.scope != "cluster", -alarm.since))
        words = (f"{describe_drift(alarm.of, alarm.what)}, of {whose(alarm.scope, alarm.number)}" for alarm in alarms)
        shown = [
            f"{what}, since {clock(alarm.since, unix_start)[:-9]}"
            for what, alarm in zip(words, alarms[:SHOWN], strict=False)
        ]
        return shown + [f"{len(alarms) - SHOWN:,} more"] * (len(alarms) > SHOWN)
