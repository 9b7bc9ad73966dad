"""Runs on a machine of three pools with memory and GPUs, at random."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Event,
    JobChanged,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.testing.workloads import workloads
from tests.support.strategies.logs import OPENINGS, eventful

POOLS = (
    Pool(name="cpu", processors=8, nodes=4, memory=20),
    Pool(name="gpu", processors=6, nodes=2, memory=16, gpus=4),
    Pool(name="old", processors=4),
)
PROCESSORS = sum(pool.processors for pool in POOLS)
POOLED_OPENINGS = OPENINGS.map(lambda opened: opened.model_copy(update={"processors": PROCESSORS, "pools": POOLS}))


def resized(time: int, pool: int, eighths: int) -> CapacityChanged:
    """Return so many eighths of a pool, nodes of which have left."""
    whole = POOLS[pool]
    parts: dict[str, Any] = {
        name: None if has is None else has * eighths // 8
        for name, has in (("memory", whole.memory), ("gpus", whole.gpus))
    }
    return CapacityChanged(time=time, pool=pool, processors=whole.processors * eighths // 8, **parts)


def nodes_leave(leaves: Sequence[tuple[int, int, int]]) -> list[CapacityChanged]:
    """Return pools of which nodes leave at a time, and all are back in the end."""
    gone = [resized(time, pool, eighths) for time, pool, eighths in leaves]
    back = [resized(90, pool, 8) for pool in range(len(POOLS))]
    return [*sorted(gone, key=lambda each: each.time), *back]


LEAVES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), st.integers(0, 8)), max_size=4).map(nodes_leave)


@st.composite
def pooled_workloads(draw: st.DrawFn, /, **more: Any) -> Workload:
    """Return workloads of jobs in three pools, each of which asks for memory and GPUs, or says nothing of them."""
    jobs = draw(workloads(processors=8, **more))
    chance = draw(st.randoms(use_true_random=False))
    pools = [chance.randrange(len(POOLS)) for _ in jobs]

    def asked(name: str) -> list[int]:
        return [chance.choice((-1, chance.randint(0, getattr(POOLS[pool], name) or 9))) for pool in pools]

    most = np.array([POOLS[pool].processors for pool in pools])
    columns = dict(jobs.columns) | {"processors": np.minimum(jobs.columns["processors"], most)}
    columns |= {
        name: np.array(each) for name, each in (("pool", pools), ("memory", asked("memory")), ("gpus", asked("gpus")))
    }
    return replace(jobs, columns=columns, processors=PROCESSORS, pools=POOLS)


def moved(events: Sequence[Event], chance: Random) -> list[Event]:
    """Return a log in which waiting jobs that change may move to another pool, and running ones let go of memory."""
    asked = {event.job_number: event for event in events if isinstance(event, JobSubmitted)}
    log: list[Event] = []
    for event in events:
        if isinstance(event, JobChanged):
            job = asked[event.job_number]
            update: dict[str, Any] = {"memory": chance.randint(0, job.memory or 0), "gpus": chance.choice((None, 0))}
            if event.requested_processors is None and job.requested_processors <= POOLS[2].processors:
                update["pool"] = chance.choice((None, 2))
            event = event.model_copy(update=update)
        log.append(event)
    return log


@st.composite
def pooled_logs(draw: st.DrawFn) -> tuple[ClusterOpened, list[Event]]:
    """Return how a run opens, and its log: jobs in three pools, nodes that leave, and all that clusters do to jobs."""
    source, events = Recorded(draw(pooled_workloads(waits=True)), draw(LEAVES)), list[Event]()
    while instant := source.next_instant():
        events.extend(each for each in instant if not isinstance(each, SchedulingPoint))
    chance = draw(st.randoms(use_true_random=False))
    opened = draw(POOLED_OPENINGS).model_copy(update={"mode": "recorded"})
    return opened, moved(eventful(events, chance.randrange), chance)
