"""Ten honest closed replays beside runs whose messages are as expensive as they can be.

`python -m tests.benchmarks.costly_runs [RUNS OF EACH KIND]` prints one JSON line: seconds of the honest replays, alone
and beside the others, how often the others were answered meanwhile, and whether all honest decisions are those of the
pipeline in one process.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import uvloop
from aiokafka import AIOKafkaProducer

from shadowtime.services.catalogue import configure
from shadowtime.shared.messages import ClusterOpened, Envelope, Event, JobStarted, JobSubmitted, SchedulingPoint
from shadowtime.shared.stages import DECISIONS, JOBS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from tests.benchmarks import hostile
from tests.benchmarks.hostile import SETTLED_SECONDS, Honest, WatchedWorkers, dead_letters, settled, watched_workers

COSTLY = ("slurm:calc_period=1", "easy:forecast=sampled", "all-reserve:forecast=calibrated", "hmm", "conservative")
"""Policies of the expensive runs; `hmm` is a predictor, with its keys at their bounds."""

JOBS_OF_EACH = 400
"""Jobs that run, and that wait, in each expensive run."""

POINTS = 20_000
"""Expensive messages of all runs together; more than are answered in the time."""

HONEST_JOBS = 60

PATIENCE = 60.0
"""Seconds that the first events of the expensive runs may take."""


def jobs_of(choice: str) -> Iterator[Event]:
    """Yield the first events of an expensive run: jobs that start, and jobs that wait."""
    named = (
        configure("easy", "hmm:states=64,history=10,open=1344,threshold=0") if choice == "hmm" else configure(choice)
    )
    yield ClusterOpened(time=0, cluster="c", processors=JOBS_OF_EACH, **named._asdict())
    for number in range(2 * JOBS_OF_EACH):
        yield JobSubmitted(time=1, job_number=number, requested_processors=1, requested_time=10**6 + 7 * number)
        if number < JOBS_OF_EACH:
            yield JobStarted(time=1, job_number=number, processors=1)


def points(count: int) -> Iterator[Event]:
    """Yield expensive events."""
    for number in range(count):
        time_of = 10_000 * (1 + number)
        yield JobSubmitted(time=time_of, job_number=10**6 + number, requested_processors=1, requested_time=10**6)
        yield SchedulingPoint(time=time_of)


async def publish(
    producer: AIOKafkaProducer, partitions: int, runs: dict[str, Iterator[Event]], first: int = 0
) -> None:
    """Publish the events of runs in turns; `first` is the sequence of the first event."""
    at = first
    while runs:
        for run, events in list(runs.items()):
            event = next(events, None)
            if event is None:
                del runs[run]
                continue
            value = Envelope(run=run, sequence=at, event=event).to_bytes()
            await producer.send(JOBS, value, run.encode(), bus.partition_of(run, partitions))
        at += 1


async def answered(settings: Settings) -> int:
    """Return the number of decisions about the expensive runs."""
    count = 0
    for partition in range(await topic_admin.partitions_of(settings, DECISIONS)):
        async for record in read_log(settings, DECISIONS, partition):
            count += (record.key or b"").startswith(b"costly")
    return count


async def measure(settings: Settings, workers: WatchedWorkers, each: int) -> dict[str, Any]:
    """Replay alone, then beside the expensive runs."""
    await topic_admin.prepare_topics(settings)
    honest = Honest(settings, HONEST_JOBS)
    await honest.replay(lambda: True)  # until every stage answers and is warm
    began = time.perf_counter()
    await honest.replay(lambda: True)
    alone = time.perf_counter() - began
    costly = {f"costly-{choice}-{number}": choice for choice in COSTLY for number in range(each)}
    async with bus.producer(settings) as producer:
        await publish(producer, settings.partitions, {run: jobs_of(choice) for run, choice in costly.items()})
    await settled(workers, PATIENCE)
    async with bus.producer(settings) as producer:
        expensive: dict[str, Iterator[Event]] = {run: points(POINTS // len(costly)) for run in costly}
        await publish(producer, settings.partitions, expensive, 1 + 3 * JOBS_OF_EACH)
    await asyncio.sleep(SETTLED_SECONDS)
    before, began = await answered(settings), time.perf_counter()
    await honest.replay(lambda: True)
    beside = time.perf_counter() - began
    meanwhile = await answered(settings) - before
    letters, _ = await dead_letters(settings)
    return {
        "costly_runs": each * len(COSTLY),
        "honest_seconds_alone": round(alone, 1),
        "honest_seconds_beside": round(beside, 1),
        "costly_answers_a_second": round(meanwhile / beside, 1),
        "honest_logs_that_differ": honest.differ,
        "workers_that_ended": workers.ended(),
        "peak_memory_mib": workers.peaks(),
        "dead_letters": dict(letters),
    }


def main(arguments: list[str]) -> None:
    """Run everything on servers of its own."""
    hostile.HONEST.clear()
    hostile.HONEST.update({f"{policy}-{number}": policy for policy in ("easy", "best") for number in range(5)})
    with watched_workers() as (settings, workers):
        print(json.dumps(uvloop.run(measure(settings, workers, int(arguments[0]) if arguments else 20))))


if __name__ == "__main__":
    main(sys.argv[1:])
