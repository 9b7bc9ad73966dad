"""Workloads that contend for GPUs of two types, with processors for all."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from shadowtime.replayer.logs.workload import Workload
from shadowtime.shared.messages.envelope import ClusterOpened
from shadowtime.shared.messages.gpu_types import GpuType
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.testing.workloads import TraceRow, workload

TYPES = (GpuType(name="a100", gpus=4), GpuType(name="v100", gpus=3))
POOL = Pool(name="gpu", processors=100, gpus=7, gpu_types=TYPES)
NAMES = ("a100", "v100", "a100+v100")
MOST = (4, 3, 7)


def opened(policy: str, **more: Any) -> ClusterOpened:
    return ClusterOpened(time=0, cluster="c", processors=100, pools=(POOL,), policy=policy, **more)


def of_types(jobs: Workload, gpus: list[int], types: list[int], got: list[str] | None = None) -> Workload:
    """Return jobs that ask for GPUs of these types, as indices of `NAMES`, -1 for none; `got` is what each got."""
    texts = (*NAMES, *(got or ()))
    columns = dict(jobs.columns) | {
        "pool": np.zeros(len(jobs), dtype=np.int64),
        "gpus": np.array(gpus, dtype=np.int64),
        "gpu_type": np.array(types, dtype=np.int64),
    }
    if got is not None:
        columns["gpu_got"] = np.array([texts.index(text) if text else -1 for text in got], dtype=np.int64)
    return replace(jobs, columns=columns, pools=(POOL,), texts=texts)


def contending(seed: int, jobs: int = 60) -> Workload:
    """Return random jobs, most of which want GPUs: of one type, of either, or of both named."""
    chance, time, rows = Random(seed), 0, list[TraceRow]()
    gpus, types = list[int](), list[int]()
    for number in range(1, jobs + 1):
        time += chance.randint(0, 4)
        run = chance.randint(1, 20)
        rows.append(TraceRow(number, time, chance.randint(1, 2), run + chance.randint(0, 10), run))
        types.append(chance.choice((-1, -1, 0, 0, 1, 1, 2)))
        gpus.append(chance.randint(0, MOST[types[-1]]))
    return of_types(workload(100, rows), gpus, types)
