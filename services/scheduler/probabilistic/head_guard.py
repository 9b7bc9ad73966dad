"""Guards of the queue's head: the risk that it was put to, and its promised start."""

from typing import Any

from shadowtime.services.scheduler.tables import NEVER
from shadowtime.shared.messages import ClusterOpened, Event, JobStarted, JobSubmitted, JobWithdrawn, moment

ALWAYS = ClusterOpened(time=0, cluster="any", processors=1)
"""Of a run, before it was opened: what is decided is what happens."""


def add_risk(spent: float, probability: float) -> float:
    """Return the probability of at least one delay, if that was `spent` before one more of `probability`.

    >>> add_risk(0.5, 0.1)
    0.55
    """
    return 1.0 - (1.0 - spent) * (1.0 - probability)


class HeadGuard:
    """The record of each waiting job that is or was head, and the longest wait so far. O(1) an event."""

    def __init__(self) -> None:
        self.risk_spent: dict[int, float] = {}
        """Of each waiting job that was head: the probability, so far, that it has been delayed."""
        self.promises: dict[int, int] = {}
        """And its shadow time on the requests when a candidate first fitted ahead of it."""
        self.submit_times: dict[int, int] = {}
        """Of each waiting job."""
        self.longest_wait = 0
        self.head: int | None = None
        """Head of the last pass, where the order of the queue may change."""

    def promise(self, head: int, now: int, shadow_time: int) -> int:
        """Return when a head was first promised to start, in seconds; by now's shadow time where that is the first.

        A promise that could not be kept, as no end of the running jobs was known, is none.
        """
        if self.promises.get(head, now + NEVER) - now >= NEVER:
            self.promises[head] = shadow_time
        return self.promises[head]

    def follow(self, head: int, *, overtaken: bool) -> None:
        """Note the head of a pass, where another order than that of arrival may put other jobs before it.

        A promise is about backfilling, and holds for as long as its job stays the head: one that another job has gone
        before since, or at this pass, is promised anew. What it has been put to stays with it.
        """
        if overtaken or head != self.head:
            self.promises.pop(head, None)
        self.head = head

    def observe(self, event: Event) -> None:
        """Keep the longest wait; forget the risk of a head that has started, and what it was promised."""
        if isinstance(event, JobSubmitted):
            self.submit_times[event.job_number] = event.since
        elif isinstance(event, JobWithdrawn):
            for record in (self.submit_times, self.risk_spent, self.promises):
                record.pop(event.job_number, None)
        elif isinstance(event, JobStarted):
            submit_time = self.submit_times.pop(event.job_number, moment(event))  # a requeued job counts once
            self.longest_wait = max(self.longest_wait, moment(event) - submit_time)
            self.risk_spent.pop(event.job_number, None)
            self.promises.pop(event.job_number, None)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return {
            "spent": list(self.risk_spent.items()),
            "promises": list(self.promises.items()),
            "submit_times": list(self.submit_times.items()),
            "longest_wait": self.longest_wait,
            "head": self.head,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        self.risk_spent, self.promises = dict(state["spent"]), dict(state["promises"])
        self.submit_times, self.longest_wait = dict(state["submit_times"]), state["longest_wait"]
        self.head = state["head"]
