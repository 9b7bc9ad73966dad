"""The outlook of a run: the start of the queue's head, forecast starts, and their rows in the picture of the machine.

The outlook is derived from the predictions of the stages. This module predicts nothing itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from shadowtime.services.processes.live.rows import Ranges, free_rows
from shadowtime.services.processes.live.story import Story
from shadowtime.shared.formatting import clock
from shadowtime.shared.messages import StartOutlook

MAX_PLANNED = 12
"""The maximum number of future starts that are drawn."""

MAX_LOOKED_AT = 25
"""The number of waiting jobs that are searched for expected starts: those in the first page of the table."""

MAX_RUNNING = 2_000
"""With more running jobs, no future starts are drawn: it would take too long to find free rows for them."""

IN_ORDER = frozenset({"fcfs", "easy", "easy-sjbf", "probabilistic"})
"""Policies whose head is the job that has waited longest. For other policies, a decision names the head."""


def base(spec: str) -> str:
    """Return the name at the beginning of a SPEC, even if the text is no valid SPEC.

    >>> base("easy-sjbf(running=yes)"), base("best:tau=1"), base("what?")
    ('easy-sjbf', 'best', 'what?')
    """
    return spec.partition("(")[0].partition(":")[0]


class MachineMoment(NamedTuple):
    """The machine at one moment: the time, its processors, the free processors, and the Unix time of second 0."""

    now: int
    processors: int
    free: int
    unix_start: int

    def at(self, second: int) -> str:
        """Return a second of the log as text, to the minute; the date is left out if it is today."""
        return clock(second, self.unix_start, self.now)[:-3]


class Head(NamedTuple):
    """The head of the queue, and the time at which it can start. The time is None if it is unknown."""

    story: Story
    start: int | None


class Planned(NamedTuple):
    """A future start. `rows` are the rows of the job in the picture of the machine.

    `forecast` is False for the head of the queue. In most runs, its start follows from the expected ends of jobs.
    """

    job: int
    start: int
    end: int
    forecast: bool
    rows: Ranges


def planned(
    machine: MachineMoment,
    head: Head | None,
    starts: Mapping[Story, StartOutlook | None],
    running: Iterable[tuple[Story, int]],
) -> Iterator[Planned]:
    """Yield the next future starts, each with the rows that are free for it. Jobs of unknown length are left out.

    `running` has the running jobs, each with its expected end.
    """
    blocks = [
        (rows, execution.started.time, end)
        for execution, end in running
        if execution.started
        for rows in execution.ranges
    ]  # fmt: skip
    for start, forecast, story in sorted(_starts(machine, head, starts), key=lambda entry: entry[:2])[:MAX_PLANNED]:
        run_time = story.run_time or story.job.requested_time
        if run_time is None:
            continue
        end = start + max(1, round(run_time))
        taken = [rows for rows, begin, until in blocks if begin < end and until > start]
        rows = free_rows(taken, story.job.requested_processors, machine.processors)
        blocks += [(row, start, end) for row in rows]
        yield Planned(story.job.job_number, start, end, forecast, rows)


def _starts(
    machine: MachineMoment, head: Head | None, starts: Mapping[Story, StartOutlook | None]
) -> Iterator[tuple[int, bool, Story]]:
    if head is not None and head.start is not None:
        yield head.start, False, head.story
    for story, start in starts.items():
        expected = None if start is None or (head is not None and story is head.story) else start.expected
        if expected is not None and expected > machine.now:
            yield expected, True, story
