"""Three pools with memory and GPUs: each pass against the textbook."""

from math import prod
from typing import Any

import numpy as np
from hypothesis import given, settings

from shadowtime.replayer.machine import Machine
from shadowtime.replayer.workload import Workload
from shadowtime.services.scheduler.conditioning import conditional
from shadowtime.services.scheduler.delay_probability import delay_probability
from shadowtime.shared.events import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    JobEnded,
    JobSubmitted,
)
from shadowtime.testing.chain import Chain
from tests.occupancy import Occupancy
from tests.services.scheduler import textbook_pools
from tests.services.scheduler.enumeration import enumerated
from tests.services.scheduler.textbook_pools import Conservative, Ends, held_of
from tests.strategies.pools import LEAVES, POOLS, PROCESSORS, pooled_workloads

NOTHING = {"processors": 0, "memory": 0, "gpus": 0}
TAU = 0.3


def opened(policy: str, runtime: str = "requested") -> ClusterOpened:
    return ClusterOpened(time=0, cluster="c", processors=PROCESSORS, pools=POOLS, policy=policy, runtime=runtime)


def started(answer: Decided) -> list[int]:
    return [start.job_number for start in answer.starts]


@given(jobs=pooled_workloads(), changes=LEAVES)
@settings(max_examples=200, deadline=None)
def test_easy_is_the_textbook(jobs: Workload, changes: list[CapacityChanged]) -> None:
    machine = Occupancy(POOLS)
    for event, answer in Chain(opened("easy")).play(Machine(jobs, changes)):
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool in range(len(POOLS)):
                running, _ = held_of(machine, pool)
                expected += textbook_pools.easy(event.time, machine.queue(pool), running, machine.free(pool))
            assert started(answer.event) == expected
        machine.see(event)


@given(jobs=pooled_workloads(), changes=LEAVES)
@settings(max_examples=200, deadline=None)
def test_conservative_is_the_textbook(jobs: Workload, changes: list[CapacityChanged]) -> None:
    machine, plans = Occupancy(POOLS), [Conservative() for _ in POOLS]
    freed = [False] * len(POOLS)
    for event, answer in Chain(opened("conservative")).play(Machine(jobs, changes)):
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool, plan in enumerate(plans):
                running, _ = held_of(machine, pool)
                room = machine.rooms[pool]
                expected += plan.starts(event.time, machine.queue(pool), running, room, NOTHING, freed=freed[pool])
                freed[pool] = False
            assert started(answer.event) == expected
        if isinstance(event, JobEnded):
            freed[machine.running[event.job_number].pool] = True
        elif isinstance(event, CapacityChanged):
            freed[event.pool or 0] = True
        machine.see(event)


def delay(needed: int, running: list[tuple[int, Ends]], candidate: tuple[int, Ends]) -> float:
    """Return the probability by going through everything that may happen, where that is not too much."""
    if prod(len(ends) for _, ends in running) < 500:
        return enumerated(needed, running, candidate)
    return delay_probability(needed, running, candidate)


@given(jobs=pooled_workloads(max_jobs=18), changes=LEAVES)
@settings(max_examples=150, deadline=None)
def test_probabilistic_is_the_textbook(jobs: Workload, changes: list[CapacityChanged]) -> None:
    machine, predicted = Occupancy(POOLS), dict[int, Envelope]()
    chain = Chain(opened(f"probabilistic:tau={TAU}", "empirical"))
    for event, answer in chain.play(Machine(jobs, changes)):
        if isinstance(event, JobSubmitted):
            predicted[event.job_number] = chain.read["scheduler"][-1]
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool in range(len(POOLS)):
                running, numbers = held_of(machine, pool)
                now = event.time
                expected += textbook_pools.probabilistic(
                    *(now, machine.queue(pool), running, machine.free(pool), TAU),
                    *(lambda number, now=now: ends_of(predicted[number], machine, now), numbers, delay),
                )
            assert started(answer.event) == expected
        machine.see(event)


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
