"""Scheduling points on a machine of pools, and the probability of a delay there."""

from math import prod
from typing import Any

import numpy as np

from shadowtime.services.scheduler.probabilistic.delay_probability import delay_probability
from shadowtime.shared.messages.envelope import ClusterOpened, Decided, Envelope
from tests.support.occupancy import Occupancy
from tests.support.plain_formulas import conditional
from tests.support.strategies.pools import POOLS, PROCESSORS
from tests.support.textbook_pools import Ends
from tests.unit.services.scheduler.enumeration import enumerated

NOTHING = {"processors": 0, "memory": 0, "gpus": 0}


TAU = 0.9


def opened(policy: str, runtime: str = "requested") -> ClusterOpened:
    return ClusterOpened(time=0, cluster="c", processors=PROCESSORS, pools=POOLS, policy=policy, runtime=runtime)


def started(answer: Decided) -> list[int]:
    return [start.job_number for start in answer.starts]


def delay(needed: int, running: list[tuple[int, Ends]], candidate: tuple[int, Ends]) -> float:
    """Return the probability by going through everything that may happen, where that is not too much."""
    if prod(len(ends) for _, ends in running) < 500:
        return enumerated(needed, running, candidate)
    return delay_probability(needed, running, candidate)


def ends_of(said: Envelope, machine: Occupancy, now: int) -> Ends:
    """Return when a waiting or running job may end, as `probabilistic` has it."""
    job: Any = said.event
    held = machine.running.get(job.job_number)
    start = now if held is None else held.start
    elapsed, histogram = now - start, () if said.run_time is None else said.run_time.histogram
    if histogram:
        times, left = conditional(np.array(histogram), elapsed, float(job.requested_time))
        return dict(zip((start + times).tolist(), left.tolist(), strict=True))
    point = job.requested_time if said.run_time is None else min(max(int(said.run_time.point), 1), job.requested_time)
    expected = point if point > elapsed else max(job.requested_time, elapsed + 1)
    return {float(start + expected): 1.0}


EITHER, SOON = (0.0,) * 5 + (0.5, 0.5), (0.0,) * 4 + (0.75, 0.0, 0.25)
