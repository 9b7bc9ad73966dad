"""New and late events of a job: the differences between its published state and an observation. No I/O.

An event that is found late is emitted at the present. Its field `happened` has the true time.
"""

from collections.abc import Iterator
from typing import Any

from shadowtime.services.follower.cluster.job_life import Asked, JobLife, wait_of
from shadowtime.services.follower.cluster.observation import JobObservation
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
)

NEWS, SHARE = 60, 0.1
"""Limits of a change of an expected start, in seconds and as a share of the time left until the published start. The
change is published if it exceeds both limits."""

STAYS = ("pool", "partition_number", "priority", "blocked", "site_reason", "gpu_type")
"""Fields whose changes are not published once a job runs."""

OF_WAITING = ("priority", "blocked", "site_reason", "gpu_type")
"""Fields of waiting jobs only. So their changes are not published with the start of a job."""


def new_events(
    life: JobLife, observation: JobObservation, asked: Asked, earliest: int, present: int, now: int
) -> Iterator[Event]:
    """Yield the pending events of a life in order. The life is not modified.

    The time of a change is unknown, so the change is published at `now`. If another event of the life was already
    published at `now`, the change is published later: at one instant it would have to precede that event. A change that
    frees processors (a smaller size, a suspension) is published as early as possible, since other jobs may have started
    on them before `now`.

    Parameters
    ----------
    asked
        The request and owner of the job, from the observation.
    earliest
        Earliest time at which the wait may have begun: the end of the previous life.
    present, now
        First and last time that an event may have.
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
        yield from _events_while_running(
            life, observation, _different(known, asked, observation.unlimited), present, now
        )
        return
    different = _different(known, asked, observation.unlimited)
    if observation.start is not None:
        if (time := max(observation.start, at, present)) > now:
            return
        if further := {name: value for name, value in different.items() if name not in OF_WAITING}:
            yield JobChanged(time=time, job_number=number, **further)
        start = max(observation.start, since)
        size, limit = asked["requested_processors"], asked["requested_time"]
        yield JobStarted(
            time=time,
            job_number=number,
            processors=size,
            limit=limit,
            gpu_types=observation.got,
            happened=none_if_now(start, time),
        )
        runs = JobLife(life.key, number, life.index, "running", since, time, start, None, {**known, **asked})
        yield from _events_while_running(runs, observation, {}, present, now)
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


def _events_while_running(
    life: JobLife, observation: JobObservation, different: Asked, present: int, now: int
) -> Iterator[Event]:
    """Yield the pending events of a life that runs according to its published state.

    `different` has the unpublished changes of the job's request, as fields of `JobChanged`.
    """
    number, at, started = life.number, life.at, life.started or 0
    over = observation.end if observation.state == "over" else None
    size, last = (
        life.asked["requested_processors"],
        observation.resized[-1][1] if observation.resized else observation.processors,
    )
    changes = {name: value for name, value in different.items() if name not in (*STAYS, "requested_processors")}
    end = now if over is None else max(over, at + 1, present)
    last_change = end if over is None else end - 1  # a change must precede the end
    for changed, processors in observation.resized if size != last else ():
        if at < (time := max(changed, present)) <= min(now, last_change):
            yield JobChanged(
                time=time, job_number=number, requested_processors=processors, happened=none_if_now(changed, time)
            )
            at, size = time, processors

    if size != last and not observation.resized:
        if last > size:
            changes["requested_processors"] = last
        elif (time := max(present, at + 1)) <= min(now, last_change):
            yield JobChanged(time=time, job_number=number, requested_processors=last)
            at = time
    if changes and at < (changed := min(now, last_change)) >= present:
        yield JobChanged(time=changed, job_number=number, **changes)
    if over is not None and end <= now:
        over = max(over, started, at if life.reported == "suspended" else started)
        run_time = over - started if observation.run_time is None else min(observation.run_time, over - started)
        yield JobEnded(
            time=end, job_number=number, run_time=run_time, outcome=observation.outcome, happened=none_if_now(over, end)
        )
    elif over is None and at < now >= present and (observation.state == "suspended") != (life.reported == "suspended"):
        if observation.state == "suspended":
            yield JobSuspended(time=max(present, at + 1), job_number=number)
        else:
            yield JobResumed(time=now, job_number=number)


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
    """Return the changes from a job's `known` request to its present request `asked`, as fields of `JobChanged`."""
    changed = {name: value for name, value in asked.items() if value is not None and value != known.get(name)}
    if known.get("blocked") and not asked.get("blocked"):
        changed["blocked"] = False
    if known.get("site_reason") and not asked.get("site_reason"):
        changed["site_reason"] = ""
    if unlimited and known.get("requested_time") is not None:
        changed["unlimited"] = True
    return changed
