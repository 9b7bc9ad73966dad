"""Invariants of the log as it is written: one life of a job runs at a time, on processors that exist. No I/O."""

from collections.abc import Iterable
from typing import NamedTuple

from shadowtime.services.follower.cluster.job_life import JobLife
from shadowtime.services.follower.cluster.known_lives import KnownLives
from shadowtime.services.follower.cluster.pool_sizes import ObservedCapacity
from shadowtime.shared.messages import Event, JobChanged, JobEnded, JobResumed, JobStarted, JobSubmitted, JobSuspended


class Broken(NamedTuple):
    """An invariant that the start of a life would break, with the pool if its processors do not suffice."""

    life: JobLife
    reason: str
    pool: int | None = None


class _Held:
    """The running lives, and the processors that the jobs of each pool hold, as published and from further events."""

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

    def resize(self, number: int, processors: int) -> None:
        if number in self._sizes:
            self.add(number, -1)
            self._sizes[number] = (self._sizes[number][0], processors)
            self.add(number, 1)


def first_broken(
    events: Iterable[Event], lives: KnownLives, rooms: ObservedCapacity, oversubscribed: Iterable[int]
) -> Broken | None:
    """Return the first invariant that pending events would break; None if they break none. O(lives + events).

    Pools in `oversubscribed` are known to give processors to several jobs at once.
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
            if other is not None and other is not life:
                return Broken(life, f"its life {other.number} still runs")
            pool = pools.get(number, life.asked.get("pool") or 0)
            held.begin(life, pool, event.processors)
            if held.of_pool[pool] > rooms.configured[pool] and pool not in shared:
                has = rooms.configured[pool]
                return Broken(life, f"jobs hold {held.of_pool[pool]:,} processors of pool {pool}, which has {has:,}", pool)
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
