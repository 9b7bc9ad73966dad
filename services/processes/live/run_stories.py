"""The live page's state of one run, updated by its envelopes; without I/O and of bounded size.

The cost of an event is linear in the size of its envelope. If a job gets or frees rows, `PictureRows` adds its cost.
"""

import re
from bisect import bisect_left
from collections import deque
from itertools import islice
from typing import Any

from shadowtime.services.processes.live.outlook import IN_ORDER, base
from shadowtime.services.processes.live.rows import Picture
from shadowtime.services.processes.live.story import Story, Trust, Weighed
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Coverage,
    Decided,
    Envelope,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    PolicyScores,
    Rejected,
    WaitBound,
    WaitRanges,
    moment,
)
from shadowtime.shared.stages import RunningJob, StageHandler, new_request
from shadowtime.shared.text import RunContext, Sentence, chosen, sentences

MAX_ENDED = 5_000
"""The number of ended jobs of a run that are remembered: the last ones."""

MAX_OWNERS = 100_000
"""The number of users whose accounts are remembered."""

DECISIONS = 40

SIZES = (1, 4, 16, 64, 256)
"""The largest sizes of the classes for which a bound is shown, in processors. One more class has all larger jobs."""

SORTED = re.compile(r"[(:,]queue=(?!(fcfs|BF|yes|no)\b)")
"""The key of a SPEC that sets another order of the queue. With it, even a policy of `IN_ORDER` has another head."""


def size_class(processors: int) -> int:
    """Return the class of `SIZES` of a job that requests so many processors, from 0."""
    return bisect_left(SIZES, processors)


class Stories(StageHandler):
    """One run: the story of each of its jobs, the picture of its machine, and its last events in sentences."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self.log = RunContext.of(opened)
        self.stories: dict[int, Story] = {}
        """The stories of jobs that wait, run, or were among the last to end, by number."""
        self.ended: dict[int, Story] = {}
        self.of_user: dict[int, dict[int, None]] = {}
        self.accounts: dict[int, set[int]] = {}
        """The accounts in which each user has had jobs, also jobs that are forgotten."""
        self.picture = Picture(opened.time, opened.processors)
        self.decisions: deque[tuple[int, int, Sentence]] = deque(maxlen=DECISIONS)
        self.decided = 0
        self.busy = self.count_started = self.count_ended = self.wait = self.longest_wait = 0
        self.starting: dict[int, int] = {}
        """Processors of the jobs with a decided start that has not happened yet, by job number."""
        self.named_head: int | None = None
        self.in_order = base(opened.policy) in IN_ORDER and not SORTED.search(opened.policy)
        self.last_bounds: tuple[WaitBound, ...] = ()
        self.by_size: dict[int, tuple[int, list[WaitBound]]] = {}
        """For each class of `SIZES`: the time of its latest bound, and the bounds of then, the one to show first."""
        self.coverage: dict[tuple[str, int | None], Coverage] = {}
        self.ranges: dict[tuple[str, int | None], WaitRanges] = {}
        """The latest ranges of processors of each grouping, for the cluster and for each queue."""
        self.scores: PolicyScores | None = None
        self.quarantined: str | None = None
        self.trust = Trust()

    def answer(self, envelope: Envelope, known: Any) -> Envelope:
        """Apply an event. At the first event of an instant, note how many jobs waited after the previous instant."""
        time = envelope.event.time
        if time > self.time and not isinstance(envelope.event, Rejected):
            self.picture.pass_time(self.time, len(self.jobs.waiting), time)
        self.trust.take_in(envelope.drifts or ())
        return super().answer(envelope, known)

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Begin the job's story."""
        self._forget(self.ended.get(job.job_number))
        self.stories[job.job_number] = Story(envelope, job)
        self._list(job)
        if envelope.wait_bounds:
            self.last_bounds = tuple(wait_bound for wait_bound in envelope.wait_bounds if wait_bound.queue is None)
        self.ranges |= {(ranges.grouping, ranges.queue): ranges for ranges in envelope.wait_ranges or ()}
        if (bound := chosen(envelope.wait_bounds)) is not None:
            others = [other for other in self.last_bounds if other.bound is not None and other is not bound]
            self.by_size[size_class(job.requested_processors)] = job.time, [bound, *others]
        return envelope

    def on_withdrawn(self, envelope: Envelope, withdrawn: JobWithdrawn, job: JobSubmitted) -> Envelope:
        """End the job's story. A held job has another story when it is submitted again."""
        self.stories[job.job_number].withdraw(withdrawn)
        self._remember(self.stories[job.job_number])
        self._note_decisions(withdrawn.time, *sentences(envelope, self.log))
        return envelope

    def on_changed(self, envelope: Envelope, changed: JobChanged, old: JobSubmitted, new: JobSubmitted) -> Envelope:
        """Continue the story with the changed job."""
        self._unlist(self.stories[new.job_number].job)
        self._list(new)
        self.stories[new.job_number].job = new
        if new_request(changed).keys() != {"site_reason"}:
            self._note_job(self.stories[new.job_number], envelope)
        return envelope

    def on_expected(self, envelope: Envelope, expected: JobExpected, job: JobSubmitted) -> Envelope:
        """Record the start that the site's own scheduler expects."""
        self.stories[job.job_number].expect(expected)
        return envelope

    def on_running_changed(self, envelope: Envelope, old: RunningJob, new: RunningJob) -> Envelope:
        """Give the job rows for its new size."""
        story = self.stories[new.submitted.job_number]
        if old.suspended is None:
            self._stand_aside(story, old.started)
            self._take_place(story, new.started)
        story.change(new)
        self._note_job(story, envelope)
        return envelope

    def on_suspended(self, envelope: Envelope, suspended: JobSuspended, job: RunningJob) -> Envelope:
        """Free the job's rows while it is suspended."""
        story = self.stories[suspended.job_number]
        self._stand_aside(story, job.started)
        story.suspended = True
        self._note_job(story, envelope)
        return envelope

    def on_resumed(self, envelope: Envelope, resumed: JobResumed, job: RunningJob) -> Envelope:
        """Give the job rows again."""
        story = self.stories[resumed.job_number]
        story.resume(job.stood_still(moment(resumed)))
        self._take_place(story, job.started)
        self._note_job(story, envelope)
        return envelope

    def _stand_aside(self, story: Story, started: JobStarted) -> None:
        self.busy -= started.processors
        self.picture.rows.give(story.ranges)
        story.ranges = ()

    def _take_place(self, story: Story, started: JobStarted) -> None:
        self.busy += started.processors
        story.ranges = self.picture.rows.take(started.processors)

    def _note_job(self, story: Story, envelope: Envelope) -> None:
        for sentence in sentences(envelope, self.log):
            story.note(envelope.event.time, "; ".join((sentence.what, *sentence.details)))
            self._note_decisions(envelope.event.time, sentence)

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Give the job rows in the picture."""
        story = self.stories[job.job_number]
        story.start(started)
        self.starting.pop(job.job_number, None)
        self._take_place(story, started)
        return envelope

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Count the wait."""
        self.count_started += 1
        self.wait += wait
        self.longest_wait = max(self.longest_wait, wait)
        self.coverage |= {(entry.grouping, entry.queue): entry for entry in envelope.coverage}
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Free the job's rows. Keep its story until `MAX_ENDED` later jobs have ended."""
        story = self.stories[ended.job_number]
        if job.suspended is None:
            self.busy -= job.started.processors
        self.picture.end(ended, job, story.ranges)
        if envelope.adjustment is not None:
            story.adjustment = envelope.adjustment.outcome
        story.lost = job.stood_still(moment(ended))
        story.end(ended)
        if not ended.requeued:
            self.count_ended += 1
            self._remember(story)
        return envelope

    def _remember(self, story: Story) -> None:
        self.ended[story.job.job_number] = story
        if len(self.ended) > MAX_ENDED:
            self._forget(next(iter(self.ended.values())))

    def _forget(self, story: Story | None) -> None:
        if story is None:
            return
        del self.stories[story.job.job_number], self.ended[story.job.job_number]
        self._unlist(story.job)

    def _list(self, job: JobSubmitted) -> None:
        if job.user_id is not None:
            self.of_user.setdefault(job.user_id, {})[job.job_number] = None
            if job.group_id is not None:
                self.accounts.setdefault(job.user_id, set()).add(job.group_id)
                if len(self.accounts) > MAX_OWNERS:
                    del self.accounts[next(iter(self.accounts))]

    def _unlist(self, job: JobSubmitted) -> None:
        if job.user_id is not None:
            del self.of_user[job.user_id][job.job_number]
            if not self.of_user[job.user_id]:
                del self.of_user[job.user_id]

    def on_capacity(self, envelope: Envelope, changed: CapacityChanged) -> Envelope:
        """Record the new size of the machine."""
        self.picture.rows.processors = max(self.processors, self.processors_after(changed))
        self._note_decisions(changed.time, *sentences(envelope, self.log))
        return envelope

    def on_decided(self, envelope: Envelope, decided: Decided) -> Envelope:
        """Record the decisions, and the risk of each candidate that was not started. Record advice once per job."""
        for sentence in sentences(envelope, self.log):
            story = None if sentence.job is None else self.stories.get(sentence.job)
            if story is not None:
                if sentence.kind == "start" and not self.log.obeyed:
                    if story.advised is not None:
                        continue
                    story.advised = decided.time

                verb = "decided" if self.log.obeyed else "advised"
                story.note(decided.time, f"{verb} to {sentence.kind} it: {'; '.join(sentence.details)}")

            self._note_decisions(decided.time, sentence)

        self.log = self.log.after(decided)
        if self.log.obeyed:
            self.starting = {other.job_number: other.processors for other in decided.starts}
        for start in decided.starts:
            head = getattr(start.reason, "head", None)
            if head in self.jobs.waiting:
                self.named_head = head
                if self.log.obeyed:
                    self.stories[head].overtake(decided.time, start.job_number)

        for tried in decided.evaluated:
            self.named_head = tried.head
            shares = tried.probabilities if tried.recalibrated is None else tried.recalibrated
            refused = len(tried.job_numbers) - tried.accepted
            for number, share in islice(zip(tried.job_numbers, shares, strict=True), refused):
                if (story := self.stories.get(number)) is not None:
                    story.weighed = Weighed(decided.time, tried.head, share)
                    story.times_weighed += 1

        return envelope

    def _note_decisions(self, time: int, *sentences: Sentence) -> None:
        for change in sentences:
            self.decided += 1
            self.decisions.append((self.decided, time, change))

    def on_rejected(self, envelope: Envelope, rejected: Rejected) -> Envelope:
        """Record the reason if a stage has quarantined the run. No more events of the run follow."""
        if rejected.code == "quarantined":
            self.quarantined = rejected.reason
        return envelope

    def on_closed(self, envelope: Envelope, closed: ClusterClosed) -> Envelope:
        """Record the final scores."""
        self.scores = None if envelope.scores is None else envelope.scores.policy
        return envelope
