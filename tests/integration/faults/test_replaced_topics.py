"""A topic that is deleted and made again has a log of its own: no new event is taken for a duplicate."""

import asyncio
import signal
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from shadowtime.shared.messages import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.topics import JOBS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.dead_letters import dead_letters, publish
from tests.support.real_servers import require
from tests.support.workers import Workers

RUN, OTHER = "again", "beside"


def events_of(run: str, first: int, last: int) -> list[bytes]:
    def event(number: int) -> Event:
        return ClusterOpened(time=0, cluster="c", processors=4) if number == 0 else SchedulingPoint(time=number)

    return [Envelope(run=run, sequence=number, event=event(number)).to_bytes() for number in range(first, last + 1)]


def make_anew(settings: Settings, *topics: str) -> None:
    """Delete topics, as if Kafka had lost its disk, and make them again."""

    async def work() -> None:
        admin = AIOKafkaAdminClient(**bus.connection(settings))
        await admin.start()
        await admin.delete_topics(list(topics))
        while set(await admin.list_topics()) & set(topics):
            await asyncio.sleep(0.1)
        await admin.close()
        await topic_admin.prepare_topics(settings)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("stopped", "count"),
    [
        pytest.param(False, 50, id="fewer-records-while-workers-run"),
        pytest.param(True, 400, id="more-records-while-workers-are-stopped", marks=pytest.mark.nightly),
        pytest.param(True, 50, id="fewer-records-while-workers-are-stopped", marks=pytest.mark.nightly),
        pytest.param(False, 400, id="more-records-while-workers-run", marks=pytest.mark.nightly),
    ],
)
def test_a_topic_that_is_made_anew(tmp_path: Path, stopped: bool, count: int) -> None:
    require(Kafka)
    require(Redis)
    with (
        Kafka(tmp_path / "kafka") as kafka,
        Redis(tmp_path / "redis") as redis,
        Workers(kafka, redis, tmp_path, partitions="1") as workers,
    ):
        settings = Settings(kafka_bootstrap=kafka.address, partitions=1)
        publish(settings, JOBS, RUN, events_of(RUN, 0, 300))
        workers.wait_for_answers(settings, RUN, 300)
        if stopped:
            for process in workers.processes.values():
                process.send_signal(signal.SIGTERM)
                process.wait()
        make_anew(settings, JOBS)
        publish(settings, JOBS, OTHER, events_of(OTHER, 0, 20))
        publish(settings, JOBS, RUN, events_of(RUN, 301, 300 + count))
        workers.wait_for_answers(settings, RUN, 300 + count)
        workers.wait_for_answers(settings, OTHER, 20)
        (letter,) = dead_letters(settings, 1, topic=JOBS, reason="was deleted and made again")
        assert "events are judged by their sequence" in letter["reason"]
        publish(settings, JOBS, RUN, events_of(RUN, 301 + count, 330 + count))
        workers.wait_for_answers(settings, RUN, 330 + count)
