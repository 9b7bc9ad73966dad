"""A topic that is deleted and made again has a log of its own: no new event is taken for a duplicate."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.topics import JOBS
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.protocols import RunState
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.shared.streaming.state_rebuild import Rebuilt, rebuild
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
        assert not any("cannot continue" in log.read_text() for log in tmp_path.glob("*.log")), workers.logs()


def test_a_rebuild_without_the_beginning_of_a_run_keeps_its_state_and_says_so(
    tmp_path: Path, empty_redis: Redis
) -> None:
    require(Kafka)
    (stage,) = (stage for stage in STAGES if stage.reads == JOBS)
    with Kafka(tmp_path / "kafka") as kafka:
        settings = Settings(kafka_bootstrap=kafka.address, redis_url=empty_redis.url, partitions=1)
        for topic in (JOBS, stage.writes):  # the stage has answered all of them
            publish(settings, topic, RUN, events_of(RUN, 0, 5))
        assert asyncio.run(rebuild(stage, settings)) == {RUN: Rebuilt(5, 5)}
        make_anew(settings, JOBS)
        assert asyncio.run(rebuild(stage, settings)) == {RUN: Rebuilt(None, 5)}

        async def stored() -> RunState | None:
            client = connect(settings)
            try:
                return await RedisStore(client, stage.name).load(RUN)
            finally:
                await client.aclose()

        state = asyncio.run(stored())
        assert state is not None
        assert state.sequence == 5
        told = subprocess.run(
            [
                *(sys.executable, "-m", "shadowtime", "rebuild", stage.name, "--run", RUN),
                *(f"--kafka-bootstrap={kafka.address}", f"--redis-url={empty_redis.url}"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 1
        assert f"run {RUN} is not rebuilt: its topic no longer has its beginning; its old state stays" in told.stderr
