"""The yardsticks of the stream: rate and round trip of bare aiokafka and of a bare faust agent."""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import uvloop
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings


async def make_topics(settings: Settings, *names: str) -> None:
    admin = AIOKafkaAdminClient(**bus.connection(settings))
    await admin.start()
    await admin.create_topics([NewTopic(name, 1, 1) for name in names])
    await admin.close()
    await asyncio.sleep(1)


async def fill(settings: Settings, topic: str, partition: int, key: bytes, values: list[bytes]) -> float:
    """Publish and return messages per second."""
    producer = bus.producer(settings)
    await producer.start()
    began = time.perf_counter()
    for value in values:
        await producer.send(topic, value, key, partition)
    await producer.flush()
    took = time.perf_counter() - began
    await producer.stop()
    return len(values) / took


async def drained(settings: Settings, topic: str, partition: int, count: int) -> float:
    """Wait until a topic has `count` messages; return messages per second, from the first on."""
    consumer = bus.reader(settings)
    await consumer.start()
    place = TopicPartition(topic, partition)
    began, first = 0.0, 0
    while True:
        end = (await consumer.end_offsets([place]))[place]
        if end and not first:
            began, first = time.perf_counter(), end
        if end >= count:
            break
        await asyncio.sleep(0.02)
    await consumer.stop()
    return (count - first) / (time.perf_counter() - began)


async def round_trips(settings: Settings, out: str, back: str, count: int = 300) -> list[float]:
    """Return the times from publishing on one topic to hearing on another, one message at a time."""
    producer, consumer = bus.producer(settings), bus.reader(settings)
    await producer.start()
    await consumer.start()
    place = TopicPartition(back, 0)
    consumer.assign([place])
    await consumer.seek_to_end(place)
    await consumer.position(place)
    times = []
    for number in range(count):
        began = time.perf_counter()
        await producer.send(out, b"%d" % number, partition=0)
        await consumer.getone()
        times.append(time.perf_counter() - began)
    await producer.stop()
    await consumer.stop()
    return times


async def bare_aiokafka(settings: Settings, values: list[bytes]) -> dict[str, Any]:
    await topic_admin.prepare_topics(settings)
    await make_topics(settings, "echo-in", "echo-out")
    rate = await fill(settings, "echo-in", 0, b"bare", values)
    consumer, producer = bus.reader(settings), bus.producer(settings)
    await consumer.start()
    await producer.start()
    consumer.assign([TopicPartition("echo-in", 0)])
    began = time.perf_counter()
    for _ in values:
        await consumer.getone()
    read = len(values) / (time.perf_counter() - began)

    async def echo() -> None:
        async for record in consumer:
            await producer.send("echo-out", record.value, partition=0)

    echoing = asyncio.ensure_future(echo())
    times = await round_trips(settings, "echo-in", "echo-out")
    echoing.cancel()
    await consumer.stop()
    await producer.stop()
    return {"part": "bare-aiokafka", "produced_per_second": round(rate), "consumed_per_second": round(read)} | spread(
        times
    )


def bare_faust(settings: Settings, values: list[bytes], folder: Path) -> dict[str, Any]:
    async def measure() -> dict[str, Any]:
        await make_topics(settings, "bare-in", "bare-out")
        await fill(settings, "bare-in", 0, b"bare", values)
        command = [sys.executable, "-m", "tests.benchmarks.bare_faust", settings.kafka_bootstrap, str(folder / "faust")]
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        rate = await drained(settings, "bare-out", 0, len(values))
        times = await round_trips(settings, "bare-in", "bare-out")
        process.terminate()
        process.wait()
        return {"part": "bare-faust", "per_second": round(rate)} | spread(times)

    return uvloop.run(measure())


def spread(seconds: list[float]) -> dict[str, float]:
    """Return median and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {
        "median_ms": round(1000 * statistics.median(ordered), 2),
        "p99_ms": round(1000 * ordered[int(0.99 * (len(ordered) - 1))], 2),
    }
