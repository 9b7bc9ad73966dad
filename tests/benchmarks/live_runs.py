"""Many live runs on two workers a stage, while workers and servers are restarted and killed.

`python -m tests.benchmarks.live_runs [RUNS]` prints one JSON line for each disturbance: the seconds from its end until
the last run has been answered. At the end, all decisions must be those of the pipeline in one process, byte for byte.
"""

import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages import Envelope
from shadowtime.shared.stages import DECISIONS, JOBS, StageRun
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.topic_follower import TopicFollower
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.workers import Workers
from tests.unit.shared.streaming.worker_runs import events_of_a_run

RUNS = 1_000
KINDS = 20
"""The number of different streams of events; each is that of many runs."""

PATIENCE = 600
DECIDING = STAGES[: [stage.writes for stage in STAGES].index(DECISIONS) + 1]


def decisions_of(run: str, events: list[bytes]) -> list[bytes]:
    """Return what the pipeline in one process puts on the topic of decisions."""
    stages = [StageRun(stage) for stage in DECIDING]
    answers = []
    for event in events:
        envelope = Envelope.from_bytes(event)
        for stage in stages:
            answer = stage.push(envelope)
            assert answer is not None
            envelope = Envelope.from_bytes(answer.to_bytes())
        answers.append(envelope.to_bytes())
    return answers


class LiveRuns:
    """Runs that are published in portions, and their decisions as far as they were read."""

    def __init__(self, count: int, settings: Settings) -> None:
        kinds = [events_of_a_run(seed, jobs=12) for seed in range(KINDS)]
        self.events = {
            f"live-{number}": [
                Envelope(run=f"live-{number}", sequence=at, event=event).to_bytes()
                for at, event in enumerate(kinds[number % KINDS])
            ]
            for number in range(count)
        }
        self.decisions: dict[str, list[bytes]] = {run: [] for run in self.events}
        self._settings = settings
        self._published = 0.0

    async def publish(self, share: float) -> None:
        """Publish the events of each run up to a share of its log."""
        async with bus.producer(self._settings) as producer:
            for run, events in self.events.items():
                place = bus.partition_of(run, self._settings.partitions)
                for event in events[int(self._published * len(events)) : int(share * len(events))]:
                    await producer.send(JOBS, event, run.encode(), place)
        self._published = share

    async def answered(self, follower: TopicFollower, workers: Workers) -> float:
        """Return the seconds until all published events of all runs have their decisions."""
        began = time.monotonic()
        wanted = {run: int(self._published * len(events)) for run, events in self.events.items()}
        while left := sum(len(self.decisions[run]) < count for run, count in wanted.items()):
            assert time.monotonic() < began + PATIENCE, f"{left} runs have no answer\n{workers.logs()}"
            workers.tend()
            for record in await follower.try_next_batch(5_000, 0.2):
                mine = self.decisions[record.key.decode()]
                if Envelope.from_bytes(record.value).sequence == len(mine):
                    mine.append(record.value)
        return time.monotonic() - began


def disturbances(workers: Workers, kafka: Kafka, redis: Redis) -> dict[str, Callable[[], object]]:
    """Return what happens before each portion."""

    def end(number: signal.Signals, names: list[str]) -> None:
        for name in names:
            workers.signal(name, number)
        for name in names:
            workers.processes[name].wait()

    first = [name for name in workers.names if name.endswith("-0")]

    def restart(server: Kafka | Redis) -> None:
        server.stop()
        server.start()

    return {
        "nothing": lambda: None,
        "one worker of each stage restarted": lambda: end(signal.SIGTERM, first),
        "one worker of each stage killed": lambda: end(signal.SIGKILL, first),
        "all workers killed": lambda: end(signal.SIGKILL, workers.names),
        "Redis restarted": lambda: restart(redis),
        "Kafka restarted": lambda: restart(kafka),
        "nothing again": lambda: None,
    }


async def measure(count: int, folder: Path) -> None:
    """Print the lines."""
    with (
        Kafka(folder / "kafka") as kafka,
        Redis(folder / "redis") as redis,
        Workers(kafka, redis, folder, 2) as workers,
    ):
        settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url)
        runs = LiveRuns(count, settings)
        await topic_admin.prepare_topics(settings.model_copy(update={"connect_seconds": PATIENCE}))
        async with TopicFollower(settings, DECISIONS, beginning=True) as follower:
            happens = disturbances(workers, kafka, redis)
            for number, (what, happen) in enumerate(happens.items(), 1):
                happen()
                began = time.monotonic()
                workers.tend()
                await runs.publish(number / len(happens))
                published = time.monotonic() - began
                seconds = await runs.answered(follower, workers)
                line = {"runs": count, "before": what, "publishing": round(published, 1), "seconds": round(seconds, 1)}
                print(json.dumps(line), flush=True)

        other = sum(runs.decisions[run] != decisions_of(run, events) for run, events in runs.events.items())
        events = sum(map(len, runs.events.values()))
        print(
            json.dumps({"runs": count, "events": events, "runs with other decisions": other, "starts": workers.starts})
        )
        assert not other


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(int(sys.argv[1]) if sys.argv[1:] else RUNS, Path(place)))
