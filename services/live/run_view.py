"""What the live page asks of one run: its machine, who waits and runs, who is next."""

from collections.abc import Iterator
from heapq import nsmallest

from shadowtime.services.live.outlook import (
    MAX_RUNNING,
    NEVER,
    Head,
    Machine,
    Planned,
    now_or_later,
    planned,
    reservation,
)
from shadowtime.services.live.run_stories import Stories
from shadowtime.services.live.story import Story


class LiveView(Stories):
    """One run, as it is at present."""

    @property
    def remembered(self) -> int:
        """Jobs whose stories are kept."""
        return len(self.stories)

    def machine(self) -> Machine:
        """Return the machine as it is, processors of jobs that start now taken."""
        free = self.processors - self.busy - sum(self.starting.values())
        return Machine(self.time, self.processors, free, self.log.unix_start)

    def waiting(self) -> Iterator[Story]:
        """Yield the jobs that wait, in the order in which they came."""
        return map(self.stories.__getitem__, self.jobs.waiting)

    def running(self) -> Iterator[Story]:
        """Yield the jobs that run."""
        return map(self.stories.__getitem__, self.jobs.running)

    def head(self) -> Head | None:
        """Return the first job in line, and when it can start by the ends that are expected. O(running log running)."""
        may_start = (number for number, job in self.jobs.waiting.items() if not job.blocked)
        number = next((each for each in may_start if self.in_order or each == self.named_head), None)
        if number is None:
            return None
        ends = ((now_or_later(each, self.time), each.started.processors) for each in self.running() if each.started)
        story = self.stories[number]
        known = (each for each in ends if each[0] < NEVER)
        return Head(story, *reservation(self.machine(), story.job.requested_processors, known))

    def next_to_end(self, count: int) -> list[Story]:
        """Return the running jobs that are expected to end first."""
        return nsmallest(count, self.running(), key=lambda each: now_or_later(each, self.time))

    def planned(self, head: Head | None) -> list[Planned]:
        """Return the next starts to come; none where so many jobs run that finding them room would take too long."""
        if len(self.jobs.running) > MAX_RUNNING:
            return []
        return list(planned(self.machine(), head, self.waiting(), self.running()))
