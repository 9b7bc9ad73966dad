"""Guards of the queue's head: the head's accumulated risk of delay, and its promised start."""

from typing import Any

from shadowtime.services.scheduler.tables import NEVER
from shadowtime.shared.messages import ClusterOpened, Event, JobStarted, JobSubmitted, JobWithdrawn, moment

ALWAYS = ClusterOpened(time=0, cluster="any", processors=1)
"""Stands for the run before `open` is called: all decisions take effect."""


def add_risk(spent: float, probability: float) -> float:
    """Return the probability of at least one delay, given the probability `spent` so far and a further risk.

    >>> add_risk(0.5, 0.1)
    0.55
    """
    return 1.0 - (1.0 - spent) * (1.0 - probability)


class HeadGuard:
    """Risk and promise of each waiting job that is or was head, and the longest wait so far. O(1) for each event."""

    def __init__(self) -> None:
        self.risk_spent: dict[int, float] = {}
        """Probability so far that a job has been delayed, by job number, for each waiting job that was head."""
        self.promises: dict[int, int] = {}
        """Promised start of each head in seconds, by job number. It is the shadow time by requested times at the first
        pass with a candidate that fitted."""
        self.submit_times: dict[int, int] = {}
        """Submit times of the waiting jobs, by job number."""
        self.longest_wait = 0
        self.head: int | None = None
        """Head of the last pass; only recorded if the queue is not in order of arrival."""

    def promise(self, head: int, now: int, shadow_time: int) -> int:
        """Return the start first promised to a head, in seconds. Without an earlier promise it is `shadow_time`.

        A promise that lies `NEVER` or further ahead is replaced: when it was made, no end of the running jobs was
        known.
        """
        if self.promises.get(head, now + NEVER) - now >= NEVER:
            self.promises[head] = shadow_time
        return self.promises[head]

    def follow(self, head: int, *, overtaken: bool) -> None:
        """Record the head of a pass. Only orders other than arrival need this: a later job may go before the head.

        A promise protects the head from backfilled jobs, and holds while its job stays the head. The promise is dropped
        if another job has been head since, or if jobs ahead of the head started at this pass (`overtaken`). The spent
        risk stays with the job.
        """
        if overtaken or head != self.head:
            self.promises.pop(head, None)
        self.head = head

    def observe(self, event: Event) -> None:
        """Apply an event: update the longest wait, drop the risk and the promise of a job that left the queue."""
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
        """Restore the state that `snapshot` returned."""
        self.risk_spent, self.promises = dict(state["spent"]), dict(state["promises"])
        self.submit_times, self.longest_wait = dict(state["submit_times"]), state["longest_wait"]
        self.head = state["head"]
