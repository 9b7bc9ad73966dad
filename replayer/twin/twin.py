"""The machine of a shadow: it gets the arrivals of a cluster, and what its own policy decides is done.

It hears the cluster's log instant by instant, each up to its scheduling point. How long a job runs it knows once the
log tells; until then (docs/twin.md#how-a-shadow-runs)

* `exact`: it stops where it would need to know. What it tells is what a closed replay of the whole log would tell.
* else it is never behind: a job runs for as long as it is predicted to, gives its processors back then, and ends once
  the log tells how long it really ran.
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Any

from shadowtime.replayer.embedded import EVENTS
from shadowtime.replayer.event_order import in_order
from shadowtime.replayer.room_left import RoomLeft
from shadowtime.replayer.twin.actual import Actual, Heard
from shadowtime.replayer.twin.life import Life
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.decisions import Start
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.events import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Event,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
)
from shadowtime.shared.jobs_in_system import new_request

NEVER = MAX_TIME + 1
"""In the place of a time that nothing happens at."""


class Twin:
    """A machine beside a cluster, sans-I/O: told what happens on it, asked what happens in the shadow.

    An instant costs O(jobs that run).

    Parameters
    ----------
    opened
        How the log of the cluster was opened.
    exact
        Whether it waits for what is not known, or goes by predictions.
    """

    def __init__(self, opened: ClusterOpened, *, exact: bool) -> None:
        self.exact = exact
        self.horizon = -1
        """Up to when, in seconds, the log of the cluster is known."""
        self.clock = opened.time
        """The time of the last instant that was told."""
        self.deciding = False
        """Whether the decision of the last instant is awaited."""
        self.closed = False
        self.actual = Actual()
        self._rooms = RoomLeft(opened.processors, opened.pools or ())
        self._batch: list[Event] = []
        self._coming: deque[Heard] = deque()
        self._waiting: dict[int, Life] = {}
        self._running: dict[int, Life] = {}
        self._caused: list[Event] = []
        self._closing = False

    @property
    def caused(self) -> bool:
        """Whether the last decision has caused what is not told yet."""
        return bool(self._caused)

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
        for each in batch:
            if (heard := self.actual.hear(each)) is not None:
                self._coming.append(heard)

    def predict(self, job_number: int, seconds: float) -> None:
        """Take in for how long a job is expected to run that waits in the shadow."""
        if (life := self._waiting.get(job_number)) is not None:
            life.predicted = seconds

    def next_time(self) -> int | None:
        """Return the time of the next instant; None if that is not known yet, or a decision is awaited."""
        if self._caused:
            return self.clock
        if self.deciding or self.closed:
            return None
        time = min((end for life in self._running.values() if (end := self._end(life)) is not None), default=NEVER)
        if self._coming:
            time = min(time, self._coming[0].event.time)
        if self._closing:
            return self.clock if time == NEVER else time
        return None if time > self.horizon or (self.exact and time > self._surely()) else time

    def _surely(self) -> int:
        """Return up to when nothing ends but what is known to."""
        unknown = [life for life in self._running.values() if life.known_end(self.horizon) is None]
        return min((life.runs_until(self.horizon) for life in unknown), default=NEVER)

    def _end(self, life: Life) -> int | None:
        """Return when a running job ends, or gives its processors back; None if that is not known."""
        end = life.known_end(self.horizon)
        if end is None and life.freed is None and (self._closing or not self.exact):
            end, _ = life.presumed_end(self.horizon)
        return end if end is None or end > self.clock else max(self.horizon, self.clock)

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant, or what the last decision has caused, and move on."""
        if self._caused:
            caused, self._caused = self._caused, []
            return caused
        time = self.next_time()
        if time is None:
            return ()
        ends = [
            number for number, life in self._running.items() if (end := self._end(life)) is not None and end <= time
        ]
        if not ends and not self._coming:  # nothing is left
            self.closed = True
            return [ClusterClosed(time=self.clock)]
        self.clock = time
        events: list[Event] = [self._finish(self._running[number]) for number in sorted(ends)]
        while self._coming and self._coming[0].event.time <= time:
            events += self._take(*self._coming.popleft())
        self.deciding = True
        return in_order([*events, SchedulingPoint(time=time)])

    def apply(self, decided: Decided) -> None:
        """Do what was decided at the last instant: kill, then start.

        Raises
        ------
        ReplayError
            If a decision cannot be carried out; names the job.
        """
        self.deciding = False
        for kill in decided.kills:
            life = self._running.get(kill.job_number)
            if life is None or (kill.requeue and not life.job.restartable):
                raise ReplayError(f"job {kill.job_number} is to be killed at {self.clock} but does not run, or restart")
            ended = life.execution().ended(self.clock, killed=True, requeue=kill.requeue)
            self._release(life, ended)
            self._caused.append(ended)
        self._caused += [self._start(each) for each in decided.starts]

    def _start(self, decided: Start) -> JobStarted:
        life = self._waiting.pop(decided.job_number, None)
        if life is None:
            raise ReplayError(f"job {decided.job_number} is to start at {self.clock} but does not wait")
        life.start, life.on, life.limit = self.clock, decided.processors, decided.limit
        execution = life.execution()
        if lacking := self._rooms.lacking(execution.job, decided.processors):
            raise ReplayError(f"job {decided.job_number} is to start at {self.clock} on {lacking} free")
        self._running[decided.job_number] = life
        self._rooms.take(execution.job, decided.processors)
        return execution.started()

    def _finish(self, life: Life) -> JobEnded | JobSuspended:
        """End a job; one that is presumed to be over gives its processors back, or waits again as a trial that is cut."""
        execution, known = life.execution(), life.known_end(self.horizon)
        if known is None and not (execution.on_trial and life.presumed_end(self.horizon)[1]):
            life.freed = self.clock
            self._rooms.free[life.job.pool or 0][0] += life.on
            return JobSuspended(time=self.clock, job_number=life.job.job_number)
        ended = execution.ended(self.clock)
        if known is not None and (known < self.clock or life.freed is not None):  # it is told late
            happened = max(known, life.freed or known)
            ended = ended.model_copy(update={"run_time": known - execution.start_time, "happened": happened})
        self._release(life, ended)
        return ended

    def _release(self, life: Life, ended: JobEnded) -> None:
        """Give back what a job holds; it waits again, or is done."""
        number = ended.job_number
        if life.freed is not None:
            self._rooms.free[life.job.pool or 0][0] -= life.on
        self._rooms.take(life.execution().job, life.on, -1)
        del self._running[number]
        if ended.requeued:
            life.start = life.limit = life.freed = None
            self._waiting[number] = life
            if life.left is not None and life.left <= self.clock:
                self._coming.appendleft(Heard(JobWithdrawn(time=self.clock, job_number=number), life))
        else:
            self._let_go(life)

    def _let_go(self, life: Life) -> None:
        """Let a life be done; what bears its number next may come now."""
        life.done = True
        after = self.actual.next_after(life)
        if life.over:
            self.actual.forget(life)
        if after is not None and after.due:
            self._coming.appendleft(Heard(after.job.model_copy(update={"time": self.clock}), after))

    def _take(self, event: Event, life: Life | None) -> Sequence[Event]:
        """Return what an event of the cluster's log means in the shadow at its instant."""
        if isinstance(event, CapacityChanged):
            self._rooms.change(event)
            return [event]
        if life is None or life.done:
            return ()
        waits = self._waiting.get(life.job.job_number) is life
        if isinstance(event, JobSubmitted):
            return self._arrive(event, life, waits=waits)
        if isinstance(event, JobWithdrawn):
            return self._leave(event, life, waits=waits)
        return self._change(event, life, waits=waits) if isinstance(event, JobChanged) else ()

    def _arrive(self, event: JobSubmitted, life: Life, *, waits: bool) -> Sequence[Event]:
        if waits or life.start is not None:
            return ()  # it was held and is free again, while it runs here
        life.job, number = event, event.job_number
        life.due = number in self._waiting or number in self._running
        if life.due:
            return ()
        self._waiting[number] = life
        return [event]

    def _leave(self, event: JobWithdrawn, life: Life, *, waits: bool) -> Sequence[Event]:
        if life.start is not None:
            return ()
        if waits:
            del self._waiting[event.job_number]
        if event.reason != "held" or life.held:
            life.over = True
            self._let_go(life)
        return [event] if waits else ()

    def _change(self, event: JobChanged, life: Life, *, waits: bool) -> Sequence[Event]:
        new = new_request(event)
        if life.start is None:
            life.job = life.job.model_copy(update=new)
            return [event] if waits else ()
        if "requested_time" not in new:
            return ()
        if life.limit == life.job.requested_time:
            life.limit = new["requested_time"]
        life.job = life.job.model_copy(update={"requested_time": new["requested_time"]})
        told = JobChanged(
            time=event.time, job_number=event.job_number, requested_time=event.requested_time, unlimited=event.unlimited
        )
        return [told]

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        lives = list(self.actual)
        at = {id(life): place for place, life in enumerate(lives)}
        return {
            "horizon": self.horizon,
            "clock": self.clock,
            "deciding": self.deciding,
            "closing": self._closing,
            "closed": self.closed,
            "lives": [life.snapshot() for life in lives],
            "waiting": [at[id(life)] for life in self._waiting.values()],
            "running": [at[id(life)] for life in self._running.values()],
            "coming": [[event.model_dump(), None if life is None else at[id(life)]] for event, life in self._coming],
            "batch": [event.model_dump() for event in self._batch],
            "caused": [event.model_dump() for event in self._caused],
            "rooms": self._rooms.rooms.snapshot(),
            "free": [[None if each == inf else each for each in free] for free in self._rooms.free],
        }

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        self.horizon, self.clock, self.deciding = state["horizon"], state["clock"], state["deciding"]
        self._closing, self.closed = state["closing"], state["closed"]
        lives = [Life.of(each) for each in state["lives"]]
        self.actual = Actual()
        for life in lives:
            self.actual.lives.setdefault(life.job.job_number, []).append(life)
        self._waiting = {lives[at].job.job_number: lives[at] for at in state["waiting"]}
        self._running = {lives[at].job.job_number: lives[at] for at in state["running"]}
        events = EVENTS.validate_python([event for event, _ in state["coming"]])
        places = [at for _, at in state["coming"]]
        self._coming = deque(
            Heard(event, None if at is None else lives[at]) for event, at in zip(events, places, strict=True)
        )
        self._batch = EVENTS.validate_python(state["batch"])
        self._caused = EVENTS.validate_python(state["caused"])
        self._rooms.rooms.restore(state["rooms"])
        self._rooms.free = [[inf if each is None else each for each in free] for free in state["free"]]
