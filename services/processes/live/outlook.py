"""The outlook of a run: the start of the queue's head, forecast starts, and their places on the chart.

It follows from what the stages said: nothing is predicted here that no stage predicted.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from shadowtime.services.processes.live.rows import Ranges, free_rows
from shadowtime.services.processes.live.story import Story
from shadowtime.shared.formatting import clock
from shadowtime.shared.kernels import BEYOND

MAX_PLANNED = 12
"""Starts to come that are drawn."""

MAX_LOOKED_AT = 200
"""Waiting jobs among which they are looked for."""

MAX_RUNNING = 2_000
"""With more jobs running nothing to come is drawn: it would take too long to find room for it."""

IN_ORDER = frozenset({"fcfs", "easy", "easy-sjbf", "probabilistic"})
"""Policies whose head is the job that has waited longest. Of others the head is the one that a decision names."""


def base(spec: str) -> str:
    """Return the name with which a SPEC begins, also of what is none.

    >>> base("easy-sjbf(running=yes)"), base("best:tau=1"), base("what?")
    ('easy-sjbf', 'best', 'what?')
    """
    return spec.partition("(")[0].partition(":")[0]


class MachineMoment(NamedTuple):
    """The machine at one moment: its time, processors and those that are free, and the Unix time of second 0."""

    now: int
    processors: int
    free: int
    unix_start: int

    def at(self, second: int) -> str:
        """Return a second of the log to the minute; of today without the date."""
        return clock(second, self.unix_start, self.now)[:-3]


class Head(NamedTuple):
    """The first job in line, and when it can start, None where there is no telling."""

    story: Story
    start: int | None


class Planned(NamedTuple):
    """A start to come: by the ends that are expected (of the head), or as forecast."""

    job: int
    start: int
    end: int
    forecast: bool
    rows: Ranges


def planned(
    machine: MachineMoment, head: Head | None, waiting: Iterable[Story], running: Iterable[Story]
) -> Iterator[Planned]:
    """Yield the next starts to come, each with a place in the picture where it finds one."""
    blocks = [
        (rows, execution.started.time, now_or_later(execution, machine.now))
        for execution in running
        if execution.started
        for rows in execution.ranges
    ]  # fmt: skip
    for start, forecast, story in sorted(_starts(machine, head, waiting), key=lambda entry: entry[:2])[:MAX_PLANNED]:
        run_time = story.run_time or story.job.requested_time
        if run_time is None:
            continue
        end = start + max(1, round(run_time))
        taken = [rows for rows, begin, until in blocks if begin < end and until > start]
        rows = free_rows(taken, story.job.requested_processors, machine.processors)
        blocks += [(row, start, end) for row in rows]
        yield Planned(story.job.job_number, start, end, forecast, rows)


def now_or_later(story: Story, now: int) -> int:
    """Return when a running job is expected to end; one of which nothing is known, never."""
    expected = story.expected_end(now)
    return BEYOND if expected is None else max(expected.end, now)


def _starts(machine: MachineMoment, head: Head | None, waiting: Iterable[Story]) -> Iterator[tuple[int, bool, Story]]:
    if head is not None and head.start is not None:
        yield head.start, False, head.story
    for story in islice(waiting, MAX_LOOKED_AT):
        start = story.forecast_start()
        if start is not None and start > machine.now and (head is None or story is not head.story):
            yield start, True, story
