"""When the site's own scheduler expected jobs to start, beside our own forecasts and bounds of the same jobs."""

from typing import Any, NamedTuple

from shadowtime.services.scoreboard.coverage import Bound
from shadowtime.services.scoreboard.foretold import ForetoldStarts
from shadowtime.shared.bounds import MAX_EXPECTED_QUEUES
from shadowtime.shared.events import JobExpected, moment
from shadowtime.shared.scores import ExpectedStartScores, PairedStartScores

PARTS = 10**9
"""Of a quantile: whole numbers are summed exactly, and the mean of quantiles that are alike is that quantile."""


class Word(NamedTuple):
    """A start to come, and when it was foretold; seconds."""

    start: int
    said: int


class Expectations:
    """Sums over the jobs of one queue, or of all; memory is constant."""

    def __init__(self) -> None:
        self.site = {"first": ForetoldStarts(), "last": ForetoldStarts()}
        self.paired: dict[str, ForetoldStarts] = {}
        """Over the jobs that were forecast too; empty before the first of them."""
        self.bounded = 0
        self.covered = 0
        self.quantiles = 0

    def add(self, first: Word, last: Word, start: int, wait: int, forecast: int | None, bound: Bound | None) -> None:
        """Take in a job that started, with what was said of it: by the site, and by us at submission."""
        words = {"first": first, "last": last}
        for name, word in words.items():
            self.site[name].add(word.start, start, start - word.said)
        if forecast is not None:
            if not self.paired:
                self.paired = {name: ForetoldStarts() for name in (*words, "forecast")}
            ours = Word(start - wait + forecast, start - wait)
            for name, word in (words | {"forecast": ours}).items():
                self.paired[name].add(word.start, start, start - word.said)
        if bound is not None:
            self.bounded += 1
            self.covered += wait <= bound.seconds
            self.quantiles += round(bound.quantile * PARTS)

    def scores(self, queue: int | None) -> ExpectedStartScores:
        """Return what the sums give."""
        paired = {name: each.scores() for name, each in self.paired.items()}
        return ExpectedStartScores(
            queue=queue,
            **{name: each.scores() for name, each in self.site.items()},
            paired=PairedStartScores(**paired) if paired else None,
            bounded=self.bounded,
            bound_coverage=self.covered / self.bounded if self.bounded else None,
            bound_quantile=self.quantiles / (PARTS * self.bounded) if self.bounded else None,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the sums as plain values."""
        return {
            "site": [each.snapshot() for each in self.site.values()],
            "paired": [[name, each.snapshot()] for name, each in self.paired.items()],
            "bounds": [self.bounded, self.covered, self.quantiles],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        for each, sums in zip(self.site.values(), state["site"], strict=True):
            each.restore(sums)
        self.paired = {name: ForetoldStarts() for name, _ in state["paired"]}
        for name, sums in state["paired"]:
            self.paired[name].restore(sums)
        self.bounded, self.covered, self.quantiles = state["bounds"]


class ExpectedStarts:
    """What was expected of the jobs that wait, and sums over those that started, in all and by queue.

    Memory is bounded by the waiting jobs and by the queues, the first `MAX_EXPECTED_QUEUES`.

    >>> starts = ExpectedStarts()
    >>> starts.expect(JobExpected(time=10, job_number=1, start=90))
    >>> starts.expect(JobExpected(time=40, job_number=1, start=60))
    >>> starts.reveal(1, queue=None, start=70, wait=70, forecast=75, bound=None)
    >>> (all,) = starts.scores()
    >>> all.first.mean_error, all.last.mean_error, all.paired.forecast.mean_error
    (20.0, -10.0, 5.0)

    References
    ----------
    docs/algorithms.md#expected-starts.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, tuple[Word, Word]] = {}
        """First and last word."""
        self.sums: dict[int | None, Expectations] = {}

    def expect(self, expected: JobExpected) -> None:
        """Keep what the site's own scheduler says of a waiting job."""
        word = Word(expected.start, moment(expected))
        first, _ = self.waiting.get(expected.job_number, (word, word))
        self.waiting[expected.job_number] = first, word

    def reveal(
        self, job_number: int, queue: int | None, start: int, wait: int, forecast: int | None, bound: Bound | None
    ) -> None:
        """Score what was expected of a job of `waiting`, now that it is known when it started."""
        words = self.waiting.pop(job_number)
        for each in dict.fromkeys((None, queue)):
            if each not in self.sums and len(self.sums) <= MAX_EXPECTED_QUEUES:
                self.sums[each] = Expectations()
            if each in self.sums:
                self.sums[each].add(*words, start, wait, forecast, bound)

    def withdraw(self, job_number: int) -> None:
        """Forget what was expected of a job that leaves without starting."""
        self.waiting.pop(job_number, None)

    def scores(self) -> tuple[ExpectedStartScores, ...] | None:
        """Return the scores of all jobs, then of the queues by number; None where none started as none expected."""
        queues = sorted(self.sums, key=lambda queue: (queue is not None, queue or 0))
        return tuple(self.sums[queue].scores(queue) for queue in queues) or None

    def snapshot(self) -> dict[str, Any]:
        """Return words and sums as plain values."""
        return {
            "waiting": [[number, *first, *last] for number, (first, last) in self.waiting.items()],
            "sums": [[queue, each.snapshot()] for queue, each in self.sums.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        self.waiting = {number: (Word(*word[:2]), Word(*word[2:])) for number, *word in state["waiting"]}
        self.sums = {queue: Expectations() for queue, _ in state["sums"]}
        for queue, sums in state["sums"]:
            self.sums[queue].restore(sums)
