"""What is to come: when the head of the queue can start, why each other job waits, and where that is drawn.

It follows from what the stages said: nothing is predicted here that no stage predicted.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from shadowtime.services.live.rows import Ranges, free_rows
from shadowtime.services.live.story import Story
from shadowtime.shared.formatting import clock, duration

MAX_PLANNED = 12
"""Starts to come that are drawn."""

MAX_LOOKED_AT = 200
"""Waiting jobs among which they are looked for."""

MAX_RUNNING = 2_000
"""With more jobs running nothing to come is drawn: it would take too long to find room for it."""

NEVER = 2**60

IN_ORDER = frozenset({"fcfs", "easy", "easy-sjbf", "probabilistic"})
"""Policies whose head is the job that has waited longest. Of others the head is the one that a decision names."""


def base(spec: str) -> str:
    """Return the name with which a SPEC begins, also of what is none.

    >>> base("easy-sjbf(running=yes)"), base("best:tau=1"), base("what?")
    ('easy-sjbf', 'best', 'what?')
    """
    return spec.partition("(")[0].partition(":")[0]


class Machine(NamedTuple):
    """The machine at one moment: its time, processors and those that are free, and the Unix time of second 0."""

    now: int
    processors: int
    free: int
    unix_start: int

    def at(self, second: int) -> str:
        """Return a second of the log to the minute; of today without the date."""
        return clock(second, self.unix_start, self.now)[:-3]


class Head(NamedTuple):
    """The first job in line: when it can start, None where there is no telling, and processors left over then."""

    story: Story
    start: int | None
    extra: int

    @property
    def number(self) -> int:
        """Return its job number."""
        return self.story.job.job_number


class Planned(NamedTuple):
    """A start to come: by the ends that are expected (of the head), or as forecast."""

    job: int
    start: int
    end: int
    forecast: bool
    rows: Ranges


def reservation(machine: Machine, needed: int, releases: Iterable[tuple[int, int]]) -> tuple[int | None, int]:
    """Return when enough processors are expected to be free, and how many more than that.

    Parameters
    ----------
    releases
        Of each running job its expected end and its processors.

    >>> reservation(Machine(100, 8, 1, 0), 4, [(300, 2), (200, 5), (400, 1)])
    (200, 2)
    """
    free = machine.free
    if free >= needed:
        return machine.now, free - needed
    for end, processors in sorted(releases):
        free += processors
        if free >= needed:
            return max(end, machine.now), free - needed
    return None, 0


def why(story: Story, machine: Machine, head: Head | None) -> str:
    """Return why a job still waits."""
    needs = story.job.requested_processors
    if needs > machine.processors:
        return f"needs {needs:,} processors, the machine has {machine.processors:,} just now"
    if story.job.blocked:
        return "may not start for now, for a reason of the site's"
    if story.advised is not None:
        return f"could have started at {machine.at(story.advised)}, says the policy; the machine has not started it"
    if head is not None and head.number == story.job.job_number:
        if needs <= machine.free:
            return "first in line, and enough processors are free"
        if head.start is None:
            return "first in line; when enough processors will be free is not known"
        return f"first in line; enough processors are expected to be free at {machine.at(head.start)}"
    if needs > machine.free:
        return f"needs {needs:,} processors, fewer are free"
    if head is None:
        return "it fits, but its turn has not come"
    weighed = story.weighed
    if weighed is not None and weighed.head == head.number:
        return f"fits, but would delay job {head.number} with {100 * weighed.probability:.3g} %"
    if head.start is not None and machine.now < head.start and needs > head.extra:
        start, asked = f"{machine.at(head.start)}, when job {head.number} is to start", story.job.requested_time
        if machine.now + (story.run_time or asked or 0) > head.start:
            return f"fits, but would still run at {start}"
        if asked is not None and machine.now + asked > head.start:
            return f"fits, but by its request, {duration(asked)}, it may still run at {start}"
    return f"fits, but job {head.number} goes first"


def planned(
    machine: Machine, head: Head | None, waiting: Iterable[Story], running: Iterable[Story]
) -> Iterator[Planned]:
    """Yield the next starts to come, each with a place in the picture where it finds one."""
    blocks = [
        (rows, each.started.time, now_or_later(each, machine.now)) for each in running if each.started
        for rows in each.ranges
    ]  # fmt: skip
    for start, forecast, story in sorted(_starts(machine, head, waiting), key=lambda each: each[:2])[:MAX_PLANNED]:
        run_time = story.run_time or story.job.requested_time
        if run_time is None:
            continue
        end = start + max(1, round(run_time))
        taken = [rows for rows, begin, until in blocks if begin < end and until > start]
        rows = free_rows(taken, story.job.requested_processors, machine.processors)
        blocks += [(each, start, end) for each in rows]
        yield Planned(story.job.job_number, start, end, forecast, rows)


def now_or_later(story: Story, now: int) -> int:
    """Return when a running job is expected to end; one of which nothing is known, never."""
    expected = story.expected_end(now)
    return NEVER if expected is None else max(expected.end, now)


def _starts(machine: Machine, head: Head | None, waiting: Iterable[Story]) -> Iterator[tuple[int, bool, Story]]:
    if head is not None and head.start is not None:
        yield head.start, False, head.story
    for story in islice(waiting, MAX_LOOKED_AT):
        start = story.forecast_start()
        if start is not None and start > machine.now and (head is None or story is not head.story):
            yield start, True, story
