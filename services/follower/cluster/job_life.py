"""One life of a job: its published state. Times are on the cluster's own time line. No I/O."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting import MachineParts
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.messages import (
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    moment,
)
from shadowtime.shared.stages import CHANGEABLE, new_request

Reported = Literal["nothing", "waiting", "held", "running", "suspended", "over", "left out"]

Asked = dict[str, Any]
"""The request and the owner of a job: fields of `JobSubmitted` by name."""


@dataclass(slots=True)
class JobLife:
    """The published state of a life. Its wait began at `since`, its last event was at `at`, and it ended at `over`.

    `number` is the job number in the log. `index` counts the lives of the job from 0. `asked` has the published request
    and owner. `expected` is the published start that the cluster expects. `restarts` is the number of requeues with
    which the cluster has shown the life; None if only accounting or the log has it.
    """

    key: LifeKey
    number: int
    index: int
    reported: Reported = "nothing"
    since: int = 0
    at: int = 0
    started: int | None = None
    over: int | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    expected: int | None = None
    restarts: int | None = None

    @property
    def open(self) -> bool:
        """Whether the life can have further events."""
        return self.reported not in ("over", "left out")

    @property
    def in_system(self) -> bool:
        """Whether the life waits or runs, as published."""
        return self.reported in ("waiting", "running", "suspended")

    def may_be(self, observation: JobObservation) -> bool:
        """Return whether an observation with the same submission time can belong to this life, not to a later one."""
        if self.restarts is not None:
            return observation.life is None or observation.life <= self.restarts
        if observation.state == "waiting":
            return self.started is None and self.over is None
        if self.over is not None and observation.start is not None and observation.start < self.over:
            return True  # Slurm has moved its start: no later life starts before this one is over
        return observation.start is None or self.started is None or observation.start == self.started

    def runs_at(self, time: int | None, seen: JobObservation | None, *, shown: bool) -> bool:
        """Return whether the life ran at `time`. If its end is not published, the times in `seen` decide.

        `seen` is the last observation of the life, if any. `shown` says whether the last picture has the life. The
        caller uses the result to identify parts of runs: slurmdbd may record one run in several rows if the job was
        resized while slurmdbd was down.
        """
        start, end = self.started, self.over
        if seen is not None and end is None:
            start, end = seen.start, seen.end if seen.state == "over" else MAX_TIME if shown else None
        return time is not None and start is not None and end is not None and start <= time < end

    def take(self, event: Event) -> None:
        """Apply a published event of this life."""
        if isinstance(event, JobExpected):  # `at` stays: an expected start may share its instant with another event
            self.expected = event.start
            return
        self.at = event.time
        if isinstance(event, JobSubmitted):
            self.reported, self.since, self.expected = "waiting", event.since, None
            values = ((name, getattr(event, name)) for name in (*CHANGEABLE, "blocked", "site_reason"))
            self.asked = {name: value for name, value in values if value is not None}
        elif isinstance(event, JobChanged):
            self.asked |= new_request(event)
        elif isinstance(event, JobWithdrawn):
            self.reported = "held" if event.reason == "held" else "over"
            self.over = None if event.reason == "held" else moment(event)
        elif isinstance(event, JobStarted):
            self.reported, self.started = "running", moment(event)
        elif isinstance(event, JobSuspended):
            self.reported = "suspended"
        elif isinstance(event, JobResumed):
            self.reported = "running"
        elif isinstance(event, JobEnded):
            self.reported, self.over = "over", moment(event)

    def snapshot(self) -> list[Any]:
        """Return all fields as plain values."""
        return [list(self.key), *(getattr(self, field.name) for field in fields(self)[1:])]

    @classmethod
    def restored(cls, values: list[Any]) -> "JobLife":
        """Return the life whose fields `snapshot` returned."""
        return cls(LifeKey(*values[0]), *values[1:])


def wait_of(observation: JobObservation, earliest: int, now: int) -> int | None:
    """Return the time at which the current wait of a life began; None if it has not begun by `now`.

    The wait of a started job began no later than its start. Yet no wait begins before `earliest`. A job that was
    cancelled before it was eligible did not wait.
    """
    since = observation.eligible
    if observation.start is not None:
        since = min(observation.key.submit if since is None else max(since, observation.key.submit), observation.start)
    elif since is None or (observation.state == "over" and (observation.end is None or since > observation.end)):
        return None
    else:
        since = max(since, observation.key.submit)

    since = max(since, earliest)
    return since if since <= now else None


def published_observation(life: JobLife, parts: MachineParts) -> JobObservation:
    """Return an observation of a running life, made from its published state. It replaces a missing observation."""
    asked = life.asked
    limit = asked.get("requested_time")
    partition = next((name for name, pool in parts.of_partition.items() if pool == asked.get("pool")), "")
    resources: dict[str, Any] = {name: asked.get(name) for name in ("nodes", "memory", "gpus")}
    size = asked["requested_processors"]
    return JobObservation(
        life.key, "running", eligible=life.since, limit=limit, processors=size, partition=partition, **resources
    )


def as_before(observation: JobObservation, before: JobObservation) -> JobObservation:
    """Return an observation with the resources, the partition and the nodes of an earlier observation."""
    kept = ("processors", "nodes", "memory", "gpus", "partition", "node_list", "resized")
    return replace(observation, **{name: getattr(before, name) for name in kept})
