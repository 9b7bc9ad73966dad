"""The logs of a cluster and of its shadow, paired job by job."""

from typing import Any

from shadowtime.services.shadows.comparison.open_days import REAL, SHADOW, Which
from shadowtime.services.shadows.comparison.schema import Comparison
from shadowtime.services.shadows.comparison.side_by_side import SideBySide
from shadowtime.shared.chance import key_of
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterOpened,
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    MachineCapacity,
    OfJob,
    moment,
)

HOUR = 3_600


class PairedLogs:
    """The pairing of both logs. The events of each log are applied in its own order; an event costs O(1).

    Only jobs that are submitted from the takeover on are compared. Utilization is compared from the takeover on. A held
    job counts as withdrawn. It is added again when it is released. A job is left out if a previous job with the same
    number has not ended on both machines.

    `opened` is the first event of the cluster's log. `takes_over` is the time in seconds from which on the shadow
    decides.
    """

    def __init__(self, opened: ClusterOpened, takes_over: int) -> None:
        self.both = SideBySide()
        self.both.capacity(max(opened.time, takes_over), opened.processors)
        self._key = key_of(opened.seed, opened.cluster)
        self._capacities = MachineCapacity(opened.processors, opened.pools or ())
        self._takes_over = takes_over
        self._before: dict[int, int] = {}  # processors of jobs that run before the shadow takes over
        self._on: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._reported: tuple[int, Comparison] | None = None

    def real(self, event: Event) -> None:
        """Apply the next event of the cluster's log."""
        if isinstance(event, CapacityChanged):
            self._capacities.change(event)
            self.both.capacity(max(event.time, self._takes_over), self._capacities.processors)
        elif event.time < self._takes_over:
            self._early(event)
        else:
            self._begin()
            self._real_event(event)

    def _early(self, event: Event) -> None:
        if isinstance(event, JobStarted):
            self._before[event.job_number] = event.processors
        elif isinstance(event, JobEnded):
            self._before.pop(event.job_number, None)

    def _begin(self) -> None:
        for number, processors in self._before.items():
            self.both.running(number, processors, self._takes_over)
            for on in self._on:
                on[number] = processors
        self._before = {}

    def _real_event(self, event: Event) -> None:
        if isinstance(event, JobSubmitted):
            number = event.job_number
            if number not in self._on[REAL] and number not in self._on[SHADOW] and not self.both.knows(number):
                self.both.submitted(event)
        elif isinstance(event, JobWithdrawn):
            self.both.withdrawn(event.job_number, event.time)
        else:
            self._runs(REAL, event)

    def shadow(self, event: Event) -> None:
        """Apply the next event of the shadow's log."""
        if event.time >= self._takes_over:
            self._begin()
            self._runs(SHADOW, event)

    def _runs(self, which: Which, event: Event) -> None:
        """Apply an event of a job on one of the two machines. A late event counts from the time when it happened."""
        if not isinstance(event, OfJob):
            return
        on, time = self._on[which], moment(event)
        if isinstance(event, JobStarted):
            on[event.job_number] = event.processors
            self.both.started(which, event.job_number, time, event.processors)
        elif isinstance(event, JobEnded):
            processors = on.pop(event.job_number, 0)
            if event.requeued:
                self.both.requeued(which, event.job_number, time)
            else:
                self.both.ended(which, event.job_number, time, event.run_time, processors)
        elif isinstance(event, JobSuspended):
            self.both.resized(which, event.job_number, time, 0)
        elif isinstance(event, JobResumed):
            self.both.resized(which, event.job_number, time, on.get(event.job_number, 0))
        elif isinstance(event, JobChanged) and event.requested_processors is not None and event.job_number in on:
            on[event.job_number] = event.requested_processors
            self.both.resized(which, event.job_number, time, event.requested_processors)

    def at(self, time: int) -> None:
        """Record the time, in seconds, up to which both logs are known."""
        self.both.at(time)

    def compared(self) -> Comparison:
        """Return the comparison. It is cached for an hour of the cluster's time."""
        now = self.both.horizon or 0
        if self._reported is None or now >= self._reported[0] + HOUR:
            self._reported = now, self.both.report(now, self._key)
        return self._reported[1]

    def snapshot(self) -> Any:
        """Return the state as plain values, without the state of the attribute `both`."""
        return {
            "rooms": self._capacities.snapshot(),
            "before": list(self._before.items()),
            "on": [list(on.items()) for on in self._on],
        }

    def restore(self, state: Any, both: Any) -> None:
        """Restore the states that `snapshot` and `both.snapshot` returned."""
        self.both.restore(both)
        self._capacities.restore(state["rooms"])
        self._before = dict(state["before"])
        real, shadow = map(dict, state["on"])
        self._on = real, shadow
        self._reported = None
