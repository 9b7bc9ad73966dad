"""The picture of the machine over the last day: who ran when, on how many processors, and how many jobs waited."""

from collections import deque
from itertools import islice
from typing import NamedTuple

from shadowtime.services.live.rows import Ranges, Rows
from shadowtime.shared.events import JobEnded
from shadowtime.shared.formatting import DAY
from shadowtime.shared.jobs_in_system import RunningJob

MAX_BLOCKS = 1_500
"""Ended jobs in the picture; with more in a day it has all jobs of less than a day."""

STEP = 300
"""Seconds between two points of the line of waiting jobs."""


class Block(NamedTuple):
    """A job that has ended, in the picture of the machine."""

    job: int
    user: int | None
    start: int
    end: int
    rows: Ranges


class Picture:
    """What has ended within the last day, the rows of what runs, and the line of waiting jobs.

    O(1) an event, amortised.

    Parameters
    ----------
    time, processors
        When the run began, and the size of its machine.
    """

    def __init__(self, time: int, processors: int) -> None:
        self.rows = Rows(processors)
        self.blocks: deque[Block] = deque()
        self.covered_from = time
        """Since when it has all jobs."""
        self.history: dict[int, int] = {}
        """By the step of the day, the jobs that waited at its end."""

    def pass_time(self, before: int, waiting: int, now: int) -> None:
        """Note how an instant ended that was followed by another; forget what is a day ago."""
        self.history[before // STEP * STEP] = waiting
        while self.blocks and self.blocks[0].end < now - DAY:
            self.blocks.popleft()
        while len(self.history) > 1 and next(islice(self.history, 1, None)) <= now - DAY:
            del self.history[next(iter(self.history))]
        self.covered_from = max(self.covered_from, now - DAY)

    def end(self, ended: JobEnded, job: RunningJob, rows: Ranges) -> None:
        """Free the rows of a job, and keep it."""
        self.rows.give(rows)
        self.blocks.append(Block(ended.job_number, job.submitted.user_id, job.started.time, ended.time, rows))
        if len(self.blocks) > MAX_BLOCKS:
            self.covered_from = max(self.covered_from, self.blocks.popleft().end)
