"""The live page's view of one run: its machine, its waiting and running jobs, and the next start."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from heapq import nsmallest

import numpy as np

from shadowtime.services.pipeline import following
from shadowtime.services.processes.live.outlook import MAX_RUNNING, Head, MachineMoment, Planned, now_or_later, planned
from shadowtime.services.processes.live.run_stories import Stories
from shadowtime.services.processes.live.story import Story
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import BEYOND, shadow_of
from shadowtime.shared.messages import ClusterOpened, Envelope, Explains, Explanation
from shadowtime.shared.text import brief_of, reasons_of

log = logging.getLogger("shadowtime.live")


class LiveView(Stories):
    """One run, as it is at present."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self._explains: Explains | None = None
        with suppress(SettingsError):  # of a policy that is not installed here
            self._explains = following(opened)

    def handle(self, envelope: Envelope) -> Envelope:
        """Take in an event, also what it says of why jobs wait; if that fails the run is shown without."""
        output = super().handle(envelope)
        if self._explains is not None:
            try:
                self._explains.handle(envelope)
            except Exception:
                log.exception("why jobs wait is not shown any more", extra={"run": envelope.run})
                self._explains = None

        return output

    def why(self, number: int) -> list[str]:
        """Return why a job waits, in sentences; nothing of one that does not, or of which that is not known."""
        explanation = self._explanation(number, brief=False)
        return [] if explanation is None else reasons_of(explanation)

    def brief(self, number: int) -> str:
        """Return the same in one sentence."""
        explanation = self._explanation(number, brief=True)
        return "" if explanation is None else brief_of(explanation)

    def _explanation(self, number: int, *, brief: bool) -> Explanation | None:
        if self._explains is None or number not in self.jobs.waiting:
            return None
        return self._explains.explain(number, "", 0, brief=brief)

    @property
    def remembered(self) -> int:
        """Jobs whose stories are kept."""
        return len(self.stories)

    def machine(self) -> MachineMoment:
        """Return the machine as it is, processors of jobs that start now taken."""
        free = self.processors - self.busy - sum(self.starting.values())
        return MachineMoment(self.time, self.processors, free, self.log.unix_start)

    def waiting(self) -> Iterator[Story]:
        """Yield the jobs that wait, in the order in which they came."""
        return map(self.stories.__getitem__, self.jobs.waiting)

    def running(self) -> Iterator[Story]:
        """Yield the jobs that run."""
        return map(self.stories.__getitem__, self.jobs.running)

    def head(self) -> Head | None:
        """Return the first job in line, and when it can start by the ends that are expected. O(running log running)."""
        may_start = (number for number, job in self.jobs.waiting.items() if not job.blocked)
        number = next((candidate for candidate in may_start if self.in_order or candidate == self.named_head), None)
        if number is None:
            return None
        story = self.stories[number]
        held = [(job.started.processors, now_or_later(job, self.time)) for job in self.running() if job.started]
        sizes = np.array([size for size, _ in held], dtype=np.int64).reshape(-1, 1)
        ends = np.array([end for _, end in held], dtype=np.int64)
        needed, free = np.array([story.job.requested_processors]), np.array([self.machine().free])
        start, _ = shadow_of(needed, free, sizes, ends)
        return Head(story, None if start >= BEYOND else max(start, self.time))

    def next_to_end(self, count: int) -> list[Story]:
        """Return the running jobs that are expected to end first."""
        return nsmallest(count, self.running(), key=lambda job: now_or_later(job, self.time))

    def planned(self, head: Head | None) -> list[Planned]:
        """Return the next starts to come; none where so many jobs run that finding them room would take too long."""
        if len(self.jobs.running) > MAX_RUNNING:
            return []
        return list(planned(self.machine(), head, self.waiting(), self.running()))
