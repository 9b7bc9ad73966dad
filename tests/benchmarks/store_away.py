"""The pace of the pipeline while VictoriaMetrics answers, and while it hangs for a minute; Grafana always hangs."""

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from shadowtime.replayer.io.streamed import StreamedReplay
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.ports import HOST
from shadowtime.stack.servers.servers import Kafka, Redis, VictoriaMetrics
from tests.benchmarks.logs import require
from tests.benchmarks.stream import TRACE, plan
from tests.support.metric_store import exported
from tests.support.processes import wait_until
from tests.support.server_control import pause, resume
from tests.support.workers import Workers

JOBS = 2_000
ROUNDS = 4
AWAY = 60
"""Seconds at least."""


def store_away() -> list[dict[str, Any]]:
    """Return events per second of recorded replays, and how many runs the store has complete when all is over."""
    require(TRACE)
    with (
        tempfile.TemporaryDirectory() as name,
        silent_server() as grafana,
        Kafka(Path(name) / "kafka") as kafka,
        Redis(Path(name) / "redis") as redis,
        VictoriaMetrics(Path(name) / "store") as store,
        Workers(kafka, redis, Path(name), typed=True, victoria_metrics_url=store.url, grafana_url=grafana) as workers,
    ):
        workers.replays.append(workers.start(["serve", "metrics"], "metrics"))  # ended with the others
        settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url)
        uvloop.run(replay(settings, "warm-up"))
        lines, runs = [], 1
        for state in ("up", "hangs", "up"):
            if state == "hangs":
                pause(store)
            began, rates = time.monotonic(), list[int]()
            while len(rates) < ROUNDS or (state == "hangs" and time.monotonic() - began < AWAY):
                rates.append(uvloop.run(replay(settings, f"run-{runs}")))
                runs += 1
            if state == "hangs":
                resume(store)
            seconds = round(time.monotonic() - began)
            lines.append({"store": state, "seconds": seconds, "events_per_second": rates})
        wait_until(lambda: complete(store) == runs, "samples are missing", 120)
        return [*lines, {"runs": runs, "complete_in_the_store": complete(store)}]


@contextmanager
def silent_server() -> Iterator[str]:
    """Listen at an address where nothing ever answers."""
    with socket.create_server((HOST, 0)) as listening:
        yield f"http://{HOST}:{listening.getsockname()[1]}"


async def replay(settings: Settings, run: str) -> int:
    """Replay a log as recorded; return events per second."""
    made = plan("recorded", JOBS)._replace(sample_every=settings.sample_seconds)
    streamed = StreamedReplay(made.opened(), made.source(), [], run, settings, starts_only=True)
    began = time.perf_counter()
    await streamed.run_to_end()
    return round(streamed.sequence / (time.perf_counter() - began))


def complete(store: VictoriaMetrics) -> int:
    """Return of how many runs the store has the last sample."""
    return sum(samples[-1][1] == JOBS for samples in exported(store, "shadowtime_jobs_total").values())
