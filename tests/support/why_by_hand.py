"""Is it true what is said of a waiting job: each sentence beside the log, by hand.

Nothing of the code that says it is used: the log is taken in event by event, the rest is plain lists and loops. A
sentence of a kind that is not known here is an error, too.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.explain.stage import Explaining
from shadowtime.shared.formatting import clock, duration
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.explanation import Explanation
from shadowtime.shared.stages.stage import Stage, StageRun
from shadowtime.shared.text.explanations import sentences_of
from tests.support.textbook_orders import Waits, in_order

(SCHEDULER,) = (stage for stage in STAGES if stage.name == "scheduler")
NEVER = 2**40


class Job(NamedTuple):
    """A job as the log tells it: its submission with what was predicted, and where it runs, its start."""

    told: Envelope
    submitted: JobSubmitted
    started: JobStarted | None = None

    @property
    def request(self) -> int:
        asked = None if self.started is None else self.started.limit
        return asked or self.submitted.requested_time or NEVER

    @property
    def predicted(self) -> int:
        point = None if self.told.run_time is None else self.told.run_time.point
        return self.request if point is None else min(max(int(point), 1), self.request)

    @property
    def histogram(self) -> Sequence[float]:
        return () if self.told.run_time is None else self.told.run_time.histogram

    def end(self, now: int, run_time: int) -> int:
        """Return when it ends if it runs for so long; outlived, at its request; past that, in a second."""
        begun = now if self.started is None else self.started.time
        planned = run_time if begun + run_time > now else self.request
        return max(begun + min(planned, self.request), now + 1)


class ByHand:
    """The log of a closed run on a machine of one pool, up to some event."""

    def __init__(self) -> None:
        self.waiting: dict[int, Job] = {}
        self.running: dict[int, Job] = {}
        self.refusals: dict[int, list[str]] = defaultdict(list)
        self.processors = self.time = 0

    def take(self, envelope: Envelope) -> None:
        event = envelope.event
        self.time = event.time
        match event:
            case ClusterOpened() | CapacityChanged():
                self.processors = event.processors
            case JobSubmitted():
                self.waiting[event.job_number] = Job(envelope, event)
            case JobStarted():
                self.running[event.job_number] = self.waiting.pop(event.job_number)._replace(started=event)
                self.refusals.pop(event.job_number, None)
            case JobEnded():
                del self.running[event.job_number]
            case Decided():
                for tried in event.evaluated:
                    for at in range(len(tried.job_numbers) - tried.accepted):
                        stated = tried.recalibrated[at] if tried.recalibrated else None
                        numbers = (tried.head, tried.probabilities[at], stated, tried.bounds[at])
                        self.refusals[tried.job_numbers[at]].append(f"{event.time} {numbers}")

    @property
    def free(self) -> int:
        return self.processors - sum(each.started.processors for each in self.running.values() if each.started)

    def queue(self, order: str) -> list[int]:
        """Return the waiting jobs in an order."""
        jobs = [
            Waits(number, job.submitted.since, job.submitted.requested_processors, job.predicted, self.time)
            for number, job in self.waiting.items()
        ]
        return [each.job_number for each in in_order(jobs, order)]


def chance(job: Job, now: int, by: int) -> float | None:
    """Return the probability that a running job has ended by then, having run until now, by sums over its bins."""
    assert job.started is not None
    elapsed, seconds = now - job.started.time, by - job.started.time
    if seconds >= max(job.request, elapsed + 1):
        return 1.0
    before = until = 0.0
    for number, mass in enumerate(job.histogram):
        low, high = (0.0, 1.0) if number == 0 else (1.8 ** (number - 1), 1.8**number)
        for end in ("elapsed", "seconds"):
            x = min(max(elapsed if end == "elapsed" else seconds, low), high)
            share = x if number == 0 else math.log(x / low) / math.log(high / low)
            before, until = (before + mass * share, until) if end == "elapsed" else (before, until + mass * share)
    left = sum(job.histogram) - before
    return None if left <= 1e-6 else (until - before) / left


def together(jobs: Iterable[Job], now: int, by: int, needed: int) -> float:
    """Return the probability that enough processors are given back, over all that may be."""
    found = {0: 1.0}
    for job in jobs:
        assert job.started is not None
        ends = chance(job, now, by) or 0.0
        after: dict[int, float] = defaultdict(float)
        for freed, mass in found.items():
            after[freed] += mass * (1 - ends)
            after[min(freed + job.started.processors, needed)] += mass * ends
        found = dict(after)
    return found.get(needed, 0.0)


def release(jobs: Iterable[Job], free: int, needed: int, now: int, *, requested: bool = False) -> tuple[int, int, int]:
    """Return when enough is free by expected ends, how many more then, and how many jobs have to end for it."""
    ends = sorted(
        (job.end(now, job.request if requested else job.predicted), job.submitted.job_number, job.started.processors)
        for job in jobs
        if job.started
    )
    for count, (time, _, size) in enumerate(ends, 1):
        free += size
        if free >= needed:
            return time, free + sum(more for end, _, more in ends[count:] if end == time) - needed, count
    raise AssertionError("all running jobs together hold too little")


def near(said: str, true: float) -> None:
    """A probability in words is this one, to three digits."""
    if said.startswith("less than"):
        assert true < 0.001, (said, true)
    elif said.startswith("more than"):
        assert true > 0.999, (said, true)
    else:
        assert math.isclose(float(said.removesuffix(" %")) / 100, true, rel_tol=6e-3, abs_tol=6e-6), (said, true)


SHARE = r"(?:less than |more than )?[\d.e-]+ %"
TIME = r"(?:\d+ \w+ )?[\d:]+"
PROCS = r"([\d,]+) procs?"


class Checked:
    """Checks each sentence of an explanation; `kinds` counts those that were met."""

    def __init__(self, log: ByHand, real: StageRun, why: Explanation, order: str, *, by_requests: bool) -> None:
        self.log, self.real, self.why, self.by_requests = log, real, why, by_requests
        self.job = log.waiting[why.job_number]
        self.size = self.job.submitted.requested_processors
        queue = log.queue(order)
        self.before = queue[: queue.index(why.job_number)]
        free, self.head = log.free, 0
        for number in queue:  # the first that does not fit beside those before it
            self.head = number
            free -= log.waiting[number].submitted.requested_processors
            if free < 0:
                break
        self.order = order
        self.kinds: set[str] = set()

    def at(self, second: int) -> str:
        return clock(second, self.why.unix_start, self.log.time)

    def all(self) -> set[str]:
        for sentence in sentences_of(self.why):
            found = [
                (check, match) for pattern, check in PATTERNS.items() if (match := re.fullmatch(pattern, sentence))
            ]
            assert len(found) == 1, sentence
            check, match = found[0]
            check(self, *match.groups())
            self.kinds.add(check.__name__)
        return self.kinds

    def asks(self, number: str, processors: str, requested: str | None, waited: str) -> None:
        assert (int(number), number_of(processors)) == (self.why.job_number, self.size)
        assert requested == (None if self.job.request == NEVER else duration(self.job.request))
        assert waited == duration(self.log.time - self.job.submitted.since)

    def first(self, order: str) -> None:
        assert (order, self.before) == (self.order, [])

    def ahead(self, order: str, count: str, processors: str, named: str, more: str) -> None:
        assert order == self.order
        assert number_of(count) == len(self.before)
        sizes = [self.log.waiting[each].submitted.requested_processors for each in self.before]
        assert number_of(processors) == sum(sizes)
        assert named == ", ".join(map(str, self.before[:5]))
        assert bool(more) == (len(self.before) > 5)

    def needs(self, processors: str, free: str) -> None:
        assert (number_of(processors), number_of(free)) == (self.size, self.log.free)
        assert self.size > self.log.free

    def behind(self, head: str) -> None:
        assert self.size <= self.log.free
        assert int(head) == self.head != self.why.job_number

    def blocked(self) -> None:
        assert self.size <= self.log.free
        assert self.head != self.why.job_number

    def shadow(self, requests: str | None, head: str, start: str, extra: str, end: str, processors: str) -> None:
        needed = self.log.waiting[self.head].submitted.requested_processors
        assert (int(head), bool(requests)) == (self.head, self.by_requests)
        running = self.log.running.values()
        time, left, _ = release(running, self.log.free, needed, self.log.time, requested=self.by_requests)
        assert (start, number_of(extra)) == (self.at(time), left)
        planned = self.log.time + (self.job.request if self.by_requests else self.job.predicted)
        assert (end, number_of(processors)) == (self.at(planned), self.size)
        if not self.by_requests:  # then EASY rightly does not start it
            assert planned > time
            assert self.size > left

    def ends(self, who: str, count: str, by: str, named: str, more: str | None) -> None:
        number = self.why.job_number if who == "it" else int(who.removeprefix("job "))
        assert number == (self.why.job_number if self.size > self.log.free else self.head)
        needed = self.log.waiting[number].submitted.requested_processors
        running, now = self.log.running, self.log.time
        time, _, least = release(running.values(), self.log.free, needed, now)
        assert (by, int(count)) == (self.at(time), least)
        told = named.split("; ")
        assert len(told) == min(5, least)
        assert int(more or 0) == max(0, least - 5)
        earliest = sorted(running, key=lambda each: (running[each].end(now, running[each].predicted), each))
        for text, expected in zip(told, earliest, strict=False):
            found = re.fullmatch(
                rf"job (\d+) \({PROCS}\) at ({TIME}) by its (prediction|limit)(?:, ended by ({TIME}) (.*))?", text
            )
            assert found, text
            name, size, end, by_what, until, likely = found.groups()
            job = running[expected]
            assert job.started is not None
            assert (int(name), number_of(size)) == (expected, job.started.processors)
            assert end == self.at(job.end(now, job.predicted))
            assert by_what == ("prediction" if job.end(now, job.predicted) < job.end(now, job.request) else "limit")
            if until is not None:
                assert until == self.at(time)
                true = chance(job, now, time)
                assert true is not None
                near(likely.removeprefix("with ").replace("surely", "100 %"), true)

    def enough(self, likely: str, *quantiles: str | None) -> None:
        assert self.why.ends is not None
        number = self.why.job_number if self.size > self.log.free else self.head
        needed = self.log.waiting[number].submitted.requested_processors - self.log.free
        running, now = list(self.log.running.values()), self.log.time
        time, *_ = release(running, 0, needed, now)
        near(likely, together(running, now, time, needed))
        for (share, second), said in zip(self.why.ends.quantiles, quantiles, strict=True):
            assert said == self.at(second)
            assert second > now
            assert together(running, now, second, needed) >= share - 1e-9
            if second > now + 1:  # the first second of which it is true
                assert together(running, now, second - 1, needed) < share + 1e-9

    def refused(self, time: str, head: str, likely: str, raw: str | None, rule: str) -> None:
        last = self.log.refusals[self.why.job_number][-3:]
        kept = [
            f"{each.time} {(each.head, each.probability, each.recalibrated, each.bound)}" for each in self.why.refused
        ]
        assert kept == last
        assert any(
            (time, int(head)) == (self.at(each.time), each.head)
            and likely == shown(each.probability if each.recalibrated is None else each.recalibrated)
            and raw == (None if each.recalibrated is None else shown(each.probability))
            for each in self.why.refused
        )
        assert f"criterion={self.why.refused[0].criterion}" in self.why.policy
        assert f"tau={self.why.refused[0].tau:g}" in self.why.policy or "tau=" in self.why.policy
        words = {"exact": "is asked", "gain": "this one gains", "paper": "paper's"}
        assert words[self.why.refused[0].criterion] in rule

    def expected(self, about: str, interval: str | None, source: str) -> None:
        since, now = self.job.submitted.since, self.log.time
        floor = now
        if self.size > self.log.free:
            floor, *_ = release(self.log.running.values(), self.log.free, self.size, now)
        if self.size > self.log.free and self.head == self.why.job_number:
            assert source == "the expected ends of running jobs"
            start = floor
        else:
            forecast = self.job.told.forecast
            assert source == "the forecast"
            assert forecast is not None
            assert forecast.wait is not None
            assert since + forecast.wait > now
            start = max(since + forecast.wait, floor)
        assert about == self.minute(start)
        latest = self.latest()
        assert interval == (None if latest is None or latest < start else f"by {self.minute(latest)}")

    def limited(self, by: str) -> None:
        latest = self.latest()
        assert latest is not None
        assert by == self.minute(latest)

    def late(self, time: str, ago: str) -> None:
        since, now, forecast = self.job.submitted.since, self.log.time, self.job.told.forecast
        waits = [bound.bound for bound in self.job.told.wait_bounds if bound.queue is None and bound.bound is not None]
        waits += [] if forecast is None or forecast.wait is None else [forecast.wait]
        assert all(since + wait <= now for wait in waits)
        assert (time, ago) == (self.minute(since + max(waits)), duration(now - since - max(waits)))

    def latest(self) -> int | None:
        bounds = [bound.bound for bound in self.job.told.wait_bounds if bound.queue is None and bound.bound is not None]
        return next(
            (self.job.submitted.since + each for each in bounds if self.job.submitted.since + each > self.log.time),
            None,
        )

    def minute(self, second: int) -> str:
        return self.at(second)[:-3]

    def shorter(self, request: str, _: str | None, longer: str | None) -> None:
        days, _, time = request.rpartition(" d ")
        hours, minutes, seconds = map(int, time.split(":"))
        asked = int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds
        assert asked < self.job.request
        assert not self.starts()
        assert self.starts(requested_time=asked)
        if longer is not None:
            begun = self.job._replace(started=JobStarted(time=0, job_number=1, processors=1, limit=self.job.request))
            near(longer, 1 - (chance(begun, 0, asked) or 0.0))

    def fewer(self, processors: str) -> None:
        assert number_of(processors) < self.size
        assert not self.starts()
        assert self.starts(requested_processors=number_of(processors))

    def nothing(self) -> None:
        for seconds in {60, self.job.request // 2, self.job.request - 60} - {0, self.job.request}:
            assert seconds <= 0 or not self.starts(requested_time=seconds)
        for processors in {1, self.size // 2, self.size - 1} - {0, self.size}:
            assert not self.starts(requested_processors=processors)

    def soon(self) -> None:
        assert self.starts()

    def starts(self, **asks: Any) -> bool:
        """Return whether the stage itself starts it, once it asks for this: the run, replayed from here."""
        run, number = StageRun(SCHEDULER), self.why.job_number
        run.restore(self.real.snapshot())
        told: list[JobChanged | SchedulingPoint] = [SchedulingPoint(time=self.log.time)]
        if asks:
            told.insert(0, JobChanged(time=self.log.time, job_number=number, **asks))
        for at, event in enumerate(told, run.sequence + 1):
            said = {"run_time": self.job.told.run_time, "adjustment": self.job.told.adjustment}
            stated = said if isinstance(event, JobChanged) else {}
            answer = run.push(Envelope(run="r", sequence=at, event=event).model_copy(update=stated))
        assert answer is not None
        assert isinstance(answer.event, Decided), answer.event
        return any(each.job_number == number for each in answer.event.starts)


PATTERNS: dict[str, Callable[..., None]] = {
    rf"Job (\d+) asks for {PROCS}(?: for (.+))?, and has waited for (.+)\.": Checked.asks,
    r"It is the first in the order of the queue \((.+)\)\.": Checked.first,
    rf"Before it in the order of the queue \((.+)\): ([\d,]+) jobs?, which requests? {PROCS} in all: "
    r"([\d, ]+)(, …)?\.": Checked.ahead,
    r"It needs ([\d,]+) procs, and ([\d,]+) (?:is|are) free\.": Checked.needs,
    r"It fits into what is free, but job (\d+) goes first and must not be delayed\.": Checked.behind,
    r"It fits into what is free, but jobs before it go first\.": Checked.blocked,
    rf"As the policy plans it( by requests)?, job (\d+) can start at ({TIME}), leaving {PROCS}; "
    rf"started now, this one would run until ({TIME}) on {PROCS}\.": Checked.shadow,
    rf"For (it|job \d+) to find room, ([\d,]+) running jobs? must end, which (?:is|are) expected by ({TIME}): "
    r"(.+?)(?:; and ([\d,]+) more)?\.": Checked.ends,
    rf"Enough processors are free by then with at least ({SHARE}), by ({TIME}) with 50 %, by ({TIME}) with 90 %, "
    r"if no other job starts\.": Checked.enough,
    rf"At ({TIME}) a pass weighed it and did not start it: it would delay job (\d+) with ({SHARE})"
    rf"(?: \(raw ({SHARE})\))?([,;].*)\.": Checked.refused,
    rf"It is expected to start at about ({TIME})(?: \((.+)\))?, by (.+)\.": Checked.expected,
    rf"It is expected to start by ({TIME}), by bounds on waits\.": Checked.limited,
    rf"It is later than predicted: the last time that was predicted, ({TIME}), has passed (.+) ago\.": Checked.late,
    r"With a request of (.+?) a pass now would start it"
    rf"(; it runs longer than that with ({SHARE}))?\.": Checked.shorter,
    rf"On {PROCS}, with the same request, a pass now would start it\.": Checked.fewer,
    r"No shorter request, and no fewer processors, would start it in a pass now\.": Checked.nothing,
    r"It fits, and the next pass starts it, unless something comes before that\.": Checked.soon,
}


def number_of(text: str) -> int:
    return int(text.replace(",", ""))


def shown(share: float) -> str:
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return "more than 99.9 %" if 0.999 < share < 1 else f"{100 * share:.3g} %"


def drawn(log: Sequence[Envelope], count: int, key: int) -> Iterator[tuple[ByHand, StageRun, int]]:
    """Yield so many waiting jobs, drawn by a key at settled instants, with what the log says until then."""
    draws = np.random.default_rng(key)
    waits, numbers = 0, []
    for envelope in log:
        waits += isinstance(envelope.event, JobSubmitted) - isinstance(envelope.event, JobStarted)
        if isinstance(envelope.event, Decided) and not envelope.event.starts and waits:
            numbers.append(envelope.sequence)
    assert len(numbers) >= count
    chosen = set(draws.choice(numbers, count, replace=False).tolist())
    by_hand, real = ByHand(), StageRun(EXPLAINED)
    for envelope in log:
        by_hand.take(envelope)
        real.push(as_read(envelope))
        if envelope.sequence in chosen:
            yield by_hand, real, int(draws.choice(sorted(by_hand.waiting)))


def asked(log: Sequence[Envelope], count: int, key: int, order: str, *, by_requests: bool) -> Counter[str]:
    """Check what is said of so many waiting jobs; return how many have sentences of which kind."""
    kinds: Counter[str] = Counter()
    for by_hand, real, number in drawn(log, count, key):
        kinds.update(Checked(by_hand, real, explained(real, number), order, by_requests=by_requests).all())
    assert kinds["asks"] == count
    return kinds


def explained(run: StageRun, number: int) -> Explanation:
    assert isinstance(run.handler, Explaining)
    why = run.handler.explain(number, "r", run.sequence)
    assert why is not None
    return why


def as_read(envelope: Envelope, stage: Stage = SCHEDULER) -> Envelope:
    """Return what the stage read when it said this."""
    event = SchedulingPoint(time=envelope.event.time) if isinstance(envelope.event, Decided) else envelope.event
    return envelope.model_copy(update={"event": event} | dict.fromkeys(("forecast", "scores", "samples")))
