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
from shadowtime.shared.messages.gpu_types import GpuType
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.testing.workloads import workloads
from tests.support.strategies.logs import OPENINGS, eventful

A100, V100 = GpuType(name="a100", gpus=3), GpuType(name="v100", gpus=2)
POOLS = (
    Pool(name="cpu", processors=8, nodes=4, memory=20),
    Pool(name="gpu", processors=6, nodes=2, memory=16, gpus=5, gpu_types=(A100, V100)),
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
    kinds = tuple(kind.replaced(gpus=kind.gpus * eighths // 8) for kind in whole.gpu_types or ())
    return CapacityChanged(
        time=time, pool=pool, processors=whole.processors * eighths // 8, gpu_types=kinds or None, **parts
    )


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
    return of_types(replace(jobs, columns=columns, processors=PROCESSORS, pools=POOLS), chance)


def of_types(jobs: Workload, chance: Random) -> Workload:
    """Return the jobs, some of which name a type of GPU, or both; of some the log says what they got."""
    texts = ["a100", "v100", "a100+v100"]
    named, had = [], []
    for pool, gpus in zip(jobs.columns["pool"].tolist(), jobs.columns["gpus"].tolist(), strict=True):
        fit = [at for at, most in enumerate((A100.gpus, V100.gpus, 5)) if pool == 1 and 0 < gpus <= most]
        named.append(chance.choice([-1, *fit]))
        kind = "a100" if named[-1] < 0 else texts[named[-1]].split("+")[0]
        had.append(-1 if pool != 1 or gpus <= 0 or chance.random() < 0.5 else len(texts))
        if had[-1] > 0:
            texts.append(f"gres/gpu:{kind}={gpus}")
    columns = dict(jobs.columns) | {"gpu_type": np.array(named, dtype=int), "gpu_got": np.array(had, dtype=int)}
    return replace(jobs, columns=columns, texts=tuple(texts))


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
