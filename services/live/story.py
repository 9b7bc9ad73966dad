"""What is known of one job, from its submission to its end, and the prediction of each stage beside what came."""

from collections import deque
from typing import NamedTuple

import numpy as np

from shadowtime.services.live.expected import expected_run_time
from shadowtime.shared.arrays import Floats
from shadowtime.shared.events import Envelope, JobEnded, JobExpected, JobStarted, JobSubmitted, JobWithdrawn, moment
from shadowtime.shared.predictions import RunTimePrediction, WaitBound
from shadowtime.shared.sentences import chosen

NOTES = 30
"""Decisions about a job that are kept, the last ones."""

LIKELY = 0.9
"""The probability with which a start is told."""

FINE = 0.05
"""Part of its time so far for which what is expected of a running job is not worked out anew."""


class Weighed(NamedTuple):
    """The last time that a waiting job was a candidate and was not started: when, for which head, at which risk."""

    time: int
    head: int
    probability: float


class Bounded(NamedTuple):
    """A bound on the wait, in seconds; None where there was none, with the reason."""

    grouping: str
    quantile: float
    bound: int | None
    reason: str | None


class Expected(NamedTuple):
    """When a running job ends, a second of the log, and whether that is predicted or only its limit."""

    end: int
    predicted: bool


class Awaited(NamedTuple):
    """What the site's own scheduler said of a start to come: how often, first and last, when it said which second."""

    first: tuple[int, int]
    last: tuple[int, int]
    times: int


class Story:
    """One job. What only matters while it waits or runs, its distribution, is let go of at its end."""

    __slots__ = (
        *("_expected", "_histogram", "_until", "adjusted", "adjustment", "advised", "awaited", "bounds", "ended"),
        *("forecast", "forecast_reason", "job", "notes", "overtaken", "overtaken_by", "ranges", "run_time", "started"),
        *("suspended", "times_weighed", "weighed", "within", "withdrawn", "lost"),
    )

    def __init__(self, envelope: Envelope, job: JobSubmitted) -> None:
        self.job = job
        self.run_time: float | None = None
        self._histogram: Floats | None = None
        if envelope.run_time is not None and envelope.run_time.observations:
            self._predicted(envelope.run_time)
        told = envelope.adjustment
        self.adjusted = None if told is None or told.key is None else told.adjusted_time
        self.adjustment: str | None = None
        self.bounds = tuple(_bounded(each) for each in envelope.wait_bounds if each.queue is None)
        bound = chosen(envelope.wait_bounds)
        self.within = () if bound is None else bound.starts_within or _only(bound)
        self.forecast = None if envelope.forecast is None else envelope.forecast.wait
        self.forecast_reason = None if envelope.forecast is None else envelope.forecast.reason
        self.awaited: Awaited | None = None
        self.started: JobStarted | None = None
        self.ended: JobEnded | None = None
        self.withdrawn: JobWithdrawn | None = None
        self.suspended = False
        self.lost = 0
        """Seconds for which it was suspended."""
        self.advised: int | None = None
        self.weighed: Weighed | None = None
        self.times_weighed = 0
        self.notes: deque[tuple[int, str]] | None = None
        self.overtaken = 0
        self.overtaken_by: tuple[int, int] | None = None
        """When a job started last while this one was the first in line, and which."""
        self.ranges: tuple[tuple[int, int], ...] = ()
        self._expected: Expected | None = None
        self._until = -1

    def _predicted(self, told: RunTimePrediction) -> None:
        self.run_time = told.point
        if told.histogram:
            self._histogram = np.array(told.histogram)

    @property
    def limit(self) -> int | None:
        """Seconds that it may run, where that is known."""
        given = None if self.started is None else self.started.limit
        return self.job.requested_time if given is None else given

    @property
    def wait(self) -> int | None:
        """Seconds that it waited, once it has started."""
        return None if self.started is None else moment(self.started) - self.job.since

    def start_by(self) -> tuple[int, float] | None:
        """Return by when it starts, a second of the log, and with which probability, as told at its submission."""
        if not self.within:
            return None
        share, seconds = min(self.within, key=lambda each: abs(each[0] - LIKELY))
        return self.job.since + seconds, share

    def forecast_start(self) -> int | None:
        """Return when it was forecast to start."""
        return None if self.forecast is None else self.job.since + self.forecast

    def expect(self, expected: JobExpected) -> None:
        """Take in when the site's own scheduler expects it to start."""
        word = moment(expected), expected.start
        first, _, times = self.awaited or Awaited(word, word, 0)
        self.awaited = Awaited(first, word, times + 1)

    def overtake(self, time: int, number: int) -> None:
        """Count a job that starts while this one is the first in line."""
        self.overtaken += 1
        self.overtaken_by = time, number

    def note(self, time: int, sentence: str) -> None:
        """Keep a decision about it."""
        if self.notes is None:
            self.notes = deque(maxlen=NOTES)
        self.notes.append((time, sentence))

    def start(self, started: JobStarted) -> None:
        """Take in its start."""
        self.started, self._expected, self._until, self.lost = started, None, -1, 0

    def withdraw(self, withdrawn: JobWithdrawn) -> None:
        """Take in that it has left the queue."""
        self.withdrawn, self._histogram = withdrawn, None

    def resume(self, lost: int) -> None:
        """Take in that it goes on, and for how long it has stood still in all, in seconds."""
        self.suspended, self.lost, self._until = False, lost, -1

    def end(self, ended: JobEnded) -> None:
        """Take in its end; one that is requeued waits as if it had not started."""
        if ended.requeued:
            self.started = self.advised = self.awaited = None
            self.suspended = False
            return
        self.ended, self._histogram = ended, None

    def expected_end(self, now: int) -> Expected | None:
        """Return when it ends if it runs on; None where nothing is predicted and nothing limits it."""
        if self.started is None or self.suspended:
            return None
        began = moment(self.started) + self.lost
        if now >= self._until or now < began:
            elapsed = now - began
            expected = self._expected = self._expect(began, elapsed)
            again = now + max(1, int(FINE * elapsed))
            self._until = again if expected is None else max(now + 1, min(again, expected.end))
        return self._expected

    def _expect(self, start: int, elapsed: int) -> Expected | None:
        limit = self.limit
        most = float("inf") if limit is None else float(limit)
        run_time = self.run_time
        if self._histogram is not None:
            run_time = expected_run_time(self._histogram, elapsed, most)
        if run_time is not None and elapsed < run_time < most:
            return Expected(start + round(run_time), True)
        return None if limit is None else Expected(start + limit, run_time is not None and run_time >= most)


def _bounded(told: WaitBound) -> Bounded:
    return Bounded(told.grouping, told.quantile, told.bound, told.reason)


def _only(bound: WaitBound) -> tuple[tuple[float, int], ...]:
    return () if bound.bound is None else ((bound.quantile, bound.bound),)
