"""Where another schedule first deviates from a policy's own, and why the policy decides as it does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shadowtime.replayer.comparison import Plan
from shadowtime.replayer.embedded import EmbeddedReplay
from shadowtime.replayer.records import Schedule
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.conservative import Conservative
from shadowtime.services.scheduler.easy import Easy
from shadowtime.services.scheduler.expected_end import expected_ends
from shadowtime.services.scheduler.fcfs import Fcfs
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.plan import NUMBER, STARTS
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler
from shadowtime.services.scheduler.profile import begin, fits, take
from shadowtime.shared.arrays import Integers
from shadowtime.shared.because import because
from shadowtime.shared.decisions import Start
from shadowtime.shared.events import ClusterOpened, Decided, Envelope
from shadowtime.shared.pools import UNITS
from shadowtime.shared.reasons import Backfilled, FitsNow, Reserved
from shadowtime.shared.scheduling.easy import BEYOND, has_room, shadow_of


class Deviation(NamedTuple):
    """The first start that differs: of which job, when, in seconds, by whom, and why ours is as it is."""

    job_number: int
    theirs: int
    ours: int
    free: int
    processors: int
    why: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"job {self.job_number}: theirs starts at {self.theirs}, ours at {self.ours}: {self.why}"


class Moment(NamedTuple):
    """A pool just after a pass: its tables, and what was decided at this second."""

    now: int
    scheduler: PoolScheduler
    starts: tuple[Start, ...]

    @property
    def free(self) -> int:
        """Processors that nobody uses."""
        return self.scheduler.free

    @property
    def policy(self) -> Any:
        """The policy, whichever it is."""
        return self.scheduler.policy


def starts_of(plan: Plan) -> Integers:
    """Return the time at which each job of a run starts, in seconds, in order of the log."""
    schedule = Schedule()
    plan.replay([schedule]).run_to_end()
    ran, numbers = schedule.table(), plan.workload.columns["job_number"]
    started: Integers = ran[np.searchsorted(ran[:, 0], numbers), 2]
    return started


def first_deviation(plan: Plan, theirs: Integers, ours: Integers) -> Deviation | None:
    """Return the earliest start that only one of two schedules has; None if they are equal.

    Until then both machines are in the same state, so that what the policy says of it holds for both.
    """
    first = np.where(theirs == ours, np.iinfo(np.int64).max, np.minimum(theirs, ours))
    job = int(np.argmin(first))
    if theirs[job] == ours[job]:
        return None
    number = int(plan.workload.columns["job_number"][job])
    moment = _moment(plan, int(first[job]), plan.workload[job].pool or 0)
    free, why = _started(moment, number) if ours[job] < theirs[job] else _left(moment, number)
    return Deviation(number, int(theirs[job]), int(ours[job]), free, moment.scheduler.room.processors, why)


def _moment(plan: Plan, now: int, at: int) -> Moment:
    """Return a pool as it is once everything until a second has happened."""
    opened: list[Scheduler] = []
    decided: list[Decided] = []

    def open_and_keep(of: ClusterOpened) -> Scheduler:
        opened.append(Scheduler(of))
        return opened[-1]

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, Decided):
            decided[:] = [envelope.event]

    stages = [replace(each, open=open_and_keep) if each.name == "scheduler" else each for each in STAGES]
    replay = EmbeddedReplay(plan.opened(), plan.source(), [note], stages=stages)
    replay.step()
    while (time := replay.next_time()) is not None and time <= now:
        replay.step()
    starts = decided[0].starts if decided and decided[0].time == now else ()
    pool, places = opened[0].pools[at], opened[0].places
    return Moment(now, pool, tuple(each for each in starts if places.get(each.job_number) is pool))


def _started(moment: Moment, number: int) -> tuple[int, str]:
    """Return how many processors were free for a job that ours starts now, and why it does."""
    place = [each.job_number for each in moment.starts].index(number)
    started = moment.starts[place]
    free = moment.free + sum(each.processors for each in moment.starts[place:])
    reason = started.reason
    match reason:
        case FitsNow():
            why = "nobody who comes before it was waiting"
        case Backfilled(shadow_time=None):
            why = f"the head, job {reason.head}, cannot start however long it waits"
        case Backfilled(ends_by_shadow_time=True):
            why = f"it ends at {reason.expected_end}, the head, job {reason.head}, is reserved at {reason.shadow_time}"
        case Backfilled():
            why = (
                f"it takes {started.processors} of the {reason.extra_processors} that the head, job {reason.head}, "
                f"leaves at its reservation at {reason.shadow_time}"
            )
        case Reserved(guaranteed_start=int()):
            why = f"it is reserved at {moment.now}, by its first reservation at {reason.guaranteed_start}"
        case _:
            why = because(reason)
    return free, f"{free} of {moment.scheduler.room.processors} processors were free: {why}"


def _left(moment: Moment, number: int) -> tuple[int, str]:
    """Return how many processors are free beside what ours starts now, and why it lets a job wait."""
    scheduler, free = moment.scheduler, moment.free
    row = int(np.flatnonzero(scheduler.queue.job_number == number)[0])
    needed = int(scheduler.queue.processors[row])
    told = f"{free} of {scheduler.room.processors} processors were free"
    if moment.starts:
        told += f" beside what ours starts, {_named([each.job_number for each in moment.starts])}"
    if needed > free:
        return free, f"it takes {needed} and {told}"
    for asked, left, each in zip(scheduler.queue.sizes[row, 1:], scheduler.idle[1:], scheduler.further, strict=True):
        if asked > max(left, 0):
            return free, f"it takes {asked} {UNITS[each]} and {left} were free"
    explained = next((explain for of, explain in EXPLAINED.items() if isinstance(moment.policy, of)), None)
    why = explained(moment, row) if explained else None
    return free, f"{told}: {why or f'{moment.policy.name} lets it wait'}"


def _named(numbers: list[int]) -> str:
    """Return some jobs by number, and how many more there are.

    >>> _named([4]), _named([4, 5, 6, 7, 8])
    ('job 4', 'jobs 4, 5, 6 and 2 more')
    """
    more = f" and {len(numbers) - 3:,} more" if len(numbers) > 3 else ""
    return f"job{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:3]))}{more}"


def _next(moment: Moment, row: int) -> int:
    """Return the row of the job that waits first, but for one."""
    policy, queue = moment.policy, moment.scheduler.queue
    rows = policy.rows(moment.now, queue) if isinstance(policy, Easy) else None
    ahead = range(len(queue)) if rows is None else rows.tolist()
    return next((each for each in ahead if each != row), row)


def _in_turn(moment: Moment, row: int) -> str | None:
    queue, first = moment.scheduler.queue, _next(moment, row)
    if first >= row:
        return None
    return f"job {queue.job_number[first]}, submitted before it, waits for {queue.processors[first]}"


def _behind_head(moment: Moment, row: int) -> str | None:
    """Return how a job would delay the head of EASY."""
    now, scheduler, policy = moment.now, moment.scheduler, moment.policy
    queue, head = scheduler.queue, _next(moment, row)
    jobs = scheduler.running.jobs(on_requests=policy.on_requests)
    run_times = queue.requested_time if policy.on_requests else queue.predicted_time
    sizes, idle, ends = queue.sizes, scheduler.idle, expected_ends(now, jobs)
    shadow_time, extra = shadow_of(sizes[head], idle, jobs.sizes, ends)
    end = now + int(run_times[row])
    if head == row or shadow_time == BEYOND or end <= shadow_time or has_room(extra, sizes[row]):
        return None
    at = next(at for at in range(len(idle)) if sizes[row, at] > max(extra[at], 0))
    unit = f" {UNITS[scheduler.further[at - 1]]}" if at else ""
    return (
        f"it would delay the head, job {queue.job_number[head]}, reserved at {shadow_time}: it ends at {end} and takes "
        f"{sizes[row, at]}{unit}, and the head leaves {extra[at]}"
    )


def _against_plan(moment: Moment, row: int) -> str | None:
    """Return the first reservation of the plan in whose way a job would be."""
    now, scheduler, policy = moment.now, moment.scheduler, moment.policy
    queue = scheduler.queue
    jobs = scheduler.running.jobs(on_requests=policy.on_requests)
    run_times = queue.requested_time if policy.on_requests else queue.predicted_time
    places = dict(zip(policy.reservations[NUMBER].tolist(), policy.reservations[STARTS].tolist(), strict=True))
    numbers = queue.job_number.tolist()
    sizes, idle = queue.sizes, scheduler.idle
    times = np.zeros(len(jobs.sizes) + 2 * len(numbers) + 4, dtype=np.int64)
    free = np.zeros((len(idle), len(times)), dtype=np.int64)
    steps = begin(times, free, now, idle, jobs.sizes, expected_ends(now, jobs))
    steps = take(times, free, steps, now, now + run_times[row], sizes[row])
    planned = [(places.get(number, 0), at) for at, number in enumerate(numbers) if at != row]
    for start, at in sorted(each for each in planned if each[0] > now):
        if not fits(times, free, steps, sizes[at], start, start + run_times[at]):
            return f"it would be in the way of job {numbers[at]}, reserved at {start}"
        steps = take(times, free, steps, start, start + run_times[at], sizes[at])
    return f"its own reservation is at {places[numbers[row]]}" if places.get(numbers[row], 0) > now else None


EXPLAINED: dict[type, Callable[[Moment, int], str | None]] = {
    Fcfs: _in_turn,
    Easy: _behind_head,
    Conservative: _against_plan,
}
"""Policies of which it can be said why a job waits that would fit."""
