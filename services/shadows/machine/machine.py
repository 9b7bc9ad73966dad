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
cluster did, so it can need a run time that nobody knows yet (docs/shadows.md#how-a-shadow-runs):

* An `exact` shadow stops there, until the log has the run time. Its log equals that of a closed replay.
* Any other shadow goes on. The job runs for its predicted time, is then suspended, and gives its processors back. When
  the log has the true run time, the job resumes for the rest, if any, and ends.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from shadowtime.services.shadows.machine.cluster_log import Actual
from shadowtime.services.shadows.machine.event_effects import REACHING, apply_cluster_event, mirror_cluster_event
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

# What has happened on a cluster and is still to come in the shadow of it, in order of time.


class PendingEvents:
    """Events with the lives of their jobs; nothing reaches one that is done."""

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
        """Yield and let go of all events up to a time, also of those that are added meanwhile."""
        while self.next_time() <= time:
            yield self._events.popleft()

    def snapshot(self, places: dict[int, int]) -> Any:
        """Return it as plain values; `places` has a number for each life."""
        return [
            [event.model_dump(), None if life is None else places[id(life)]]
            for event, life in self._events
            if life is None or not life.done
        ]

    def restore(self, state: Any, lives: Sequence[ShadowJob]) -> None:
        """Take on what `snapshot` returned, of the same lives."""
        events = EVENTS.validate_python([event for event, _ in state])
        of = [None if at is None else lives[at] for _, at in state]
        self._events = deque(zip(events, of, strict=True))


class TwinMachine:
    """A machine beside a cluster, sans-I/O: told what happens on it, asked what happens in the shadow.

    An instant costs O(jobs that run).

    Parameters
    ----------
    opened
        How the log of the cluster was opened.
    exact
        Whether it waits for what is not known, or goes by predictions.
    takes_over
        From when on, in seconds, it decides who runs; what happened before that happens in it as it did.
    """

    def __init__(self, opened: ClusterOpened, *, exact: bool, takes_over: int = 0) -> None:
        self.horizon = -1
        """Up to when, in seconds, the log of the cluster is known."""
        self.deciding = False
        """Whether the decision of the last instant is awaited."""
        self.closed = False
        self.actual = Actual()
        self._exact = exact
        self.takes_over = takes_over
        self._clock = opened.time  # of the last instant that was told
        self._machine = MachineState(opened)
        self._batch: list[Event] = []
        self._pending = PendingEvents()
        self._caused: list[Event] = []
        self._closing = False
        self._again: int | None = None  # when the policy wants to be asked once more

    @property
    def decides(self) -> bool:
        """Whether it has taken over."""
        return self.horizon >= self.takes_over or self._closing

    @property
    def telling(self) -> bool:
        """Whether what comes next follows from what was decided, or has happened."""
        return bool(self._caused)

    @property
    def behind(self) -> int:
        """By how many seconds it lags behind what is known of the cluster."""
        if self.closed or not (self.deciding or self._exact):
            return 0
        until = self._clock if self.deciding else min(self._machine.surely(self.horizon), self.horizon)
        return max(self.horizon - until, 0)

    @property
    def hungry(self) -> bool:
        """Whether it can tell nothing more before it has heard more."""
        return not self.deciding and not self.closed and self.next_time() is None

    def hear(self, event: Event) -> None:
        """Take in the next event of the cluster's log."""
        self._batch.append(event)
        if not isinstance(event, SchedulingPoint | ClusterClosed):
            return
        batch, self._batch = self._batch, []
        self.horizon, self._closing = event.time, isinstance(event, ClusterClosed)
        for record in batch:
            if record.time < self.takes_over:
                self._caused += self._happened(record)
            else:
                self._note(record)

    def _note(self, event: Event) -> None:
        """Take in what happened on the cluster; what concerns the shadow happens there as it comes to that instant."""
        life = self.actual.hear(event)
        if isinstance(event, JobStarted) and life is not None and life.blocked:
            life.blocked = False  # nothing has blocked one that starts
            event = JobChanged(time=event.time, job_number=event.job_number, blocked=False)
        if isinstance(event, REACHING):
            self._pending.append(event, life)

    def _happened(self, event: Event) -> Sequence[Event]:
        """Let happen in the shadow what happened on the cluster."""
        self._clock = event.time
        life = self.actual.hear(event)
        if isinstance(event, CapacityChanged):
            self._machine.resize(event)
        elif life is not None:
            mirror_cluster_event(self._machine, event, life)
            self.actual.forget_if_over(life)

        return [] if isinstance(event, JobExpected) else [event]

    def predict(self, job_number: int, seconds: float) -> None:
        """Take in for how long a job is expected to run that waits in the shadow."""
        if (life := self._machine.waiting.get(job_number)) is not None:
            life.predicted = seconds

    def next_time(self) -> int | None:
        """Return the time of the next instant; None if that is not known yet, or a decision is awaited."""
        if self._caused:
            return self._caused[0].time
        if self.deciding or self.closed or not self.decides:
            return None
        time = min((end for _, end in self._ends()), default=NEVER)
        time = min(time, self._pending.next_time(), NEVER if self._again is None else self._again)
        if self._closing:
            return self._clock if time == NEVER else time
        return None if time > self.horizon or (self._exact and time > self._machine.surely(self.horizon)) else time

    def _ends(self) -> Iterator[tuple[int, int]]:
        """Yield numbers of running jobs and when they end, stop or go on, as far as that is known."""
        for number, end in self._machine.ends(self.horizon, presumed=self._closing or not self._exact):
            yield number, end if end > self._clock else max(self.horizon, self._clock)

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant, or what the last decision has caused, and move on."""
        if self._caused:
            caused, self._caused = self._caused, []
            return caused
        time = self.next_time()
        if time is None:
            return ()
        ends = [number for number, end in self._ends() if end <= time]
        if not ends and self._again is None and self._pending.next_time() == NEVER:  # nothing is left
            self.closed = True
            return [ClusterClosed(time=self._clock)]
        self._clock = time
        events = in_order(self._finish(self._machine.running[number]) for number in sorted(ends))
        for event, life in self._pending.until(time):
            events += apply_cluster_event(self._machine, event, life)
            if life is not None and life.done:
                self._done(life)

        self.deciding = True
        return [*events, SchedulingPoint(time=time)]

    def apply(self, decided: Decided) -> None:
        """Do what was decided at the last instant: kill, then start; before it has taken over that is advice.

        Raises
        ------
        ReplayError
            If a decision cannot be carried out; names the job.
        """
        if not self.deciding:
            return
        self.deciding, self._again = False, decided.again
        if self._closing and not self._machine.running and decided.time > self.horizon + DAY:
            self._again = None  # what waits will wait for ever
        for kill in decided.kills:
            life = self._machine.running.get(kill.job_number)
            if life is None or (kill.requeue and not life.job.restartable):
                raise ReplayError(
                    f"job {kill.job_number} is to be killed at {self._clock} but does not run, or restart"
                )

            ended = life.execution().ended(self._clock, killed=True, requeue=kill.requeue)
            self._leave_machine(life, ended)
            self._caused.append(ended)

        self._caused += [self._machine.carry_out(start, self._clock) for start in decided.starts]

    def _finish(self, life: ShadowJob) -> Event:
        """End a job, or stop it, or let it go on."""
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
        if life.left is not None and life.left <= self._clock:  # it left the queue of the cluster while it ran here
            self._pending.insert(JobWithdrawn(time=self._clock, job_number=ended.job_number), life)

    def _done(self, life: ShadowJob) -> None:
        """Let a life be done; what bears its number next may come now."""
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
        """Take on what `snapshot` returned."""
        self.horizon, self._clock, self.deciding = state["horizon"], state["clock"], state["deciding"]
        self._closing, self.closed, self._again = state["closing"], state["closed"], state["again"]
        lives = [ShadowJob.of(values) for values in state["lives"]]
        self.actual = Actual(lives)
        self._machine.restore(state["machine"], lives)
        self._pending.restore(state["coming"], lives)
        self._batch = EVENTS.validate_python(state["batch"])
        self._caused = EVENTS.validate_python(state["caused"])
