"""Invariants of the log as it is written: one life of a job runs at a time, on processors that exist. No I/O."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shadowtime.services.follower.cluster.job_life import JobLife
from shadowtime.services.follower.cluster.known_lives import KnownLives
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.services.follower.cluster.pool_sizes import ObservedCapacity
from shadowtime.shared.messages import (
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    moment,
)
from shadowtime.shared.quoting import quote


class Broken(NamedTuple):
    """An invariant that the start of a life would break.

    Either the processors of the `pool` do not suffice, or an `other` life of the job runs at `time`.
    """

    life: JobLife
    reason: str
    time: int
    pool: int | None = None
    other: JobLife | None = None


class _Held:
    """The started lives, and the processors held in each pool: as published, then changed by further events."""

    def __init__(self, lives: KnownLives) -> None:
        self.of_job: dict[tuple[int, int], JobLife] = {}
        self.of_pool: dict[int, int] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        for life in lives:
            if life.reported in ("running", "suspended"):
                self.of_job[life.key.job, life.key.task] = life
                self._sizes[life.number] = (life.asked.get("pool") or 0, life.asked["requested_processors"])
            if life.reported == "running":
                self.add(life.number, 1)

    def begin(self, life: JobLife, pool: int, processors: int) -> None:
        self.of_job[life.key.job, life.key.task] = life
        self._sizes[life.number] = (pool, processors)
        self.add(life.number, 1)

    def end(self, life: JobLife) -> None:
        self.add(life.number, -1)
        self._sizes.pop(life.number, None)
        if self.of_job.get((life.key.job, life.key.task)) is life:
            del self.of_job[life.key.job, life.key.task]

    def add(self, number: int, sign: int) -> None:
        pool, processors = self._sizes.get(number, (0, 0))
        self.of_pool[pool] = self.of_pool.get(pool, 0) + sign * processors

    def of_over(self, pool: int, seen: Mapping[LifeKey, JobObservation], time: int) -> int:
        """Return the processors in `pool` of lives that are over by `time`, but whose end is not published. O(held)."""
        over = (life for life in self.of_job.values() if _is_over(seen.get(life.key), time))
        sizes = (self._sizes.get(life.number, (pool, 0)) for life in over)
        return sum(size for of, size in sizes if of == pool)

    def resize(self, number: int, processors: int) -> None:
        if number in self._sizes:
            self.add(number, -1)
            self._sizes[number] = (self._sizes[number][0], processors)
            self.add(number, 1)


def first_broken(
    events: Iterable[Event],
    lives: KnownLives,
    seen: Mapping[LifeKey, JobObservation],
    capacity: ObservedCapacity,
    oversubscribed: Iterable[int],
) -> Broken | None:
    """Return the first invariant that pending events would break; None if they break none. O(lives + events).

    Parameters
    ----------
    seen
        The last observation of each life. It has ends that are not published yet.
    oversubscribed
        Pools that are known to give processors to several jobs at once.
    """
    held, shared = _Held(lives), set(oversubscribed)
    pools: dict[int, int] = {}
    stopped: set[int] = set()
    for event in events:
        life = lives.by_number.get(getattr(event, "job_number", -1))
        if life is None:
            continue
        number = life.number
        if isinstance(event, JobSubmitted | JobChanged) and event.pool is not None:
            pools[number] = event.pool
        if isinstance(event, JobStarted):
            other = held.of_job.get((life.key.job, life.key.task))
            if other is not None and other is not life and not _is_over(seen.get(other.key), moment(event)):
                reason = f"another life of the job, number {other.number}, still runs"
                return Broken(life, reason, moment(event), other=other)
            pool = pools.get(number, life.asked.get("pool") or 0)
            held.begin(life, pool, event.processors)
            excess = held.of_pool[pool] - capacity.configured[pool]
            if excess > 0 and pool not in shared and excess > held.of_over(pool, seen, moment(event)):
                name, has = capacity.parts.pools[pool].name, capacity.configured[pool]
                reason = f"jobs would hold {held.of_pool[pool]:,} processors of pool {quote(name)}, which has {has:,}"
                return Broken(life, reason, moment(event), pool)
        elif isinstance(event, JobEnded):
            if life.reported == "suspended" or number in stopped:
                held.add(number, 1)
            held.end(life)
        elif isinstance(event, JobSuspended):
            stopped.add(number)
            held.add(number, -1)
        elif isinstance(event, JobResumed):
            stopped.discard(number)
            held.add(number, 1)
        elif isinstance(event, JobChanged) and event.requested_processors is not None:
            held.resize(number, event.requested_processors)
    return None


def _is_over(observation: JobObservation | None, time: int) -> bool:
    if observation is None or observation.state != "over":
        return False
    return observation.end is not None and observation.end <= time
