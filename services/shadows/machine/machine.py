"""The machine of a shadow: it gets the arrivals of a cluster, and carries out the decisions of its own policy.

Theory of operation
-------------------
The machine has two clocks. The *horizon* is the time up to which the log of the cluster is known. The *clock* is the
last instant that the shadow has emitted; it never passes the horizon.

Events of the cluster are of two kinds. Arrivals, withdrawals, changes of jobs and of capacity reach the shadow too
(`REACHING`). Starts and ends do not: in the shadow, jobs start when its own policy decides so.

An instant of the shadow takes two calls. First the machine emits the events of the instant and a scheduling point.
Then it waits for the decision of its policy (`deciding`), and emits the starts.

The run time of a job is known only once the job has ended on the cluster. A shadow may start a job earlier than the
cluster did, so it may need a run time that is still unknown (docs/shadows.md#how-a-shadow-runs):

* An `exact` shadow pauses until the log has the run time. The log of the shadow equals the log of a closed replay. A
  job that does not start on the cluster, such as a blocked one, would stop the shadow for ever. It is given up after
  `PATIENCE` and treated as in any other shadow.
* Any other shadow continues. The job runs for its predicted time, is then suspended, and releases its processors. Its
  pool is lent the memory and GPUs that the job holds. When the log has the true run time, the job resumes for the
  remaining time, if any, and ends.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from shadowtime.services.shadows.machine.cluster_log import Actual
from shadowtime.services.shadows.machine.event_effects import (
    REACHING,
    apply_cluster_event,
    mirror_cluster_event,
    without_site_reason,
)
from shadowtime.services.shadows.machine.job import ShadowJob
from shadowtime.services.shadows.machine.machine_state import NEVER, MachineState
from shadowtime.shared.cluster import in_order
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import (
    EVENTS,
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
)

PATIENCE = 7 * DAY
"""Seconds for which an exact shadow waits for a job to start on the cluster, after its start in the shadow."""

# Events that have happened on a cluster and are still pending in its shadow, in order of time.


class PendingEvents:
    """Pending events, each with the life of its job. Events of a life that is done are dropped."""

    def __init__(self) -> None:
        self._events: deque[tuple[Event, ShadowJob | None]] = deque()

    def append(self, event: Event, life: ShadowJob | None) -> None:
        """Add an event behind all others."""
        self._events.append((event, life))

    def insert(self, event: Event, life: ShadowJob) -> None:
        """Add an event before all others."""
        self._events.appendleft((event, life))

    def next_time(self) -> int:
        """Return the time of the next event in seconds; `NEVER` if there is none."""
        while self._events and (life := self._events[0][1]) is not None and life.done:
            self._events.popleft()
        return self._events[0][0].time if self._events else NEVER

    def until(self, time: int) -> Iterator[tuple[Event, ShadowJob | None]]:
        """Yield and remove all events up to a time, also those that are added meanwhile."""
        while self.next_time() <= time:
            yield self._events.popleft()

    def snapshot(self, places: dict[int, int]) -> Any:
        """Return the events as plain values. `places` maps the `id()` of a life to its index in the snapshot."""
        return [
            [event.model_dump(), None if life is None else places[id(life)]]
            for event, life in self._events
            if life is None or not life.done
        ]

    def restore(self, state: Any, lives: Sequence[ShadowJob]) -> None:
        """Restore the state that `snapshot` returned. `lives` are the same lives, in the order of `places`."""
        events = EVENTS.validate_python([event for event, _ in state])
        of = [None if at is None else lives[at] for _, at in state]
        self._events = deque(zip(events, of, strict=True))


class TwinMachine:
    """A shadow's machine, without I/O. Its input is the log of the cluster; its output is the log of the shadow.

    An instant costs O(running jobs).

    Parameters
    ----------
    opened
        The first event of the cluster's log.
    exact
        Whether the shadow waits for run times that are not known yet. Otherwise it uses predictions.
    takes_over
        The time, in seconds, from which on the shadow decides. Earlier events happen in the shadow as on the cluster.
    """

    def __init__(self, opened: ClusterOpened, *, exact: bool, takes_over: int = 0) -> None:
        self.horizon = -1
        """Time, in seconds, up to which the log of the cluster is known."""
        self.deciding = False
        """Whether the decision of the last instant is pending."""
        self.closed = False
        self.actual = Actual()
        self._exact = exact
        self.takes_over = takes_over
        self._clock = opened.time  # time of the last instant that was emitted
        self._machine = MachineState(opened)
        self._batch: list[Event] = []
        self._pending = PendingEvents()
        self._caused: list[Event] = []
        self._closing = False
        self._again: int | None = None  # time of the pass that the policy has requested

    @property
    def decides(self) -> bool:
        """Whether the shadow has taken over."""
        return self.horizon >= self.takes_over or self._closing

    @property
    def telling(self) -> bool:
        """Whether events are ready to emit: effects of the last decision or, before the takeover, of the cluster."""
        return bool(self._caused)

    @property
    def behind(self) -> int:
        """Lag, in seconds, behind the known log of the cluster."""
        if self.closed or not (self.deciding or self._exact):
            return 0
        until = self._clock if self.deciding else min(self._machine.least_known(self.horizon), self.horizon)
        return max(self.horizon - until, 0)

    @property
    def waits_for(self) -> tuple[int, int] | None:
        """The job whose real start an exact shadow waits for, and its start in the shadow; None if there is none."""
        life = self._machine.waits_for(self.horizon) if self._exact and not self.closed else None
        return None if life is None or life.start is None else (life.job.job_number, life.start)

    @property
    def needs_events(self) -> bool:
        """Whether the machine needs more events of the cluster before it can emit more events."""
        return not self.deciding and not self.closed and self.next_time() is None

    def receive(self, event: Event) -> None:
        """Add the next event of the cluster's log. Events are applied once their instant is complete."""
        shadowed = without_site_reason(event)
        if shadowed is not None:
            self._batch.append(shadowed)
        if not isinstance(event, SchedulingPoint | ClusterClosed):
            return
        batch, self._batch = self._batch, []
        self.horizon, self._closing = event.time, isinstance(event, ClusterClosed)
        if self._exact:
            self._machine.give_up(self.horizon, PATIENCE)
        for record in batch:
            if record.time < self.takes_over:
                self._caused += self._happened(record)
            else:
                self._note(record)

    def _note(self, event: Event) -> None:
        """Apply an event to the jobs of the cluster. An event that also happens in the shadow becomes pending there."""
        life = self.actual.receive(event)
        if isinstance(event, JobStarted) and life is not None and life.blocked:
            life.blocked = False  # a job that starts is not blocked
            event = JobChanged(time=event.time, job_number=event.job_number, blocked=False)
        if isinstance(event, REACHING):
            self._pending.append(event, life)

    def _happened(self, event: Event) -> Sequence[Event]:
        """Apply an event before the takeover, both to the cluster and to the shadow. Return the events to emit."""
        self._clock = event.time
        life = self.actual.receive(event)
        if isinstance(event, CapacityChanged):
            self._machine.resize(event)
        elif life is not None:
            mirror_cluster_event(self._machine, event, life)
            self.actual.forget_if_over(life)

        return [] if isinstance(event, JobExpected | ClusterClosed) else [event]  # a shadow emits its own end

    def predict(self, job_number: int, seconds: float) -> None:
        """Record the predicted run time, in seconds, of a job that waits in the shadow."""
        if (life := self._machine.waiting.get(job_number)) is not None:
            life.predicted = seconds

    def next_time(self) -> int | None:
        """Return the time of the next instant. Return None if the time is not known yet, or a decision is pending."""
        if self._caused:
            return self._caused[0].time
        if self.deciding or self.closed or not self.decides:
            return None
        time = min((end for _, end in self._ends()), default=NEVER)
        time = min(time, self._pending.next_time(), NEVER if self._again is None else self._again)
        if self._closing:
            return self._clock if time == NEVER else time
        return None if time > self.horizon or (self._exact and time > self._machine.least_known(self.horizon)) else time

    def _ends(self) -> Iterator[tuple[int, int]]:
        """Yield numbers of running jobs, and the known or presumed times at which they end, are suspended or resume."""
        for number, end in self._machine.ends(self.horizon, presumed=self._closing or not self._exact):
            yield number, end if end > self._clock else max(self.horizon, self._clock)

    def next_instant(self) -> Sequence[Event]:
        """Return the effects of the last decision, if there are any, else the events of the next instant."""
        if self._caused:
            caused, self._caused = self._caused, []
            return caused
        time = self.next_time()
        if time is None:
            return ()
        ends = [number for number, end in self._ends() if end <= time]
        if not ends and self._again is None and self._pending.next_time() == NEVER:  # no event is pending
            self.closed = True
            return [ClusterClosed(time=self._clock)]
        self._clock = time
        finished = [self._finish(self._machine.running[number]) for number in sorted(ends)]
        events = in_order([*finished, *self._machine.lend(time, exact=self._exact)])
        for event, life in self._pending.until(time):
            events += apply_cluster_event(self._machine, event, life)
            if life is not None and life.done:
                self._done(life)

        self.deciding = True
        return [*events, SchedulingPoint(time=time)]

    def apply(self, decided: Decided) -> None:
        """Carry out the decision of the last instant: kills, then starts. A decision before the takeover has no effect.

        Raise `ReplayError` if a decision cannot be carried out. The message names the job.
        """
        if not self.deciding:
            return
        self.deciding, self._again = False, decided.again
        if self._closing and not self._machine.running and decided.time > self.horizon + DAY:
            self._again = None  # no waiting job can start any more
        for kill in decided.kills:
            life = self._machine.running.get(kill.job_number)
            if life is None or (kill.requeue and not life.job.restartable):
                raise ReplayError(
                    f"the policy kills job {kill.job_number} at {self._clock}, "
                    "but the job does not run, or cannot be restarted"
                )

            ended = life.execution().ended(self._clock, killed=True, requeue=kill.requeue)
            self._leave_machine(life, ended)
            self._caused.append(ended)

        self._machine.allot(decided.starts)
        self._caused += [self._machine.carry_out(start, self._clock) for start in decided.starts]

    def _finish(self, life: ShadowJob) -> Event:
        """End, suspend or resume a job, and return the event."""
        finished = life.finished(self._clock, self.horizon)
        if isinstance(finished, JobSuspended):
            self._machine.stop(life, self._clock)
        elif isinstance(finished, JobResumed):
            self._machine.go_on(life, self._clock)
        else:
            self._leave_machine(life, finished)

        return finished

    def _leave_machine(self, life: ShadowJob, ended: JobEnded) -> None:
        self._machine.remove(life)
        if not ended.requeued:
            self._done(life)
            return
        self._machine.wait_again(life)
        if life.left is not None and life.left <= self._clock:  # left the cluster's queue meanwhile
            self._pending.insert(JobWithdrawn(time=self._clock, job_number=ended.job_number), life)

    def _done(self, life: ShadowJob) -> None:
        """Mark a life as done. The next life of the same number may arrive now."""
        life.done = True
        after = self.actual.next_after(life)
        self.actual.forget_if_over(life)
        if after is not None and after.due:
            self._pending.insert(after.job.model_copy(update={"time": self._clock}), after)

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        at = {id(life): place for place, life in enumerate(self.actual)}
        return {
            "horizon": self.horizon,
            "clock": self._clock,
            "deciding": self.deciding,
            "closing": self._closing,
            "closed": self.closed,
            "again": self._again,
            "lives": [life.snapshot() for life in self.actual],
            "machine": self._machine.snapshot(at),
            "coming": self._pending.snapshot(at),
            "batch": [event.model_dump() for event in self._batch],
            "caused": [event.model_dump() for event in self._caused],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.horizon, self._clock, self.deciding = state["horizon"], state["clock"], state["deciding"]
        self._closing, self.closed, self._again = state["closing"], state["closed"], state["again"]
        lives = [ShadowJob.of(values) for values in state["lives"]]
        self.actual = Actual(lives)
        self._machine.restore(state["machine"], lives)
        self._pending.restore(state["coming"], lives)
        self._batch = EVENTS.validate_python(state["batch"])
        self._caused = EVENTS.validate_python(state["caused"])
