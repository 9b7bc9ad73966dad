"""The stream on one broker: each stage beside a bare faust agent and bare aiokafka; closed, recorded, many runs."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import uvloop

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.io.streamed import StreamedReplay
from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.envelope import ClusterClosed, Decided, Envelope, Event
from shadowtime.shared.stages.topics import JOBS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.roles import ADMIN
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.benchmarks.bare_stream import bare_aiokafka, bare_faust, drained, fill, spread
from tests.benchmarks.logs import log, require
from tests.support.guarded import guarded
from tests.support.patience import PATIENCE

TRACE = "KTH"
JOBS_RECORDED = 4_000
JOBS_CLOSED = 1_000
TURNS = 5
CONCURRENT = ((1, 400), (10, 100), (100, 20))
"""Runs side by side, and jobs of each."""


class Timed(StreamedReplay):
    """Notes how long each decision was waited for, from the publication of its scheduling point."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.awaited: list[int] = []
        self.latencies: list[float] = []

    async def _answer(self, point: int) -> Decided:
        began = time.perf_counter()
        decided = await super()._answer(point)
        self.latencies.append(time.perf_counter() - began)
        self.awaited.append(point)
        return decided


def stream() -> list[dict[str, Any]]:
    """Run everything on one broker and return one line per figure."""
    require(TRACE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Kafka(folder / "kafka") as kafka, Redis(folder / "redis") as redis:
            settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url, web_port=0)
            values = envelopes("bare", JOBS_RECORDED)
            lines = [uvloop.run(bare_aiokafka(settings, values)), bare_faust(settings, values, folder)]
            lines += each_stage_alone(settings)
            with workers(settings):
                lines += [uvloop.run(closed(settings)), uvloop.run(recorded(settings))]
                lines += [uvloop.run(side_by_side(settings, runs, jobs)) for runs, jobs in CONCURRENT]
    return lines


def stream_with_access() -> list[dict[str, Any]]:
    """Run the same replays over open servers, under passwords and rights, and under TLS too, in turns.

    A figure of one turn stands beside that of the open servers in the same turn; the last line has the medians.
    """
    require(TRACE)
    kinds = {"open": None, "secure": False, "tls": True}
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        places = {kind: running.enter_context(servers(Path(name) / kind, tls)) for kind, tls in kinds.items()}
        for settings, access in places.values():
            running.enter_context(workers(settings, access=access))
        for turn in range(TURNS):
            for kind, (settings, _) in places.items():
                found = uvloop.run(closed(settings, f"-{turn}")), uvloop.run(recorded(settings, f"-{turn}"))
                lines += [{"kind": kind, "turn": turn} | line for line in found]
    return [*lines, ratios(lines)]


def ratios(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return each figure as a multiple of that of the open servers in the same turn: the median of all turns."""
    found: dict[str, Any] = {"part": "beside-open"}
    for figure in ("scheduling_points_per_second", "events_per_second", "median_ms", "p99_ms"):
        of = {(line["kind"], line["turn"]): line[figure] for line in lines if figure in line}
        for kind in ("secure", "tls"):
            beside = [of[kind, turn] / of["open", turn] for turn in range(TURNS)]
            found[f"{kind}_{figure}"] = round(statistics.median(beside), 3)
    return found


@contextmanager
def servers(folder: Path, tls: bool | None) -> Iterator[tuple[Settings, str | None]]:
    """Yield settings of who reads every topic, and the folder with those of each role; None where all is open."""
    if tls is None:
        with Kafka(folder / "kafka") as kafka, Redis(folder / "redis") as redis:
            yield Settings(kafka_bootstrap=kafka.address, redis_url=redis.url, web_port=0), None
    else:
        with guarded(folder, tls=tls) as made:
            yield made.settings(ADMIN), str(made.folder)


@contextmanager
def workers(settings: Settings, *names: str, access: str | None = None) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run one worker for each stage that is named, or for all; in their roles, where a folder has their settings."""
    environment = os.environ | {
        "SHADOWTIME_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "SHADOWTIME_REDIS_URL": settings.redis_url,
        "SHADOWTIME_WEB_PORT": "0",
        "SHADOWTIME_PARTITIONS": str(settings.partitions),
        "SHADOWTIME_CONNECT_SECONDS": str(PATIENCE),
    }
    if access is not None:
        del environment["SHADOWTIME_REDIS_URL"]
        environment["SHADOWTIME_ACCESS"] = access
    commands = [
        [sys.executable, "-m", "shadowtime", "serve", name] for name in names or [stage.name for stage in STAGES]
    ]
    running = [subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) for command in commands]
    try:
        yield running
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def plan(mode: str, jobs: int, name: str = "bench") -> RunPlan:
    _, whole = log(TRACE)
    columns = MappingProxyType({field: column[:jobs] for field, column in whole.columns.items()})
    workload = Workload(whole.name, whole.processors, columns, {}, 0)
    return RunPlan(name, "bench", workload, configure("easy"), "recorded" if mode == "recorded" else "closed")


def envelopes(run: str, jobs: int) -> list[bytes]:
    """Return the messages of a recorded replay."""
    made = plan("recorded", jobs)
    source = Recorded(made.workload)
    events: list[Event] = [made.opened()]
    while instant := source.next_instant():
        events += instant
    events.append(ClusterClosed(time=events[-1].time))
    return [Envelope(run=run, sequence=number, event=event).to_bytes() for number, event in enumerate(events)]


def each_stage_alone(settings: Settings) -> list[dict[str, Any]]:
    """Fill `jobs`, then run one stage after another until it has forwarded everything."""

    async def begin() -> tuple[int, int]:
        partition = bus.partition_of("alone", await topic_admin.prepare_topics(settings))
        values = envelopes("alone", JOBS_RECORDED)
        await fill(settings, JOBS, partition, b"alone", values)
        return partition, len(values)

    partition, count = uvloop.run(begin())
    lines = []
    for stage in STAGES:
        with workers(settings, stage.name):
            rate = uvloop.run(drained(settings, stage.writes, partition, count))
        lines.append({"part": f"stage-{stage.name}", "per_second": round(rate), "events": count})
    return lines


async def closed(settings: Settings, name: str = "") -> dict[str, Any]:
    """Replay with the barrier."""
    replay = timed(settings, f"closed{name}", JOBS_CLOSED)
    await warm_up(settings, name)
    began = time.perf_counter()
    last = await replay.run_to_end()
    took = time.perf_counter() - began
    points = last.scores.policy.scheduling_points if last.scores else 0
    return {
        "part": "closed-replay",
        "jobs": JOBS_CLOSED,
        "scheduling_points_per_second": round(points / took, 1),
        "awaited_share": round(len(replay.latencies) / points, 3),
    } | spread(replay.latencies)


async def recorded(settings: Settings, name: str = "") -> dict[str, Any]:
    """Replay without waiting, through all stages at once."""
    made = plan("recorded", JOBS_RECORDED)
    replay = StreamedReplay(made.opened(), made.source(), [], f"recorded{name}", settings, starts_only=True)
    began = time.perf_counter()
    await replay.run_to_end()
    took = time.perf_counter() - began
    return {"part": "recorded-replay", "jobs": JOBS_RECORDED, "events_per_second": round(replay.sequence / took)}


async def side_by_side(settings: Settings, runs: int, jobs: int) -> dict[str, Any]:
    """Replay several closed runs at once, spread over the partitions."""
    replays = [timed(settings, f"side-{runs}-{number}", jobs) for number in range(runs)]
    began = time.perf_counter()
    await asyncio.gather(*(replay.run_to_end() for replay in replays))
    took = time.perf_counter() - began
    latencies = [latency for replay in replays for latency in replay.latencies]
    events = sum(replay.sequence for replay in replays)
    return {"part": "side-by-side", "runs": runs, "jobs": jobs, "events_per_second": round(events / took)} | spread(
        latencies
    )


async def warm_up(settings: Settings, name: str = "") -> None:
    """Wait until every stage answers."""
    await timed(settings, f"warm-up{name}", 20).run_to_end()


def timed(settings: Settings, run: str, jobs: int) -> Timed:
    made = plan("closed", jobs)
    return Timed(made.opened(), made.source(), [], run, settings, starts_only=True)
