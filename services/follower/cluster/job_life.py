"""One life of a job: its published state and its pending events. Times are on the cluster's own time line. No I/O."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting import MachineParts
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.cluster import none_if_now
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

NEWS, SHARE = 60, 0.1
"""A changed expected start is published if it differs by more than so many seconds, and by more than this share of the
time left until the published one."""

STAYS = ("pool", "partition_number", "priority", "blocked")
"""Fields whose changes are not published once a job runs."""


@dataclass(slots=True)
class JobLife:
    """The published state of a life. Its wait began at `since`, its last event was at `at`, and it ended at `over`.

    `index` counts the lives of the job from 0. `asked` has the published request and owner, `expected` the start that
    the cluster expects.
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

    @property
    def open(self) -> bool:
        """Whether the life can have further events."""
        return self.reported not in ("over", "left out")

    @property
    def in_system(self) -> bool:
        """Whether the life waits or runs, as published."""
        return self.reported in ("waiting", "running", "suspended")

    def runs_at(self, time: int | None, seen: JobObservation | None, *, shown: bool) -> bool:
        """Return whether the life ran at `time`: as published or, if no end is published, as observed (`seen`).

        `shown` says whether the life is in the last picture of the cluster. The answer identifies parts of runs:
        slurmdbd may record a part of a run as a run of its own, if the job was resized while slurmdbd was down.
        """
        start, end = self.started, self.over
        if seen is not None and end is None:
            start, end = seen.start, seen.end if seen.state == "over" else MAX_TIME if shown else None
        return time is not None and start is not None and end is not None and start <= time < end

    def take(self, event: Event) -> None:
        """Apply a published event of this life."""
        if isinstance(event, JobExpected):  # may be published at the same instant as another event of the life
            self.expected = event.start
            return
        self.at = event.time
        if isinstance(event, JobSubmitted):
            self.reported, self.since, self.expected = "waiting", event.since, None
            values = ((name, getattr(event, name)) for name in (*CHANGEABLE, "blocked"))
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

    The time is `earliest` or later. The wait of a job that started began at the start at the latest. A job that was
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


def pending_events(
    life: JobLife, observation: JobObservation, asked: Asked, earliest: int, present: int, now: int
) -> Iterator[Event]:
    """Yield the pending events of a life, in order, at times from `present` to `now`. The life is not modified.

    A change has no time of its own and is published at `now`. If another event of the life was published at `now`
    already, the change is published later, as it would have to precede that event.

    Parameters
    ----------
    asked
        The request and owner of the job, from the observation.
    earliest
        Earliest time at which its wait may have begun: the end of the previous life.
    """
    number, reported, at, since, known = life.number, life.reported, life.at, life.since, life.asked
    begun = wait_of(observation, earliest, now)
    noticed = now >= present and now > at
    if reported == "waiting" and begun is None and observation.state == "waiting":
        if noticed:
            yield JobWithdrawn(time=now, job_number=number, reason="held")
        return

    anew = (
        reported == "waiting"
        and begun is not None
        and observation.eligible is not None
        and since < observation.eligible == begun
    )
    if reported in ("nothing", "held") or anew:
        if begun is None or (time := max(begun, present, at)) > now:
            return
        if anew:
            yield JobWithdrawn(time=time, job_number=number, reason="held")
        yield _submitted(number, observation, asked, begun, time)
        reported, at, since, known, noticed = "waiting", time, begun, asked, False

    if reported != "waiting":
        yield from _owed_running(life, observation, _different(known, asked, observation.unlimited), present, now)
        return
    different = _different(known, asked, observation.unlimited)
    if observation.start is not None:
        if (time := max(observation.start, at, present)) > now:
            return
        if further := {name: value for name, value in different.items() if name not in ("priority", "blocked")}:
            yield JobChanged(time=time, job_number=number, **further)
        start = max(observation.start, since)
        size, limit = asked["requested_processors"], asked["requested_time"]
        yield JobStarted(time=time, job_number=number, processors=size, limit=limit, happened=none_if_now(start, time))
        runs = JobLife(life.key, number, life.index, "running", since, time, start, None, {**known, **asked})
        yield from _owed_running(runs, observation, {}, present, now)
    elif observation.end is not None and observation.state == "over":
        if (time := max(observation.end, at + 1, present)) <= now:
            yield JobWithdrawn(time=time, job_number=number, happened=none_if_now(max(observation.end, since), time))
    else:
        if different and noticed:
            yield JobChanged(time=now, job_number=number, **different)
        last = life.expected if life.reported == "waiting" else None
        if now >= max(present, at) and observation.expected is not None and _is_news(observation.expected, last, now):
            yield JobExpected(time=now, job_number=number, start=observation.expected)


def _is_news(expected: int, reported: int | None, now: int) -> bool:
    """Return whether an expected start differs enough from the published one (`NEWS`, `SHARE`)."""
    return reported is None or abs(expected - reported) > max(NEWS, SHARE * (reported - now))


def _owed_running(
    life: JobLife, observation: JobObservation, different: Asked, present: int, now: int
) -> Iterator[Event]:
    """Yield the pending events of a life that runs according to its published state.

    `different` has the unpublished changes of its request, as fields of `JobChanged`.
    """
    number, at, started = life.number, life.at, life.started or 0
    over = observation.end if observation.state == "over" else None
    size, last = (
        life.asked["requested_processors"],
        observation.resized[-1][1] if observation.resized else observation.processors,
    )
    changes = {name: value for name, value in different.items() if name not in (*STAYS, "requested_processors")}
    end = now if over is None else max(over, at + 1, present)
    last_change = end if over is None else end - 1  # a change at the end would be too late
    for changed, processors in observation.resized if size != last else ():
        if at < (time := max(changed, present)) <= min(now, last_change):
            yield JobChanged(
                time=time, job_number=number, requested_processors=processors, happened=none_if_now(changed, time)
            )
            at, size = time, processors

    if size != last and not observation.resized:
        changes["requested_processors"] = last
    if changes and at < (changed := min(now, last_change)) >= present:
        yield JobChanged(time=changed, job_number=number, **changes)
    if over is not None and end <= now:
        over = max(over, started, at if life.reported == "suspended" else started)
        run_time = over - started if observation.run_time is None else min(observation.run_time, over - started)
        yield JobEnded(
            time=end, job_number=number, run_time=run_time, outcome=observation.outcome, happened=none_if_now(over, end)
        )
    elif over is None and at < now >= present and (observation.state == "suspended") != (life.reported == "suspended"):
        stopped = JobSuspended if observation.state == "suspended" else JobResumed
        yield stopped(time=now, job_number=number)


def _submitted(number: int, observation: JobObservation, asked: Asked, since: int, time: int) -> JobSubmitted:
    submit = observation.key.submit
    return JobSubmitted(
        time=time,
        job_number=number,
        submit_time=submit if submit < since else None,
        eligible_time=none_if_now(since, time),
        moldable=False,
        whole_nodes=True if observation.whole_nodes else None,
        **asked,
    )


def _different(known: Asked, asked: Asked, unlimited: bool) -> dict[str, Any]:
    """Return the changes from the `known` request of a job to the one `asked` now, as fields of `JobChanged`."""
    changed = {name: value for name, value in asked.items() if value is not None and value != known.get(name)}
    if known.get("blocked") and not asked.get("blocked"):
        changed["blocked"] = False
    if unlimited and known.get("requested_time") is not None:
        changed["unlimited"] = True
    return changed


def as_told(life: JobLife, parts: MachineParts) -> JobObservation:
    """Return an observation of a running life that is made from its published state, as there is no real one."""
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
