"""The state of a shadow's machine: its waiting jobs, its running jobs and the free processors."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

from shadowtime.services.shadows.machine.job import ShadowJob
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.cluster import FreeResources
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.messages import CapacityChanged, ClusterOpened, GpuType, JobStarted, Start, by_type, of_types

NEVER = MAX_TIME + 1
"""Placeholder for the time of an event that never happens."""


class MachineState:
    """The waiting and the running jobs of a shadow, by number.

    A job that is suspended, or presumed to be over, is among the running jobs. Such a job holds its memory and GPUs,
    but no processors. A shadow that uses predictions lends the pool the memory and the GPUs, by type, of each job
    without processors. An exact shadow does so only for jobs that are given up. Otherwise such jobs could block the
    pool for ever.
    """

    def __init__(self, opened: ClusterOpened) -> None:
        self.waiting: dict[int, ShadowJob] = {}
        self.running: dict[int, ShadowJob] = {}
        self._resources = FreeResources(opened.processors, opened.pools or ())
        self._lent = self._nothing_lent()

    def __contains__(self, job_number: int) -> bool:
        return job_number in self.waiting or job_number in self.running

    def _nothing_lent(self) -> list[list[int]]:
        """Return zeros for each pool: memory, GPUs, and GPUs of each type."""
        return [[0] * (len(free) - 1) for free in self._resources.free]

    def resize(self, event: CapacityChanged) -> CapacityChanged:
        """Change the capacity of a pool. Return the event that the shadow emits: it includes what the pool is lent."""
        memory, gpus, *typed = self._lent[event.pool or 0]
        lent: dict[str, Any] = {
            name: has + more
            for name, has, more in (("memory", event.memory, memory), ("gpus", event.gpus, gpus))
            if has is not None and more
        }
        if event.gpu_types and any(typed):
            more_of = dict(zip(self._resources.capacity.types[event.pool or 0], typed, strict=True))
            lent["gpu_types"] = tuple(
                kind.replaced(gpus=kind.gpus + more_of.get(kind.name, 0)) for kind in event.gpu_types
            )
        event = event.model_copy(update=lent) if lent else event
        self._resources.change(event)
        return event

    def lend(self, now: int, *, exact: bool) -> Iterator[CapacityChanged]:
        """Lend each pool the memory and GPUs of its jobs without processors. Yield changes of capacity. O(running).

        An `exact` shadow lends only the memory and GPUs of jobs that are given up.
        """
        lent = self._nothing_lent()
        for life in self.running.values():
            if life.freed is not None and (life.given_up or not exact):
                of_pool = lent[life.job.pool or 0]
                holds = life.job.memory or 0, life.job.gpus or 0, *self._resources.held.get(life.job.job_number, ())
                for at, amount in enumerate(holds):
                    of_pool[at] += amount
        for pool, (room, before, after) in enumerate(zip(self._resources.capacity, self._lent, lent, strict=True)):
            has_now = room.amounts[1:]
            amounts = [
                None if has is None else has + new - old for has, old, new in zip(has_now, before, after, strict=True)
            ]
            self._lent[pool] = after
            if amounts != list(has_now):
                memory, gpus, *typed = amounts
                change = CapacityChanged(
                    time=now,
                    processors=room.processors,
                    memory=memory,
                    gpus=gpus,
                    pool=pool or None,
                    gpu_types=of_types(self._resources.capacity.types[pool], typed),
                )
                self._resources.change(change)
                yield change

    def allot(self, starts: Iterable[Start]) -> None:
        """Choose the GPUs of each type for jobs that start together."""
        lives = (self.waiting.get(start.job_number) for start in starts)
        self._resources.allot(life.job for life in lives if life is not None)

    def carry_out(self, decided: Start, now: int) -> JobStarted:
        """Start a job as decided, and return the event of its start.

        Raise `ReplayError` if the job does not wait, or does not fit.
        """
        life = self.waiting.get(decided.job_number)
        if life is None:
            raise ReplayError(f"the policy starts job {decided.job_number} at {now}, but the job does not wait")
        life.start, life.on, life.limit = now, decided.processors, decided.limit
        execution = life.execution()
        if lacking := self._resources.lacking(execution.job, decided.processors):
            raise ReplayError(f"the policy starts job {decided.job_number} at {now} on {lacking} free")
        self.place(life)
        return self._resources.started(execution.job, execution.started())

    def place(self, life: ShadowJob, gpu_types: Sequence[GpuType] | None = None) -> None:
        """Move a waiting job to the running jobs. It takes `life.on` processors, and the requested memory and GPUs.

        `gpu_types` are the GPUs of the job by type, if they are known.
        """
        number = life.job.job_number
        self.running[number] = self.waiting.pop(number)
        types = self._resources.capacity.types[life.job.pool or 0]
        self._resources.take(life.execution().job, life.on, None if gpu_types is None else by_type(types, gpu_types))

    def remove(self, life: ShadowJob) -> None:
        """Remove a running job from the machine, and free its resources."""
        if life.freed is not None:
            self.give_processors(life)
        self._resources.release(life.execution().job, life.on)
        del self.running[life.job.job_number]

    def wait_again(self, life: ShadowJob) -> None:
        """Put a job that was on the machine back among the waiting jobs."""
        life.start = life.limit = life.freed = None
        life.stood = 0
        self.waiting[life.job.job_number] = life

    def stop(self, life: ShadowJob, now: int) -> None:
        """Suspend a job: free its processors, and nothing else."""
        life.freed = now
        self.give_processors(life, -1)

    def go_on(self, life: ShadowJob, now: int) -> None:
        """Resume a suspended job. The job takes its processors again, even if too few are free."""
        if life.freed is not None:
            life.stood += now - life.freed
        life.freed = None
        self.give_processors(life)

    def give_processors(self, life: ShadowJob, times: int = 1) -> None:
        """Allocate a job's processors; free them if `times` is -1, do nothing if 0. Memory and GPUs do not change."""
        self._resources.free[life.job.pool or 0][0] -= times * life.on

    def ends(self, now: int, *, presumed: bool) -> Iterator[tuple[int, int]]:
        """Yield job numbers and the end times known at `now`. O(running).

        Also yield the presumed ends of jobs that are given up; with `presumed`, of all jobs.
        """
        for number, life in self.running.items():
            end = life.known_end(now)
            if end is None and (presumed or life.given_up) and life.freed is None:
                end, _ = life.presumed_end(now)
            if end is not None:
                yield number, end

    def least_known(self, now: int) -> int:
        """Return the time until which every job with unknown end certainly runs, as known at `now`. O(running).

        Jobs that are given up do not count.
        """
        return min((life.runs_until(now) for life in self._unknown(now)), default=NEVER)

    def _unknown(self, now: int) -> Iterator[ShadowJob]:
        return (life for life in self.running.values() if not life.given_up and life.known_end(now) is None)

    def waits_for(self, now: int) -> ShadowJob | None:
        """Return the job that started first in the shadow, among jobs that have not started on the cluster; or None.

        Jobs whose end is known at `now`, and jobs that were given up, do not count.
        """
        waiting = (life for life in self._unknown(now) if life.started is None and life.start is not None)
        return min(waiting, key=lambda life: (life.start or 0, life.job.job_number), default=None)

    def give_up(self, now: int, seconds: int) -> None:
        """Give up jobs that have not started on the cluster, `seconds` after their start in the shadow. O(running)."""
        for life in self._unknown(now):
            if life.started is None and life.start is not None and now - life.start >= seconds:
                life.given_up = True

    def snapshot(self, places: dict[int, int]) -> Any:
        """Return the whole state as plain values. `places` maps the `id()` of a life to its index."""
        return {
            "waiting": [places[id(life)] for life in self.waiting.values()],
            "running": [places[id(life)] for life in self.running.values()],
            "rooms": self._resources.capacity.snapshot(),
            "lent": self._lent,
            "held": [[number, list(held)] for number, held in sorted(self._resources.held.items())],
            "free": [[None if amount == inf else amount for amount in free] for free in self._resources.free],
        }

    def restore(self, state: Any, lives: Sequence[ShadowJob]) -> None:
        """Restore the state that `snapshot` returned. `lives` has each life at its index in `places` of `snapshot`."""
        self.waiting = {lives[at].job.job_number: lives[at] for at in state["waiting"]}
        self.running = {lives[at].job.job_number: lives[at] for at in state["running"]}
        self._resources.capacity.restore(state["rooms"])
        self._resources.held = {number: tuple(held) for number, held in state.get("held", ())}
        for pool, (free, room) in enumerate(zip(state["free"], self._resources.capacity, strict=True)):
            known = [inf if amount is None else amount for amount in free]
            self._resources.free[pool] = known + list(room.amounts[len(known) :])  # an older version lacks types
        for lent, stored in zip(self._lent, state.get("lent", ()), strict=False):
            lent[: len(stored)] = stored
