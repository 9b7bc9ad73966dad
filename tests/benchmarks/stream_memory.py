"""Memory of the workers in a long recorded replay over Kafka, and what each job leaves in Redis and in Kafka.

A quarter of an hour on two free cores.
"""

import asyncio
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import uvloop

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.io.streamed import StreamedReplay
from shadowtime.replayer.logs.workload import Workload
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import Envelope, JobEnded, JobSubmitted
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.benchmarks.logs import log
from tests.benchmarks.stream import workers

EVERY_SECONDS = 5.0
LOOKS = 12
"""Looks of all that were taken that are shown."""

WARM = 0.5
"""Share of the events after which memory should be flat."""

MEGABYTE = 1 << 20


def stream_memory(trace: str, jobs: int) -> dict[str, Any]:
    """Replay the first jobs of a log as they ran, through one worker per stage."""
    name, whole = log(trace)
    columns = MappingProxyType({field: column[:jobs] for field, column in whole.columns.items()})
    workload = Workload(whole.name, whole.processors, columns, {}, 0)
    plan = RunPlan("memory", name, workload, configure("easy"), "recorded")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with Kafka(folder / "kafka") as kafka, Redis(folder / "redis") as redis:
            settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url, web_port=0)
            with workers(settings) as running:
                pids = {stage.name: process.pid for stage, process in zip(STAGES, running, strict=True)}
                measured = uvloop.run(measure(settings, plan, pids))
            kept = sum(path.stat().st_size for path in (folder / "kafka" / "data").glob("*-*/*.log"))
    return {"trace": name, "jobs": len(workload), "kafka_bytes_per_job": round(kept / len(workload))} | measured


async def measure(settings: Settings, plan: RunPlan, pids: dict[str, int]) -> dict[str, Any]:
    """Replay, and look at every worker and at Redis now and then."""
    seen: Counter[str] = Counter()

    def count(envelope: Envelope) -> None:
        seen["events"] += 1
        seen["in_system"] += isinstance(envelope.event, JobSubmitted) - isinstance(envelope.event, JobEnded)
        seen["most_in_system"] = max(seen["most_in_system"], seen["in_system"])

    client = connect(settings)
    looks: list[dict[str, float]] = []

    async def look() -> None:
        while True:
            used = (await client.info("memory"))["used_memory"]
            looks.append(
                {"events": seen["events"]}
                | {name: resident(pid) for name, pid in pids.items()}
                | {"redis": round(used / MEGABYTE, 1)}
            )
            await asyncio.sleep(EVERY_SECONDS)

    looking = asyncio.ensure_future(look())
    replay = StreamedReplay(plan.opened(), plan.source(), [count], plan.label, settings, starts_only=True)
    began = time.perf_counter()
    await replay.run_to_end()
    took = time.perf_counter() - began
    looking.cancel()
    await client.aclose()
    warm = [each for each in looks if each["events"] >= WARM * seen["events"]]
    step = max(1, len(looks) // LOOKS)
    redis = max(each["redis"] for each in looks) - looks[0]["redis"]
    return {
        "events": seen["events"],
        "events_per_second": round(seen["events"] / took),
        "unit": "MiB",
        "seen": looks[::step],
        "growth_in_the_second_half": {name: round(warm[-1][name] - warm[0][name], 1) for name in pids},
        "most_jobs_in_system": seen["most_in_system"],
        "redis_most": round(redis, 1),
        "redis_bytes_per_job_in_system": round(redis * MEGABYTE / seen["most_in_system"]),
    }


def resident(pid: int) -> float:
    """Return the memory that a process holds now, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE, 1)
