"""Everything at once: ten honest replays beside hostile runs, damaged batches, and kills of workers and servers.

`python -m tests.benchmarks.everything [MINUTES]` prints one JSON line. A quarter of the time there are only kills, then
hostile runs and damaged batches are added. Honest replays go on all the time, ten at once. Their decisions must be
those of the pipeline in one process, byte for byte, and no worker may end but by a kill.
"""

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from aiokafka.errors import KafkaError

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import BusError
from shadowtime.shared.messages import Event
from shadowtime.shared.stages import FLOW
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.benchmarks.costly_runs import COSTLY, JOBS_OF_EACH, jobs_of, points, publish
from tests.benchmarks.hostile import WatchedWorkers, dead_letters
from tests.support.embedded import embedded
from tests.support.forked import Forked
from tests.support.stored_batches import StoredBatchProducer, batch, mutated

HONEST = [f"{policy}-{number}" for policy in ("easy", "best") for number in range(5)]
HONEST_JOBS = "200"

HOSTILE = 100
"""Number of expensive runs, of all kinds together; the attacker's process adds other kinds."""

BATCHES_AT_ONCE, PAUSE = 20, 0.2
"""Damaged batches that are sent together, and the seconds after them."""

EXPENSIVE_EVERY = 2.0
"""Seconds between two expensive messages of a run: together they are ten times the work that there is time for."""

WORKER_EVERY, KAFKA_EVERY, REDIS_EVERY = 45.0, 420.0, 300.0
"""Seconds between two kills."""

ROUND_SECONDS = 1_200.0
"""Seconds that ten replays may take."""

KEPT = Path(tempfile.gettempdir(), "everything-that-differs")
"""Folder for the decisions of a replay that differ, for the output of all replays, and of workers that have ended."""


def keep(*paths: Path) -> None:
    """Copy files to `KEPT`: the folder of the run is removed."""
    KEPT.mkdir(exist_ok=True)
    for path in paths:
        shutil.copy(path, KEPT)


async def again(work: Callable[[], Awaitable[None]]) -> None:
    """Repeat work; after an error of Kafka, a second later."""
    while True:
        try:
            await work()
        except (KafkaError, BusError, OSError):
            await asyncio.sleep(1.0)


async def attack(kafka: str, seconds: float) -> None:
    """Send damaged batches to the topics of all stages, and expensive events of many runs, for so many seconds."""
    settings, chance = Settings(kafka_bootstrap=kafka), random.Random(45)
    names = [f"honest/{number}" for number in range(20)]

    async def damage() -> None:
        async with StoredBatchProducer(settings) as producer:
            while True:
                for _ in range(BATCHES_AT_ONCE):
                    values = [chance.choice((b"{}", b"", None, b"x" * 30)) for _ in range(chance.randrange(1, 5))]
                    made = mutated(batch(0, values, key=chance.choice(names).encode()), chance)
                    await producer.send(chance.choice(FLOW), chance.randrange(settings.partitions), made)
                await asyncio.sleep(PAUSE)

    numbers = iter(range(10**9))

    async def expensive() -> None:
        number = next(numbers)  # of an attempt: after an error the runs have gaps, so new ones begin
        runs = {f"costly-{number}-{at}": COSTLY[at % len(COSTLY)] for at in range(HOSTILE)}
        async with bus.producer(settings) as producer:
            await publish(producer, settings.partitions, {run: jobs_of(choice) for run, choice in runs.items()})
            first = 1 + 3 * JOBS_OF_EACH
            while True:
                part: dict[str, Iterator[Event]] = {run: points(1) for run in runs}
                await publish(producer, settings.partitions, part, first)
                first += 2
                await asyncio.sleep(EXPENSIVE_EVERY)

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(again(damage), again(expensive))


@contextmanager
def attackers(workers: WatchedWorkers, kafka: str, seconds: float) -> Iterator[None]:
    """Run the attackers in processes of their own."""
    ports = [*map(str, workers.ports.values())]
    victims = [f"honest/{number}" for number in range(1, 9)]
    messages = ["--messages", str(10**8), "--seconds", str(seconds), "--victims", *victims, "--ports", *ports]
    commands = [
        ["tests.benchmarks.everything", "--attack", kafka, str(seconds)],
        ["tests.benchmarks.hostile_attack", "--kafka", kafka, *messages],
    ]
    with (workers.folder / "attackers.txt").open("ab") as log:
        running = [
            subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stdout=log, stderr=log) for command in commands
        ]
        try:
            yield
        finally:
            for process in running:
                process.kill()
                process.wait()


class Kills:
    """Kills of workers, Kafka and Redis, each at its time."""

    def __init__(self, workers: WatchedWorkers, kafka: Kafka, redis: Redis) -> None:
        self._workers, self._chance = workers, random.Random(7)
        now = time.monotonic()
        self._due = {"worker": now + WORKER_EVERY, "kafka": now + KAFKA_EVERY, "redis": now + REDIS_EVERY}
        self._every = {"worker": WORKER_EVERY, "kafka": KAFKA_EVERY, "redis": REDIS_EVERY}
        self._servers = {"kafka": kafka, "redis": redis}
        self.count: Counter[str] = Counter()
        self.of_worker: Counter[str] = Counter()

    def step(self) -> None:
        """Kill what is due, start it again, and tend the workers."""
        for name, due in self._due.items():
            if time.monotonic() < due:
                continue
            self._due[name] = time.monotonic() + self._every[name]
            self.count[name] += 1
            if (server := self._servers.get(name)) is not None:
                server.kill()
                server.start()
            else:
                victim = self._chance.choice(self._workers.names)
                if self._workers.processes[victim].poll() is None:
                    self._workers.signal(victim, signal.SIGKILL)
                    self._workers.processes[victim].wait()
                    self.of_worker[victim] += 1
        self._workers.tend()


class Rounds:
    """Ten honest replays at once, again and again."""

    def __init__(self, workers: WatchedWorkers, kills: Kills) -> None:
        self._workers, self._kills = workers, kills
        policies = {name: name.partition("-")[0] for name in HONEST}
        self._expected = {name: embedded(*self._arguments(policy)) for name, policy in policies.items()}
        self._policies, self._number = policies, 0
        self.differ: list[str] = []

    @staticmethod
    def _arguments(policy: str) -> tuple[str, ...]:
        return "--policy", policy, "--jobs", HONEST_JOBS

    def replay(self) -> list[float]:
        """Return the seconds of each of ten replays that begin together."""
        self._number += 1
        began, folder = time.monotonic(), self._workers.folder
        paths = {name: folder / f"{name}-{self._number}.jsonl" for name in HONEST}
        left: dict[str, Forked | subprocess.Popen[bytes]] = {}
        for at, (name, path) in enumerate(paths.items()):
            run = f"honest/{10 * self._number + at}"
            left[name] = self._workers.replay(run, path, *self._arguments(self._policies[name]))
        took = []
        while left:
            self._kills.step()
            for name, process in [(name, process) for name, process in left.items() if process.poll() is not None]:
                del left[name]
                took.append(time.monotonic() - began)
                if process.returncode != 0 or paths[name].read_bytes() != self._expected[name]:
                    self.differ.append(f"{name} of round {self._number}, which ended with status {process.returncode}")
                    keep(paths[name], *folder.glob("replay-*.log"))
            if time.monotonic() - began > ROUND_SECONDS:
                self.differ += [f"{name} of round {self._number} did not end" for name in left]
                for process in left.values():
                    process.kill()
                break
            time.sleep(0.1)
        print(f"round {self._number}: {spread(took)}", file=sys.stderr, flush=True)
        return took


def measure(minutes: float, folder: Path) -> dict[str, object]:
    """Replay beside kills alone, then beside everything."""
    with (
        Kafka(folder / "kafka") as kafka,
        Redis(folder / "redis") as redis,
        WatchedWorkers(kafka, redis, folder) as workers,
    ):
        kills = Kills(workers, kafka, redis)
        rounds = Rounds(workers, kills)
        rounds.replay()  # until every stage answers and is warm
        alone: list[float] = []
        beside: list[float] = []
        began = time.monotonic()
        while time.monotonic() < began + 15 * minutes:
            alone += rounds.replay()
        with attackers(workers, kafka.address, 60 * minutes):
            while time.monotonic() < began + 60 * minutes:
                beside += rounds.replay()
        ended = {
            name: count for name, starts in workers.starts.items() if (count := starts - 1 - kills.of_worker[name]) > 0
        }
        for name in ended:
            keep(folder / f"{name}.log")
        letters, _ = asyncio.run(dead_letters(Settings(kafka_bootstrap=kafka.address)))
        return {
            "benchmark": "everything",
            "minutes": minutes,
            "kills": dict(kills.count),
            "honest_replays": {"beside_kills": len(alone), "beside_everything": len(beside)},
            "honest_logs_that_differ": rounds.differ,
            "seconds_beside_kills": spread(alone),
            "seconds_beside_everything": spread(beside),
            "workers_that_ended_by_themselves": ended,
            "peak_memory_mib": workers.peaks(),
            "dead_letters": sum(letters.values()),
            "dead_letters_by_kind": dict(letters.most_common(20)),
        }


def spread(seconds: list[float]) -> dict[str, float]:
    """Return median and maximum.

    >>> spread([1.0, 2.0, 9.04])
    {'median': 2.0, 'longest': 9.0}
    """
    return {"median": round(median(seconds), 1), "longest": round(max(seconds), 1)} if seconds else {}


def main(arguments: list[str]) -> int:
    """Run everything on servers of its own; the status is 1 if an honest log differs."""
    if arguments[:1] == ["--attack"]:
        asyncio.run(attack(arguments[1], float(arguments[2])))
        return 0
    with tempfile.TemporaryDirectory(prefix="shadowtime-everything-") as place:
        result = measure(float(arguments[0]) if arguments else 60.0, Path(place))
    print(json.dumps(result))
    return 1 if result["honest_logs_that_differ"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
