"""The live page's view of one run: its machine, its waiting and running jobs, and the next start."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from heapq import nsmallest
from itertools import islice

from shadowtime.services.explained import following
from shadowtime.services.processes.live.outlook import (
    MAX_LOOKED_AT,
    MAX_RUNNING,
    Head,
    MachineMoment,
    Planned,
    planned,
)
from shadowtime.services.processes.live.run_stories import Stories
from shadowtime.services.processes.live.story import Expected, Story
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import BEYOND
from shadowtime.shared.messages import ClusterOpened, Envelope, Explains, Explanation, StartOutlook
from shadowtime.shared.stages import expected_start
from shadowtime.shared.text import NamesJob, brief_of, reasons_of

log = logging.getLogger("shadowtime.live")


class LiveView(Stories):
    """The present state of one run, with the reasons for waits and the next starts."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self._explains: Explains | None = None
        self._briefly: dict[int, Explanation | None] = {}
        self._ends: Mapping[int, tuple[int, bool]] | None = None
        with suppress(SettingsError):  # the policy is not installed here
            self._explains = following(opened)

    def handle(self, envelope: Envelope) -> Envelope:
        """Apply an event to the view and to the explanations of waits. If these fail, the run has no explanations."""
        output = super().handle(envelope)
        self._briefly.clear()
        self._ends = None
        if self._explains is not None:
            try:
                self._explains.handle(envelope)
            except Exception:
                self._explain_no_more()

        return output

    def _explain_no_more(self) -> None:
        log.exception("the live page shows no more explanations of waits", extra={"cluster": self.opened.cluster})
        self._explains = None

    def why(self, number: int, job_id: NamesJob = str) -> list[str]:
        """Return the reasons why a job waits, one sentence each.

        `job_id` returns the id of a job from its number.

        The list is empty if the job does not wait or the reasons are unknown.
        """
        explanation = self._explanation(number, brief=False)
        return [] if explanation is None else reasons_of(explanation, job_id)

    def brief(self, number: int, job_id: NamesJob = str) -> str:
        """Return the reason why a job waits in one sentence; empty in the same cases as `why`."""
        explanation = self._brief(number)
        return "" if explanation is None else brief_of(explanation, job_id)

    def starts(self, story: Story) -> StartOutlook | None:
        """Return when a waiting job starts; None if it is being started.

        If the policy is not installed here, only the predictions of the submission are known.
        """
        explanation = self._brief(story.job.job_number)
        if explanation is None:
            return expected_start(self.time, story.job.since, story.predicted)
        return explanation.starts

    def expected_end(self, story: Story) -> Expected | None:
        """Return the expected end of a running job, as predicted and corrected; None if suspended or unknown.

        If the policy is not installed here, only the prediction of the submission is known.
        """
        if self._ends is None and self._explains is not None:
            try:
                self._ends = self._explains.expected_ends()
            except Exception:
                self._explain_no_more()
        if self._ends is None:
            return story.expected_end(self.time)
        end, predicted = self._ends.get(story.job.job_number, (0, False))
        return Expected(end, True) if predicted else story.end_at_limit()

    def end_or_never(self, story: Story) -> int:
        """Return the expected end of a running job, the present at the earliest; `BEYOND` if it is unknown."""
        expected = self.expected_end(story)
        return BEYOND if expected is None else max(expected.end, self.time)

    def _brief(self, number: int) -> Explanation | None:
        if number not in self._briefly:
            self._briefly[number] = self._explanation(number, brief=True)
        return self._briefly[number]

    def _explanation(self, number: int, *, brief: bool) -> Explanation | None:
        if self._explains is None or number not in self.jobs.waiting:
            return None
        try:
            return self._explains.explain(number, "", 0, brief=brief)
        except Exception:
            self._explain_no_more()
            return None

    @property
    def followed(self) -> bool:
        """Whether the run follows a real cluster."""
        return self.opened.follows

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
        """Return the head of the queue with its expected start; None if no job waits, or the head is unknown."""
        may_start = (number for number, job in self.jobs.waiting.items() if not job.blocked)
        number = next((candidate for candidate in may_start if self.in_order or candidate == self.named_head), None)
        if number is None:
            return None
        story = self.stories[number]
        starts = self.starts(story)
        return Head(story, None if starts is None else starts.expected)

    def next_to_end(self, count: int, sees: Callable[[Story], bool]) -> list[Story]:
        """Return up to `count` running jobs that are seen: those that are expected to end first, in this order."""
        return nsmallest(count, filter(sees, self.running()), key=self.end_or_never)

    def planned(self, head: Head | None) -> list[Planned]:
        """Return the next future starts. The list is empty if more than `MAX_RUNNING` jobs run."""
        if len(self.jobs.running) > MAX_RUNNING:
            return []
        starts = {story: self.starts(story) for story in islice(self.waiting(), MAX_LOOKED_AT)}
        ends = ((story, self.end_or_never(story)) for story in self.running())
        return list(planned(self.machine(), head, starts, ends))
