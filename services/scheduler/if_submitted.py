"""When a job would start that one might submit now; nothing of the pool changes."""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import numpy as np

from shadowtime.services.scheduler.enqueued import enqueue, forget
from shadowtime.services.scheduler.forecast import State, starts_within, why_none
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler
from shadowtime.shared.advises import Start
from shadowtime.shared.arrays import Integers
from shadowtime.shared.events import Envelope, JobSubmitted
from shadowtime.shared.point_masses import point_masses
from shadowtime.shared.predictions import RunTimePrediction


def starts_if_submitted(
    pool: PoolScheduler, now: int, asked: Sequence[tuple[JobSubmitted, RunTimePrediction | None]]
) -> Iterator[Start]:
    """Yield of each job when it would start if it alone were submitted now, with what is predicted of it.

    All are run ahead through the same futures, on processors alone; quantiles are calibrated where those of the run
    are. O(queue), and for each job the cost of a sampled forecast.

    References
    ----------
    docs/algorithms.md#sampled-futures.
    """
    futures = pool.policy.futures()
    if futures is None:
        name = pool.policy.name
        why = (
            f"policy {name} is not run ahead as it is set: EASY and probabilistic are, in order of arrival or priority"
        )
        yield from (Start(reason=why) for _ in asked)
        return
    queue = deepcopy(pool.queue)
    numbers = (queue.job_number, pool.running.job_number)
    number = 1 + max(int(each.max(initial=0)) for each in numbers)
    for job, prediction in asked:
        job = job.model_copy(update={"time": now, "job_number": number})
        told = Envelope(run="ask", sequence=0, event=job, run_time=prediction)
        further = [getattr(job, each) or 0 for each in pool.further]
        enqueue(queue, job, told, pool.policy.settings, further)
        row = int(np.flatnonzero(queue.job_number == number)[0])
        starts = futures.starts(State(now, queue, pool.running, pool.free), row)
        forget(queue, queue.remove(number))
        reason = why_none(now, int(starts.min())) or why_none(now, int(starts.max()))
        if reason is not None:
            yield Start(reason=reason)
        else:
            yield _told(pool, now, starts)


def _told(pool: PoolScheduler, now: int, starts: Integers) -> Start:
    within = starts_within(now, starts)
    if pool.forecaster is None or pool.forecaster.calibrated is None:
        return Start(float(starts.mean()) - now, within)
    within = pool.forecaster.calibrated.shifted(within)
    return Start(round(sum(mass * seconds for mass, seconds in point_masses(within)), 6), within)
