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
    """The present state of one run, with the reasons for waits and the next starts."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self._explains: Explains | None = None
        with suppress(SettingsError):  # the policy is not installed here
            self._explains = following(opened)

    def handle(self, envelope: Envelope) -> Envelope:
        """Apply an event to the view and to the explanations of waits. If these fail, the run has no explanations."""
        output = super().handle(envelope)
        if self._explains is not None:
            try:
                self._explains.handle(envelope)
            except Exception:
                log.exception("the live page shows no more explanations of waits", extra={"run": envelope.run})
                self._explains = None

        return output

    def why(self, number: int) -> list[str]:
        """Return the reasons why a job waits, one sentence each.

        The list is empty if the job does not wait or the reasons are unknown.
        """
        explanation = self._explanation(number, brief=False)
        return [] if explanation is None else reasons_of(explanation)

    def brief(self, number: int) -> str:
        """Return the reason why a job waits in one sentence; empty in the same cases as `why`."""
        explanation = self._explanation(number, brief=True)
        return "" if explanation is None else brief_of(explanation)

    def _explanation(self, number: int, *, brief: bool) -> Explanation | None:
        if self._explains is None or number not in self.jobs.waiting:
            return None
        return self._explains.explain(number, "", 0, brief=brief)

    @property
    def remembered(self) -> int:
        """The number of jobs whose stories are kept."""
        return len(self.stories)

    def machine(self) -> MachineMoment:
        """Return the machine at present. Processors of jobs whose start was decided are not free."""
        free = self.processors - self.busy - sum(self.starting.values())
        return MachineMoment(self.time, self.processors, free, self.log.unix_start)

    def waiting(self) -> Iterator[Story]:
        """Yield the jobs that wait, in order of arrival."""
        return map(self.stories.__getitem__, self.jobs.waiting)

    def running(self) -> Iterator[Story]:
        """Yield the jobs that run."""
        return map(self.stories.__getitem__, self.jobs.running)

    def head(self) -> Head | None:
        """Return the head of the queue, and its start by the expected ends of the running jobs; None if unknown.

        O(running log running).
        """
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
        """Return the next future starts. The list is empty if more than `MAX_RUNNING` jobs run."""
        if len(self.jobs.running) > MAX_RUNNING:
            return []
        return list(planned(self.machine(), head, self.waiting(), self.running()))
