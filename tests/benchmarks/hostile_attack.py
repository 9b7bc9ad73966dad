"""The attacker's process: publishes hostile messages as fast as the workers take them."""

import argparse
import asyncio
import sys
import time

import aiohttp
import uvloop
from aiokafka.errors import KafkaError

from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from tests.conformance.fuzz.attack import attack

PART_SECONDS = 0.1
SLOWER, FASTER = 0.7, 1.15


async def lag(session: aiohttp.ClientSession, ports: list[int]) -> float:
    """Return how many messages wait in front of the stage that is furthest behind."""
    found = [0.0]
    for port in ports:
        try:
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                lines = (await answer.text()).splitlines()
        except (aiohttp.ClientError, TimeoutError):
            return float("inf")
        found += [float(line.rpartition(" ")[2]) for line in lines if line.startswith("shadowtime_worker_lag{")]
    return max(found)


async def publish(settings: Settings, options: argparse.Namespace) -> int:
    """Publish all messages, or as many as there is time for, and return how many; what Kafka refuses is told."""
    producer = bus.producer(settings)
    await producer.start()
    partitions = await topic_admin.prepare_topics(settings)
    messages = attack(options.messages, options.seed, options.victims, partitions)
    rate, sent, asked = 500.0, 0, time.monotonic()
    until = asked + options.seconds
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        while time.monotonic() < until:
            began = time.monotonic()
            deliveries = []
            for _ in range(max(1, round(rate * PART_SECONDS))):
                each = next(messages, None)
                if each is None:
                    break
                deliveries.append(await producer.send(each.topic, each.value, each.key, each.partition))
            if not deliveries:
                break
            for delivery in deliveries:
                try:
                    await delivery
                except KafkaError as error:
                    print(f"Kafka: {error!r}", file=sys.stderr)
            sent += len(deliveries)
            if time.monotonic() - asked > 1.0:
                behind = await lag(session, options.ports)
                rate = max(100.0, min(20_000.0, rate * (SLOWER if behind > options.ahead else FASTER)))
                asked = time.monotonic()
                print(f"{sent} sent, {rate:.0f} a second, {behind:.0f} wait", file=sys.stderr, flush=True)
            await asyncio.sleep(max(0.0, PART_SECONDS - (time.monotonic() - began)))
    await producer.stop()
    return sent


def main() -> None:
    """Read the options, publish, and print how many it were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ahead", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--victims", nargs="+", required=True)
    parser.add_argument("--ports", nargs="+", type=int, required=True)
    options = parser.parse_args()
    print(uvloop.run(publish(Settings(kafka_bootstrap=options.kafka), options)))


if __name__ == "__main__":
    main()
