"""A message on a topic of the cluster's own wakes a follower; without one it waits its time, also without Kafka."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from shadowtime.services.follower.io.slurm import Waker
from shadowtime.shared.errors import SettingsError
from shadowtime.stack.servers.servers import Kafka


def test_a_message_ends_the_wait(kafka: Kafka) -> None:
    async def run() -> tuple[float, float]:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
        await admin.start()
        await admin.create_topics([NewTopic("slurm-end", 3, 1)])
        await admin.close()
        producer = AIOKafkaProducer(bootstrap_servers=kafka.address)
        await producer.start()
        await producer.send_and_wait("slurm-end", b"of before")
        waker = Waker(f"{kafka.address}/slurm-end")
        try:
            began = time.monotonic()
            await waker.wait(3)
            waited = time.monotonic() - began
            began = time.monotonic()
            sending = asyncio.create_task(_send_until(producer, done := asyncio.Event()))
            await waker.wait(120)
            done.set()
            await sending
            return waited, time.monotonic() - began
        finally:
            await waker.close()
            await producer.stop()

    waited, woken = asyncio.run(run())
    assert waited >= 2.9
    assert woken < 100


async def _send_until(producer: AIOKafkaProducer, done: asyncio.Event) -> None:
    while not done.is_set():
        await producer.send_and_wait("slurm-end", b'{"jobid": 1}')
        await asyncio.sleep(0.5)


def test_without_kafka_it_waits_its_time() -> None:
    async def run() -> float:
        waker = Waker("127.0.0.1:1/slurm-end")
        began = time.monotonic()
        await waker.wait(0.5)
        await waker.close()
        return time.monotonic() - began

    assert asyncio.run(run()) >= 0.5


@pytest.mark.parametrize("place", ["kafka", "kafka:9092", "kafka/topic", "kafka:9092/", "kafka:9092/a,"])
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(SettingsError, match="expected HOST:PORT/TOPIC"):
        Waker(place)
