"""Closed replays side by side: 1 to 1,000 of them, on 1 and on 12 partitions, with 1 and with 4 workers a stage."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import uvloop

from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.benchmarks.logs import require
from tests.benchmarks.memory import peak, resident
from tests.benchmarks.stream import TRACE, side_by_side, warm_up
from tests.support.workers import Workers

EVENTS = 12_000
"""Events of all replays of a line together, about, but no fewer than some ten jobs of each."""

RUNS = (1, 10, 100, 1_000)

MANY = ((1, 1), (12, 1), (12, 4))
"""Partitions, and workers of each stage."""


def many_runs(partitions: int, each: int) -> list[dict[str, Any]]:
    """Return, for each number of runs, events a second, latency, and memory of the workers; `each` are of a stage.

    `mib_per_run` is what the workers of all stages together have grown by at most, for each run.
    """
    require(TRACE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            Kafka(folder / "kafka") as kafka,
            Redis(folder / "redis") as redis,
            Workers(kafka, redis, folder, each, typed=True, partitions=str(partitions)) as workers,
        ):
            settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url, web_port=0, partitions=partitions)
            return uvloop.run(_lines(settings, workers, each))


async def _lines(settings: Settings, workers: Workers, each: int) -> list[dict[str, Any]]:
    tending = asyncio.create_task(_tend(workers))
    await warm_up(settings)
    lines = []
    for runs in RUNS:
        before = sum(resident(process.pid) for process in workers.processes.values())
        line = await side_by_side(settings, runs, max(10, EVENTS // 5 // runs))
        grown = sum(peak(process.pid) for process in workers.processes.values()) - before
        of_line = {"partitions": settings.partitions, "workers": each, "cores": os.cpu_count()}
        lines.append(of_line | line | {"mib_per_run": round(grown / runs, 2)})
    tending.cancel()
    return lines


async def _tend(workers: Workers) -> None:
    """Start again what ends itself: a worker that was left without a partition."""
    while True:
        workers.tend()
        await asyncio.sleep(1.0)
