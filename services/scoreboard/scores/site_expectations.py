"""Scores of the starts that the site's own scheduler expected, and of our forecasts and bounds for the same jobs."""

from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any, NamedTuple

from shadowtime.services.scoreboard.scores.bound_coverage import Bound
from shadowtime.services.scoreboard.scores.event_probabilities import PARTS, ProbabilitySums, Table, table_of
from shadowtime.shared.bounds import MAX_EXPECTED_QUEUES, restored, storable
from shadowtime.shared.messages import (
    ExpectedStartScores,
    JobExpected,
    PairedStartScores,
    StartErrorScores,
    WaitBound,
    moment,
)
from shadowtime.shared.statistics import WaitQuantiles

LAST_WAITS = 100
"""Number of the last known waits from which the naive forecast, their median, is computed."""

# Errors of expected starts.


class StartErrors:
    """Running sums of the errors of expected starts; memory is constant. Whole numbers are summed exactly.

    >>> starts = StartErrors()
    >>> starts.add(expected=130, start=100, ahead=60)
    >>> starts.add(expected=90, start=100, ahead=20)
    >>> scores = starts.scores()
    >>> scores.mean_absolute_error, scores.mean_error, scores.late_share, scores.mean_ahead
    (20.0, 10.0, 0.5, 40.0)
    """

    def __init__(self) -> None:
        self.jobs = 0
        self.absolute_error = 0
        self.error = 0
        self.late = 0
        self.ahead = 0
        self.errors = WaitQuantiles()

    def add(self, expected: int, start: int, ahead: int) -> None:
        """Add the expected and the actual start of a job, and the time from the forecast to the start, in seconds."""
        error = expected - start
        self.jobs += 1
        self.absolute_error += abs(error)
        self.error += error
        self.late += error > 0
        self.ahead += ahead
        self.errors.add(abs(error))

    def scores(self) -> StartErrorScores:
        """Return the means, and the median."""
        jobs = self.jobs
        return StartErrorScores(
            jobs=jobs,
            mean_absolute_error=self.absolute_error / jobs if jobs else None,
            median_absolute_error=self.errors.quantiles((0.5,))[0] if jobs else None,
            mean_error=self.error / jobs if jobs else None,
            late_share=self.late / jobs if jobs else None,
            mean_ahead=self.ahead / jobs if jobs else None,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the sums as plain values."""
        return storable(vars(self)) | {"errors": self.errors.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        errors = self.errors
        vars(self).update(restored(state) | {"errors": errors})
        errors.restore(state["errors"])


class ExpectedStart(NamedTuple):
    """A start that the site expects, and the time at which the site published it (`forecasts`). Times in seconds."""

    start: int
    forecasts: int


class Expectations:
    """Sums over the started jobs of one queue, or of all queues; memory is constant."""

    def __init__(self) -> None:
        self.site = {"first": StartErrors(), "last": StartErrors()}
        self.paired: dict[str, StartErrors] = {}
        """Sums over the jobs that also had a forecast; empty before the first such job."""
        self.bounded = 0
        self.covered = 0
        self.quantiles = 0
        self.bounds = 0
        self.within = ProbabilitySums()

    def add(
        self,
        first: ExpectedStart,
        last: ExpectedStart,
        start: int,
        wait: int,
        forecast: int | None,
        bound: Bound | None,
        table: Table,
        usual: int,
    ) -> None:
        """Add a job that started at `start` after `wait` seconds.

        `first` and `last` are the site's first and last expected start. The other values are as of the job's
        submission. `forecast` is our forecast of the wait in seconds, and `usual` is the median of the last known waits
        in seconds. `forecast` or `bound` is None, and `table` is empty, if we predicted nothing of its kind.
        """
        words = {"first": first, "last": last}
        for name, word in words.items():
            self.site[name].add(word.start, start, start - word.forecasts)
        if forecast is not None:
            submitted = start - wait
            waits = {"forecast": forecast, "at_once": 0, "last_waits": usual}
            ours = {name: ExpectedStart(submitted + awaited, submitted) for name, awaited in waits.items()}
            for name, word in (words | ours).items():
                self.paired.setdefault(name, StartErrors()).add(word.start, start, start - word.forecasts)

        if bound is not None:
            self.bounded += 1
            self.covered += wait <= bound.seconds
            self.quantiles += round(bound.quantile * PARTS)
            self.bounds += bound.seconds

        if table:
            self.within = self.within.plus(table, wait, first.start - (start - wait))

    def scores(self, queue: int | None) -> ExpectedStartScores:
        """Return the scores over the jobs so far. `queue` only labels them."""
        paired = {name: score.scores() for name, score in self.paired.items()}
        return ExpectedStartScores(
            queue=queue,
            **{name: score.scores() for name, score in self.site.items()},
            paired=PairedStartScores(**paired) if paired else None,
            bounded=self.bounded,
            bound_coverage=self.covered / self.bounded if self.bounded else None,
            bound_quantile=self.quantiles / (PARTS * self.bounded) if self.bounded else None,
            mean_bound=self.bounds / self.bounded if self.bounded else None,
            within=self.within.scores(),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the sums as plain values."""
        return {
            "site": [score.snapshot() for score in self.site.values()],
            "paired": [[name, score.snapshot()] for name, score in self.paired.items()],
            "bounds": [self.bounded, self.covered, self.quantiles, self.bounds],
            "within": self.within.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        for score, sums in zip(self.site.values(), state["site"], strict=True):
            score.restore(sums)
        self.paired = {name: StartErrors() for name, _ in state["paired"]}
        for name, sums in state["paired"]:
            self.paired[name].restore(sums)
        self.bounded, self.covered, self.quantiles, self.bounds = state["bounds"]
        self.within = ProbabilitySums(*state["within"])


class ExpectedStarts:
    """Expected starts of the waiting jobs, and sums over the started jobs, in total and by queue.

    Memory is bounded by the waiting jobs and by the queues, the first `MAX_EXPECTED_QUEUES`.

    >>> starts = ExpectedStarts()
    >>> starts.expect(JobExpected(time=10, job_number=1, start=90))
    >>> starts.expect(JobExpected(time=40, job_number=1, start=60))
    >>> starts.reveal(1, queue=None, start=70, wait=70, forecast=75, bound=None)
    >>> (all,) = starts.scores()
    >>> all.first.mean_error, all.last.mean_error, all.paired.forecast.mean_error
    (20.0, -10.0, 5.0)

    References: docs/algorithms.md#expected-starts.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, tuple[ExpectedStart, ExpectedStart]] = {}
        """First and last expected start, by waiting job."""
        self.tables: dict[int, Table] = {}
        """Our probabilities of starting within some time, by waiting job."""
        self.sums: dict[int | None, Expectations] = {}
        self.last_waits: deque[int] = deque(maxlen=LAST_WAITS)
        self.usual: dict[int, int] = {}
        """The median of the last known waits at submission, by waiting job."""

    def note_wait(self, wait: int) -> None:
        """Add a wait that is known now, in seconds, to the last known waits."""
        self.last_waits.append(wait)

    def submit(self, job_number: int, bounds: Iterable[WaitBound]) -> None:
        """Store a job's start probabilities and the median of the last known waits.

        They are scored if the site announces an expected start later.
        """
        if self.last_waits:
            self.usual[job_number] = round(median(self.last_waits))
        if table := table_of(bounds):
            self.tables[job_number] = table

    def expect(self, expected: JobExpected) -> None:
        """Keep an expected start of a waiting job as the job's last one. Keep the first one, too."""
        word = ExpectedStart(expected.start, moment(expected))
        first, _ = self.waiting.get(expected.job_number, (word, word))
        self.waiting[expected.job_number] = first, word

    def reveal(
        self, job_number: int, queue: int | None, start: int, wait: int, forecast: int | None, bound: Bound | None
    ) -> None:
        """Score the expected starts of a job once its start is known. The job must be in `waiting`. Times in seconds.

        `forecast` is our forecast of the wait, and `bound` our bound on it; None if there is none.
        """
        words, table = self.waiting.pop(job_number), self.tables.pop(job_number, ())
        usual = self.usual.pop(job_number, 0)
        for name in dict.fromkeys((None, queue)):
            if name not in self.sums and len(self.sums) <= MAX_EXPECTED_QUEUES:
                self.sums[name] = Expectations()
            if name in self.sums:
                self.sums[name].add(*words, start, wait, forecast, bound, table, usual)

    def withdraw(self, job_number: int) -> None:
        """Forget a job that leaves without starting, or that started without an expected start."""
        self.waiting.pop(job_number, None)
        self.tables.pop(job_number, None)
        self.usual.pop(job_number, None)

    def scores(self) -> tuple[ExpectedStartScores, ...] | None:
        """Return the scores of all jobs, then of the queues by number.

        Return None if no job with an expected start has started.
        """
        queues = sorted(self.sums, key=lambda queue: (queue is not None, queue or 0))
        return tuple(self.sums[queue].scores(queue) for queue in queues) or None

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return {
            "waiting": [[number, *first, *last] for number, (first, last) in self.waiting.items()],
            "tables": [[number, [list(pair) for pair in table]] for number, table in self.tables.items()],
            "sums": [[queue, score.snapshot()] for queue, score in self.sums.items()],
            "last_waits": list(self.last_waits),
            "usual": list(self.usual.items()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.waiting = {
            number: (ExpectedStart(*word[:2]), ExpectedStart(*word[2:])) for number, *word in state["waiting"]
        }
        self.tables = {number: tuple((share, seconds) for share, seconds in table) for number, table in state["tables"]}
        self.last_waits = deque(state.get("last_waits", ()), LAST_WAITS)
        self.usual = dict(state.get("usual", ()))
        self.sums = {queue: Expectations() for queue, _ in state["sums"]}
        for queue, sums in state["sums"]:
            self.sums[queue].restore(sums)
