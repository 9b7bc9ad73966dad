"""The site's own policy: a model of its Slurm."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.services.scheduler.kernels import BackfillCandidate, Bounds, Outlook, backfill_pass, main_pass
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, start
from shadowtime.services.scheduler.slurm.fairshare import NOBODY
from shadowtime.services.scheduler.slurm.priority import WAITING, KnownJob, Priorities
from shadowtime.services.scheduler.slurm.settings import SlurmSettings
from shadowtime.services.scheduler.tables import Queue, Running
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.chance import key_of, uniform
from shadowtime.shared.messages import (
    Again,
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
    Reserved,
    Start,
)

# Times of the passes, by default: the main scheduler after events and each minute, backfill each half minute.


class Times:
    """The times of the last passes, in seconds; -1 before the first pass.

    A pass may be due at a time without a scheduling point, because no job could have started. Such a pass counts as
    done when it was due, so the intervals between passes stay those of Slurm. `pass_requested` is whether the policy
    has asked for the next pass. In a recorded log, a requested pass is made at the next event.

    `settings` are the settings of the site.
    """

    def __init__(self, settings: SlurmSettings) -> None:
        self._settings = settings
        self.main = self.full = self.backfill = -1
        self.changed = False
        """Whether anything has happened since the last pass of the main scheduler."""
        self.moved = True
        """Whether anything has happened since a pass over the whole queue found no job to start."""
        self.pass_requested = False
        self.forced = False
        """Whether all passes are due at once, whatever the time. Only hypothetical passes set this, so it is not
        stored."""

    def begin(self, now: int) -> None:
        """Start the intervals between passes, at the first scheduling point."""
        if self.full < 0:
            self.full = self.backfill = now

    def due(self, now: int) -> tuple[bool, bool, bool]:
        """Return whether a main pass is due, whether it covers the whole queue, and whether backfill is due."""
        settings = self._settings
        if self.forced:
            return True, True, settings.backfill
        self.begin(now)
        backfill = now - self.backfill >= settings.bf_interval
        full = now - self.full >= settings.sched_interval
        if not self.pass_requested:
            self.backfill += (now - self.backfill) // settings.bf_interval * settings.bf_interval
            self.full += (now - self.full) // settings.sched_interval * settings.sched_interval
            backfill, full = backfill and self.backfill == now, full and self.full == now

        main = full or (self.changed and (self.main < 0 or now - self.main >= settings.sched_delay))
        return main, full, backfill and settings.backfill

    def done(self, now: int, *, main: bool, full: bool, backfill: bool, started: bool = False) -> None:
        """Record the passes done, and whether they started any job."""
        if backfill or (full and not self._settings.backfill):
            self.moved = started
        if main:
            self.main, self.changed = now, False
        if full:
            self.full = now
        if backfill:
            self.backfill = now

    def next(self, now: int) -> int:
        """Return the time of the next pass after `now`."""
        settings = self._settings
        times = [self.full + settings.sched_interval]
        if settings.backfill:
            times.append(self.backfill + settings.bf_interval)
        if self.changed:
            times.append(self.main + settings.sched_delay)
        return max(min(times), now + 1)

    def note(self) -> None:
        """Record an event after which the main scheduler examines the queue."""
        self.changed = self.moved = True

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return [self.main, self.full, self.backfill, self.changed, self.moved, self.pass_requested]

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.main, self.full, self.backfill, self.changed, self.moved, self.pass_requested = state


RESERVED = Reserved()

JOB_EVENTS = JobSubmitted | JobWithdrawn | JobChanged | JobStarted | JobEnded | JobSuspended | JobResumed


class Slurm(Policy):
    """Multifactor priorities, the main scheduler and `sched/backfill`, each at its own times.

    The policy plans with requested times only, as Slurm does. Between events, the policy requests a scheduling point at
    the next pass that could start a job. O(queue * (queue + running)) for each pass of backfill, O(queue log queue) for
    each pass of the main scheduler, O(jobs + accounts) for each `calc_period`.

    References: docs/algorithms.md#slurm (Slurm 22.05).
    """

    name = "slurm"
    Settings = SlurmSettings
    starts_only = False
    sees_all = True

    def __init__(self, settings: SlurmSettings) -> None:
        self.settings = settings
        self.priorities = Priorities(settings, 1, 0)
        """All jobs of the machine; shared by the policies of all pools."""
        self.processors = 0
        self.calculations = 0
        """The value of `priorities.calculations` at the last pass of this pool."""
        self.times = Times(settings)
        self.weighs = any(getattr(settings, name) for name in SlurmSettings.model_fields if name.startswith("weight_"))
        """Whether any weight is above 0. If not, priorities never change."""
        self.held: list[tuple[int, int, int]] = []
        """Beginning, end and processors of each reservation in this pool, times in seconds."""
        self.chance = 0
        self.edges: list[int] = []
        """Times at which reservations begin or end, in seconds."""
        self.cooling: list[tuple[int, int]] = []
        """Processors of ended jobs that cannot be allocated yet: the time when they can be, and their number."""
        self.bounds = _bounds(settings, 0)

    def open(self, opened: ClusterOpened) -> None:
        """Record the pool's size and reservations and the Unix time of second 0; seed the random numbers by the run."""
        self.processors = opened.processors
        self.priorities = Priorities(self.settings, self.processors, opened.unix_start)
        self.chance = key_of(opened.seed, opened.cluster)
        self.bounds = _bounds(self.settings, opened.unix_start)
        self.held = [
            (
                max(reservation.begins - opened.unix_start, 0),
                reservation.ends - opened.unix_start,
                reservation.processors,
            )
            for reservation in self.settings.table("reservations")
            if reservation.pool == self.pool
        ]
        self.edges = sorted({edge for begins, ends, _ in self.held for edge in (begins, ends)})

    def share(self, first: "Slurm") -> None:
        """Use the priorities that the policy of the first pool keeps."""
        self.priorities = first.priorities
        self.priorities.grow(self.processors)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> Sequence[Start | Again]:
        """Return the starts of the passes that are due, and the time of the next pass that could start a job."""
        self.priorities.advance_pass(now)
        if self.calculations < self.priorities.calculations:
            self.calculations = self.priorities.calculations
            self.times.moved |= self.weighs
        cooling = [entry for entry in self.cooling if entry[0] > now]
        if len(cooling) < len(self.cooling):
            self.times.note()
        if now in self.edges:
            self.times.moved = True
        self.cooling = cooling
        main, full, backfill = self.times.due(now)
        starts: list[Start | Again] = []
        if not len(queue) or free <= 0:
            self.times.done(now, main=main, full=full, backfill=backfill)
            self.times.pass_requested = False
            return starts

        candidates = self._candidates(queue)
        outlook = self._outlook(now, queue, running, free)
        begun: list[BackfillCandidate] = []
        if main:
            depth = len(self.priorities.jobs) + len(queue) if full else self.settings.sched_depth
            begun = main_pass(outlook, candidates, depth)
            starts += [start(queue, trial.row, FITS_NOW) for trial in begun]

        if backfill:
            rows = {trial.row for trial in begun}
            more = backfill_pass(
                outlook, [candidate for candidate in candidates if candidate.row not in rows], self.bounds
            )
            starts += [start(queue, trial.row, RESERVED) for trial in more]
            begun += more

        self.times.done(now, main=main, full=full, backfill=backfill, started=bool(begun))
        left = running.free(free) - sum((trial.size for trial in begun), np.zeros(queue.sizes.shape[1], dtype=np.int64))
        waits = np.ones(len(queue), dtype=np.bool_)
        waits[[trial.row for trial in begun]] = False
        fits = bool((queue.sizes[waits] <= np.maximum(left, 0)).all(axis=1).any())
        self.times.pass_requested = fits and self.times.moved
        if fits and (times := [instant for instant in self._next(now) if instant <= MAX_TIME]):
            starts.append(Again(time=min(times)))
        return starts

    def force_pass(self) -> None:
        """Make the main pass and the backfill pass due at the next `schedule`."""
        self.times.forced = True

    def _next(self, now: int) -> list[int]:
        """Return the times at which a job might start if no event happens. No job can start before the earliest."""
        times = [edge for edge in self.edges if edge > now] + [until for until, _ in self.cooling]
        if self.times.moved:
            times.append(self.times.next(now))
        elif self.weighs:
            times.append(self.priorities.next_calculation(now))
        return times

    def _candidates(self, queue: Queue) -> list[BackfillCandidate]:
        """Return the pool's waiting jobs, highest tier and priority first, with positions in the queue of all pools."""
        known, numbers = self.priorities.jobs, queue.job_number.tolist()
        strangers = {
            number: known.get(number) or _unknown(queue, row)
            for row, number in enumerate(numbers)
            if number not in known or known[number].state != WAITING
        }
        places = self.priorities.places(strangers)
        sizes, limits = queue.sizes, queue.requested_time
        candidates = []
        for place, row, number in sorted((places[number], row, number) for row, number in enumerate(numbers)):
            job = strangers.get(number) or known[number]
            size = np.ascontiguousarray(sizes[row])
            candidates.append(BackfillCandidate(row, place, size, int(limits[row]), job.user, job.partition))
        return candidates

    def _outlook(self, now: int, queue: Queue, running: Running, free: int) -> Outlook:
        jobs = running.jobs(on_requests=True)
        ends = np.maximum(running.start_time + running.requested_time, now + 1)
        idle, sizes = running.free(free).copy(), jobs.sizes
        if self.cooling:
            cooling = np.zeros((len(self.cooling), len(idle)), dtype=np.int64)
            cooling[:, 0] = [processors for _, processors in self.cooling]
            idle -= cooling.sum(axis=0)
            sizes = np.concatenate((sizes, cooling))
            ends = np.concatenate((ends, np.array([until for until, _ in self.cooling], dtype=np.int64)))

        return Outlook(now, idle, np.ascontiguousarray(sizes), ends, self.held, len(queue))

    def observe(self, event: Event) -> None:
        """Apply an event of this pool."""
        if isinstance(event, JobEnded) and self.settings.turnaround:
            job = self.priorities.jobs.get(event.job_number)
            if job is not None and (seconds := self._turnaround(event.job_number)):
                self.cooling.append((event.time + seconds, job.processors))

        if isinstance(event, JOB_EVENTS):
            self.priorities.notice(event)
            if not isinstance(event, JobStarted):
                self.times.note()
        elif isinstance(event, CapacityChanged):
            self.times.note()

    def _turnaround(self, number: int) -> int:
        """Return the seconds for which the processors of an ended job stay unavailable, rounded at random."""
        whole = int(self.settings.turnaround)
        drawn = float(uniform(self.chance, np.array([number], dtype=np.int64), 0)[0])
        return whole + (drawn < self.settings.turnaround - whole)

    def beside(self, event: Event) -> None:
        """Apply an event of another pool. The policy of that pool applies it to the common priorities."""
        if isinstance(event, JOB_EVENTS) and not isinstance(event, JobStarted):
            self.times.note()

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return self.own_snapshot() | {"priorities": self.priorities.snapshot()}

    def own_snapshot(self) -> dict[str, Any]:
        """Return the state without the priorities, which the policy of the first pool keeps."""
        return {
            "calculations": self.calculations,
            "times": self.times.snapshot(),
            "cooling": [list(entry) for entry in self.cooling],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` or `own_snapshot` returned."""
        if "priorities" in state:
            self.priorities.restore(state["priorities"])
        self.calculations = state["calculations"]
        self.times.restore(state["times"])
        self.cooling = [(until, processors) for until, processors in state["cooling"]]


def _bounds(settings: SlurmSettings, unix_start: int) -> Bounds:
    return Bounds(
        settings.bf_window * 60,
        settings.bf_resolution,
        unix_start,
        settings.bf_max_job_test,
        settings.bf_max_job_user,
        settings.bf_max_job_part,
        settings.bf_max_job_start,
    )


def _unknown(queue: Queue, row: int) -> KnownJob:
    """Return a `KnownJob` for a job whose submission was not observed."""
    return KnownJob(
        *(NOBODY,) * 4, int(queue.processors[row]), 1, int(queue.requested_time[row]), int(queue.submit_time[row])
    )
