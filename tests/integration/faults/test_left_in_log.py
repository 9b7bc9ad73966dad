"""A run with more waiting records than fit into memory keeps nobody waiting, and none of its records is lost."""

import signal
from pathlib import Path

from shadowtime.shared.messages import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.topics import FLOW, JOBS
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.loop import WAITING
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.dead_letters import publish
from tests.support.real_servers import require
from tests.support.topic_logs import sequences
from tests.support.workers import Workers

LONG, OTHER = "long", "beside"

EVENTS = WAITING + 2_000


def events_of(run: str, count: int) -> list[bytes]:
    def event(number: int) -> Event:
        return ClusterOpened(time=0, cluster="c", processors=4) if number == 0 else SchedulingPoint(time=number)

    return [Envelope(run=run, sequence=number, event=event(number)).to_bytes() for number in range(count)]


def test_a_long_run_keeps_nobody_waiting_and_loses_nothing_when_workers_are_killed(tmp_path: Path) -> None:
    require(Kafka)
    require(Redis)
    with Kafka(tmp_path / "kafka") as kafka, Redis(tmp_path / "redis") as redis:
        settings = Settings(kafka_bootstrap=kafka.address, partitions=1)
        publish(settings, JOBS, LONG, events_of(LONG, EVENTS))
        publish(settings, JOBS, OTHER, events_of(OTHER, 20))
        with Workers(kafka, redis, tmp_path, partitions="1") as workers:
            workers.wait_for_answers(settings, OTHER, 19)
            answered = sequences(settings, LONG, 0, (FLOW[-1],))[FLOW[-1]]
            assert len(answered) < EVENTS / 2
            for name in workers.names:
                workers.signal(name, signal.SIGKILL)
            workers.wait_for_answers(settings, LONG, EVENTS - 1)
