"""A million hostile messages through all five stages as processes, beside two honest closed replays.

`python -m tests.benchmarks.hostile --messages 1000000` prints one JSON line. The attacker publishes as fast as the
slowest stage takes it. The honest replays are repeated until the attack is over; each time their decision logs must be
those of the embedded pipeline.
"""

import argparse
import asyncio
import io
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from prometheus_client.parser import text_string_to_metric_families

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.comparison.records import DecisionLog
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.stages.topics import DEAD_LETTERS
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.benchmarks.bare_stream import spread
from tests.benchmarks.stream import Timed
from tests.support.workers import Process, Workers

HONEST = {"a": "easy", "b": "best"}
"""Policies of the two honest replays."""

SETTLED_SECONDS = 3.0
MEGABYTE = 1 << 20


class WatchedWorkers(Workers):
    """Worker processes whose pages answer, each on a port of its own."""

    def __init__(self, kafka: Kafka, redis: Redis, folder: Path) -> None:
        super().__init__(kafka, redis, folder, typed=True)
        self.ports: dict[str, int] = {}

    def __enter__(self) -> "WatchedWorkers":
        self.tend()
        return self

    def start(self, arguments: list[str], name: str) -> Process:
        self.ports[name] = free_port()
        self.environment["SHADOWTIME_WEB_PORT"] = str(self.ports[name])
        return super().start(arguments, name)

    def peaks(self) -> dict[str, float]:
        """Return the most memory that each process has held, in MiB."""
        return {name: _peak(process.pid) for name, process in self.processes.items()}

    def ended(self) -> list[str]:
        """Return the workers that are no longer the process that was started."""
        return [name for name, process in self.processes.items() if process.poll() is not None]


class Honest:
    """Two closed replays side by side, again and again."""

    def __init__(self, settings: Settings, jobs: int) -> None:
        workload = prepare(read_swf(BUNDLED), limit=jobs)
        self.plans = {name: RunPlan(name, "honest", workload, configure(spec)) for name, spec in HONEST.items()}
        self.expected = {name: self._embedded(plan) for name, plan in self.plans.items()}
        self.settings = settings
        self.differ: list[str] = []
        self.number = 0

    def _embedded(self, plan: RunPlan) -> bytes:
        file = io.BytesIO()
        plan.replay([DecisionLog(file)]).run_to_end()
        return file.getvalue()

    async def replay(self, until: Callable[[], bool]) -> dict[str, list[float]]:
        """Replay at least once and until it is said; return the latencies of each."""
        found: dict[str, list[float]] = {name: [] for name in self.plans}

        async def again(name: str, plan: RunPlan) -> None:
            while True:
                self.number += 1
                run, file = f"honest/{self.number}", io.BytesIO()
                replay = Timed(plan.opened(), plan.source(), [DecisionLog(file)], run, self.settings, starts_only=False)
                await replay.run_to_end()
                found[name] += replay.latencies
                if file.getvalue() != self.expected[name]:
                    self.differ.append(run)
                if until():
                    break

        await asyncio.gather(*(again(name, plan) for name, plan in self.plans.items()))
        return found


async def measure(settings: Settings, workers: WatchedWorkers, options: argparse.Namespace) -> dict[str, Any]:
    """Replay alone, then beside the attack; say what both were like."""
    await topic_admin.prepare_topics(settings)
    honest = Honest(settings, options.jobs)
    await honest.replay(lambda: True)  # until every stage answers and is warm
    before = await honest.replay(lambda: True)
    began = time.perf_counter()
    with attacker(settings, workers, options) as attacking:
        watching = asyncio.ensure_future(longest_work(workers))
        beside = await honest.replay(lambda: attacking.poll() is not None)
        if attacking.wait() != 0:
            raise SystemExit(f"the attacker ended with {attacking.returncode}")
        took = time.perf_counter() - began
        sent = int(attacking.communicate()[0])
        behind = await settled(workers)
        watching.cancel()
    after = await honest.replay(lambda: True)
    client = connect(settings)
    memory = await client.info("memory")
    await client.aclose()
    health = {name: json.loads(await page(workers.ports[name], "health")) for name in workers.names}
    letters, longest = await dead_letters(settings)
    return {
        "messages": sent,
        "seconds": round(took, 1),
        "per_second": round(sent / took),
        "seconds_until_nothing_waited": round(behind, 1),
        "honest_replays": honest.number,
        "honest_logs_that_differ": honest.differ,
        "workers_that_ended": workers.ended(),
        "longest_work_seen_s": longest_seen(workers),
        "turns_took_at_most_s": {name: slowest(await page(workers.ports[name], "metrics")) for name in workers.names},
        "peak_memory_mib": workers.peaks(),
        "redis_mib": {name: round(memory[f"used_memory{name}"] / MEGABYTE, 1) for name in ("", "_peak")},
        "quarantined_runs": {name: each["quarantined_runs"] for name, each in health.items()},
        "dead_letters": sum(letters.values()),
        "dead_letters_by_kind": dict(letters.most_common(options.kinds)),
        "longest_reason": longest,
        "latency_ms": {
            name: {"before": spread(before[name]), "beside": spread(beside[name]), "after": spread(after[name])}
            for name in HONEST
        },
    }


@contextmanager
def attacker(
    settings: Settings, workers: WatchedWorkers, options: argparse.Namespace
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the attack in a process of its own."""
    names = [f"honest/{number}" for number in range(1, 9)]
    command = [sys.executable, "-m", "tests.benchmarks.hostile_attack", "--kafka", settings.kafka_bootstrap]
    command += ["--messages", str(options.messages), "--seed", str(options.seed), "--victims", *names]
    command += ["--ports", *map(str, workers.ports.values()), "--ahead", str(options.ahead)]
    command += ["--seconds", str(options.seconds)]
    with (workers.folder / "attacker.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


MAX_SEEN: dict[str, float] = {}


async def longest_work(workers: WatchedWorkers) -> None:
    """Ask every worker again and again how long it has been at work on what it is at."""
    while True:
        for name, port in workers.ports.items():
            try:
                busy = json.loads(await page(port, "health"))["seconds_at_work"]
            except (aiohttp.ClientError, TimeoutError, ValueError):
                continue
            MAX_SEEN[name] = max(MAX_SEEN.get(name, 0.0), busy)
        await asyncio.sleep(0.2)


def longest_seen(workers: WatchedWorkers) -> dict[str, float]:
    """Return what `longest_work` has found."""
    return {name: MAX_SEEN.get(name, 0.0) for name in workers.names}


async def page(port: int, name: str) -> str:
    """Return a page of a worker."""
    timeout = aiohttp.ClientTimeout(total=30)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(f"http://127.0.0.1:{port}/{name}") as answer,
    ):
        return await answer.text()


async def settled(workers: WatchedWorkers, patience: float = 1_200.0) -> float:
    """Wait until nothing has waited in front of any stage for a while; return the seconds."""
    began = quiet = time.monotonic()
    while time.monotonic() - quiet < SETTLED_SECONDS:
        if any([figure(await page(port, "metrics"), "shadowtime_worker_lag") for port in workers.ports.values()]):
            quiet = time.monotonic()
        if time.monotonic() - began > patience:
            break
        await asyncio.sleep(0.5)
    return time.monotonic() - began


def figure(metrics: str, name: str) -> float:
    """Return a figure of a page of metrics."""
    return sum(
        each.value for family in text_string_to_metric_families(metrics) for each in family.samples if each.name == name
    )


def slowest(metrics: str) -> str:
    """Return the end of the last bucket of turns that is not empty, in seconds."""
    samples = [each for family in text_string_to_metric_families(metrics) for each in family.samples]
    buckets = [each for each in samples if each.name == "shadowtime_worker_batch_seconds_bucket"]
    most = max(each.value for each in buckets)
    return min((each.labels["le"] for each in buckets if each.value == most), key=float)


async def dead_letters(settings: Settings) -> tuple[Counter[str], int]:
    """Return how many dead letters there are of each kind of reason, and the characters of the longest reason."""
    found: Counter[str] = Counter()
    longest = 0
    for partition in range(await topic_admin.partitions_of(settings, DEAD_LETTERS)):
        async for record in read_log(settings, DEAD_LETTERS, partition):
            headers = {name: value.decode(errors="replace") for name, value in record.headers}
            found[f"{headers['stage']}: {kind_of(headers['reason'])}"] += 1
            longest = max(longest, len(headers["reason"]))
    return found, longest


def kind_of(reason: str) -> str:
    """Return a reason without what it quotes.

    >>> kind_of("sequence 7 of run 'evil/3' follows -1: 7 events are missing from the log")
    'sequence # of run … follows #: # events are missing from the log'
    """
    quotes = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "…", reason)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", quotes)[:100]


def _peak(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return round(int(found[1]) / 1024, 1) if found else 0.0


@contextmanager
def watched_workers() -> Iterator[tuple[Settings, WatchedWorkers]]:
    """Run workers on servers of their own; nothing is left of them."""
    with tempfile.TemporaryDirectory(prefix="shadowtime-hostile-") as name:
        folder = Path(name)
        with (
            Kafka(folder / "kafka") as kafka,
            Redis(folder / "redis") as redis,
            WatchedWorkers(kafka, redis, folder) as workers,
        ):
            settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url, web_port=0, barrier_seconds=600)
            yield settings, workers


def hostile(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the attack, and keep the ends of all logs if that is asked for."""
    with watched_workers() as (settings, workers):
        try:
            return uvloop.run(measure(settings, workers, options))
        finally:
            if options.logs:
                options.logs.mkdir(parents=True, exist_ok=True)
                for path in workers.folder.glob("*.log"):
                    (options.logs / path.name).write_bytes(path.read_bytes()[-20_000_000:])


def main() -> int:
    """Print one JSON line; the status is 1 if an honest log differs or a worker has ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=600, help="jobs of each honest replay")
    parser.add_argument("--ahead", type=int, default=2_000, help="messages that may wait before a stage")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which the attack ends anyway")
    parser.add_argument("--kinds", type=int, default=60, help="kinds of dead letters that are told")
    parser.add_argument("--logs", type=Path, help="where the ends of all logs are kept")
    found = hostile(parser.parse_args())
    print(json.dumps({"benchmark": "hostile"} | found))
    return 1 if found["honest_logs_that_differ"] or found["workers_that_ended"] else 0


if __name__ == "__main__":
    sys.exit(main())
