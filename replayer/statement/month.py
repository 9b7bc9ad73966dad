"""Predicted starts of the jobs of a month, against their real starts."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from shadowtime.services.scoreboard import StartErrors
from shadowtime.shared.messages import (
    Envelope,
    JobChanged,
    JobExpected,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    StartErrorScores,
    StartOutlook,
    moment,
)
from shadowtime.shared.stages import NOT_YET, StartPredictions, expected_start

DAYS = 30
"""Days of a month."""

OURS, AT_ONCE, FIRST, LAST = "ours", "at once", "first", "last"
"""Sources of expected starts: Shadowtime at the submission, a naive guess, and the site's scheduler."""


class StartsInTime(NamedTuple):
    """How often "starts by" came true for the jobs of a queue, or of all queues (None).

    `jobs` counts the jobs whose time has passed. `kept` counts those that started in time. `open` counts the jobs whose
    time has not passed, also if they have started: of these jobs, only the short waits are known.
    """

    queue: int | None
    jobs: int
    kept: int
    open: int

    @property
    def share(self) -> float | None:
        """The share that came true; None without jobs."""
        return self.kept / self.jobs if self.jobs else None


class _Waiting(NamedTuple):
    job: JobSubmitted
    outlook: StartOutlook
    first: tuple[int, int] | None = None
    last: tuple[int, int] | None = None


class MonthOfStarts:
    """The jobs that were submitted from second `first` of the log on, as they wait and start.

    A job counts from its submission to its first start. A job that is withdrawn, or moved to another queue while it
    waits, does not count: nothing was predicted of what then happened.

    >>> month = MonthOfStarts(0)
    >>> month.jobs, month.starts_by(100)
    (0, [StartsInTime(queue=None, jobs=0, kept=0, open=0)])
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.jobs = self.afterwards = 0
        """Number of jobs, and of those whose times were stated only after they had been submitted."""
        self.begins: int | None = None
        """Time of the first event."""
        self.of_all = {OURS: StartErrors(), AT_ONCE: StartErrors()}
        """Errors of the jobs for which we expected a start, by source."""
        self.of_site = {name: StartErrors() for name in (OURS, AT_ONCE, FIRST, LAST)}
        """Errors of the jobs of `of_all` for which the site's scheduler expected a start, too, by source."""
        self._waiting: dict[int, _Waiting] = {}
        self._started_by: list[tuple[int | None, int, bool]] = []
        """Queue of each started job with a stated time, this time, and whether the job started by then."""

    def push(self, envelope: Envelope, *, afterwards: bool = False) -> None:
        """Process the next envelope of the run, which was written `afterwards` if it was about the past then.

        Jobs submitted before `first` are left out.
        """
        event = envelope.event
        if self.begins is None:
            self.begins = event.time
        match event:
            case JobSubmitted() if event.time >= self.first:
                predicted = StartPredictions.of(envelope.forecast, envelope.wait_bounds)
                self.jobs += 1
                self.afterwards += afterwards
                outlook = expected_start(event.time + NOT_YET, event.since, predicted)
                self._waiting[event.job_number] = _Waiting(event, outlook)
            case JobExpected() if (known := self._waiting.get(event.job_number)) is not None:
                word = (event.start, moment(event))
                self._waiting[event.job_number] = known._replace(first=known.first or word, last=word)
            case JobChanged() if (known := self._waiting.get(event.job_number)) is not None:
                if event.queue_number not in (None, known.job.queue_number):
                    del self._waiting[event.job_number]
            case JobWithdrawn():
                self._waiting.pop(event.job_number, None)
            case JobStarted() if (known := self._waiting.pop(event.job_number, None)) is not None:
                self._started(known, moment(event))
            case _:
                pass

    def _started(self, known: _Waiting, start: int) -> None:
        by, expected, since = known.outlook.by_95, known.outlook.expected, known.job.time
        if by is not None:
            self._started_by.append((known.job.queue_number, by, start <= by))
        if expected is None:
            return
        words = {OURS: (expected, since), AT_ONCE: (since, since)}
        for name, (second, at) in words.items():
            self.of_all[name].add(second, start, start - at)
        if known.first is not None and known.last is not None:
            for name, (second, at) in (words | {FIRST: known.first, LAST: known.last}).items():
                self.of_site[name].add(second, start, start - at)

    def starts_by(self, now: int) -> list[StartsInTime]:
        """Return how often "starts by" came true until `now`, a second of the log.

        The first result is of all queues. Then follow the queues, in descending order of their jobs.
        """
        counts: dict[int | None, list[int]] = {None: [0, 0, 0]}
        waiting = ((entry.job.queue_number, entry.outlook.by_95, False) for entry in self._waiting.values())
        for queue, by, kept in chain(self._started_by, waiting):
            if by is not None:
                for name in {None, queue}:
                    row = counts.setdefault(name, [0, 0, 0])
                    row[0 if by < now else 2] += 1
                    row[1] += kept and by < now
        every = StartsInTime(None, *counts.pop(None))
        rows = [StartsInTime(name, *row) for name, row in counts.items()]
        return [every, *sorted(rows, key=lambda row: (-row.jobs, row.queue or 0))]

    def words(self) -> Iterator[tuple[str, StartErrorScores]]:
        """Yield each source of expected starts with its errors. All sources are scored on the same jobs."""
        sums = self.of_site if self.of_site[OURS].jobs else self.of_all
        for name, errors in sums.items():
            if errors.jobs:
                yield name, errors.scores()
