"""The first deviation of another schedule from a policy's own, and the reason for the policy's decision."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.comparison import RunPlan, Schedule
from shadowtime.replayer.simulation import EmbeddedReplay
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler import Explaining, PoolScheduler
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import ClusterOpened, Decided, Envelope, Start
from shadowtime.shared.text import RunContext, describe_reason, reasons_of


class Deviation(NamedTuple):
    """The first start that differs: the job, both start times in seconds, free processors, and the policy's reason.

    `free` is the number of free processors of the job's pool at the earlier start. `processors` is the pool's size.
    """

    job_number: int
    theirs: int
    ours: int
    free: int
    processors: int
    why: str

    def __str__(self) -> str:
        """Return the deviation in words."""
        return f"job {self.job_number}: theirs starts at {self.theirs}, ours at {self.ours}: {self.why}"


class Moment(NamedTuple):
    """The state after the last pass of a second: the scheduler, one pool, and the pool's starts of that pass."""

    scheduler: Explaining
    pool: PoolScheduler
    starts: tuple[Start, ...]

    def were_free(self, free: int) -> str:
        """Return in words how many processors were free."""
        return f"{free} of {self.pool.capacity.processors} processors were free"


def starts_of(plan: RunPlan) -> Integers:
    """Return the last start time of each job of a run, in seconds of the log, in order of the log; shape (jobs,)."""
    schedule = Schedule()
    plan.replay([schedule]).run_to_end()
    ran, numbers = schedule.table(), plan.workload.columns["job_number"]
    started: Integers = ran[np.searchsorted(ran[:, 0], numbers), 2]
    return started


def first_deviation(plan: RunPlan, theirs: Integers, ours: Integers) -> Deviation | None:
    """Return the earliest start that only one of two schedules has; None if they are equal.

    `theirs` and `ours` are start times as of `starts_of`; `ours` is the schedule of `plan`. Before this start, the
    machines of both schedules are in the same state, so the policy's reason applies to both.
    """
    first = np.where(theirs == ours, np.iinfo(np.int64).max, np.minimum(theirs, ours))
    job = int(np.argmin(first))
    if theirs[job] == ours[job]:
        return None
    number = int(plan.workload.columns["job_number"][job])
    moment = _moment(plan, int(first[job]), plan.workload[job].pool or 0)
    free, why = _started(moment, number) if ours[job] < theirs[job] else _left(moment, number)
    return Deviation(number, int(theirs[job]), int(ours[job]), free, moment.pool.capacity.processors, why)


def _moment(plan: RunPlan, now: int, at: int) -> Moment:
    """Return the state of the pool with index `at` after all events of second `now` and before."""
    opened: list[Explaining] = []
    decided: list[Decided] = []

    def open_and_keep(of: ClusterOpened) -> Explaining:
        opened.append(Explaining(of))
        return opened[-1]

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, Decided):
            decided[:] = [envelope.event]

    stages = [replace(stage, open=open_and_keep) if stage.name == "scheduler" else stage for stage in STAGES]
    replay = EmbeddedReplay(plan.opened(), plan.source(), [note], stages=stages)
    replay.step()
    while (time := replay.next_time()) is not None and time <= now:
        replay.step()
    starts = decided[0].starts if decided and decided[0].time == now else ()
    (scheduler,) = opened
    pool = scheduler.pools[at]
    return Moment(scheduler, pool, tuple(start for start in starts if scheduler.places.get(start.job_number) is pool))


def _started(moment: Moment, number: int) -> tuple[int, str]:
    """Return the processors free before our policy starts a job now, and the reason for the start."""
    place = [start.job_number for start in moment.starts].index(number)
    free = moment.pool.free + sum(start.processors for start in moment.starts[place:])
    log = RunContext(moment.scheduler.opened.unix_start)
    return free, f"{moment.were_free(free)}: {describe_reason(moment.starts[place].reason, log, moment.scheduler.time)}"


def _left(moment: Moment, number: int) -> tuple[int, str]:
    """Return the processors still free after our policy's starts now, and the reason why a job waits."""
    free = moment.pool.free
    were_free = moment.were_free(free)
    if moment.starts:
        were_free += f" beside what ours starts, {_named([start.job_number for start in moment.starts])}"
    why = moment.scheduler.explain(number, "", 0, brief=True)
    return free, " ".join([f"{were_free}.", *(reasons_of(why) if why else ())])


def _named(numbers: list[int]) -> str:
    """Return the first three job numbers in words, with the number of further jobs.

    >>> _named([4]), _named([4, 5, 6, 7, 8])
    ('job 4', 'jobs 4, 5, 6 and 2 more')
    """
    more = f" and {len(numbers) - 3:,} more" if len(numbers) > 3 else ""
    return f"job{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:3]))}{more}"
