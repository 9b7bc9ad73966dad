"""A run with more waiting records than fit into memory keeps nobody waiting, and none of its records is lost."""

import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from redis import Redis as Client

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.topics import FLOW, JOBS
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.seals import SEAL_BYTES, Sealer
from shadowtime.shared.streaming.worker.left_records import Unhandled
from shadowtime.shared.streaming.worker.loop import READ_BACK, WAITING
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.faults.dead_letters import publish
from tests.support.real_servers import require
from tests.support.topic_logs import sequences
from tests.support.workers import Workers

LONG, OTHER = "long", "beside"

UNHANDLED = "shadowtime:{{{}}}:unhandled:all"

EVENTS = WAITING + 2_000


def events_of(run: str, count: int) -> list[bytes]:
    def event(number: int) -> Event:
        return ClusterOpened(time=0, cluster="c", processors=4) if number == 0 else SchedulingPoint(time=number)

    return [Envelope(run=run, sequence=number, event=event(number)).to_bytes() for number in range(count)]


def sealed(content: bytes) -> dict[str, bytes]:
    """Return what somebody stores who has read how the seals of a stage without a secret are made."""
    return {stage.name: Sealer(stage.name, b"").seal_of(content, "unhandled", 0) + content for stage in STAGES}


def interrupt_first_stage(workers: Workers, settings: Settings, client: Client) -> None:
    """Stop the first stage's worker as soon as its stored list spares its next owner a part of the log."""
    name = f"{STAGES[0].name}-0"
    while True:
        workers.signal(name, signal.SIGSTOP)
        handled = len(sequences(settings, LONG, 0, (FLOW[1],))[FLOW[1]])
        stored: Any = client.hget(UNHANDLED.format(STAGES[0].name), "0")
        if stored is not None and Unhandled.from_bytes(stored[SEAL_BYTES:]).stop - READ_BACK > handled:
            return
        workers.signal(name, signal.SIGCONT)
        assert handled < EVENTS, "all records were handled before a useful list was stored"
        time.sleep(0.3)


@pytest.mark.parametrize(
    "altered",
    [
        {},
        pytest.param({stage.name: b"forged" for stage in STAGES}, marks=pytest.mark.nightly),
        pytest.param(sealed(b'{"log": 1}'), marks=pytest.mark.nightly, id="sealed"),
    ],
)
def test_a_long_run_keeps_nobody_waiting_and_loses_nothing_when_workers_are_killed(
    tmp_path: Path, altered: dict[str, bytes]
) -> None:
    """The stored list of unhandled records spares the next owner most of the log, and is not needed."""
    require(Kafka)
    require(Redis)
    with Kafka(tmp_path / "kafka") as kafka, Redis(tmp_path / "redis") as redis:
        settings = Settings(kafka_bootstrap=kafka.address, partitions=1)
        publish(settings, JOBS, LONG, events_of(LONG, EVENTS))
        publish(settings, JOBS, OTHER, events_of(OTHER, 20))
        with Workers(kafka, redis, tmp_path, partitions="1") as workers:
            with closing(Client.from_url(redis.url)) as client:
                interrupt_first_stage(workers, settings, client)
                for name in workers.names:
                    workers.signal(name, signal.SIGKILL)
                for stage, value in altered.items():
                    client.hset(UNHANDLED.format(stage), "0", value)
            workers.wait_for_answers(settings, OTHER, 19)
            answered = sequences(settings, LONG, 0, (FLOW[-1],))[FLOW[-1]]
            assert len(answered) < EVENTS / 2
            workers.wait_for_answers(settings, LONG, EVENTS - 1)
            assert any("begin at offset" in log.read_text() for log in tmp_path.glob("*.log")) is not bool(altered)
            assert not any("\x1b" in log.read_text() for log in tmp_path.glob("*.log"))  # nothing for terminals
            assert not any("is read anew" in log.read_text() for log in tmp_path.glob("*.log"))
