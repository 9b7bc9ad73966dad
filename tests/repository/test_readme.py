"""The subscriber that README shows runs; its commands are tried in tests/repository/test_docs.py."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import Decided, Envelope
from shadowtime.shared.messages.reasons import FitsNow
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka
from tests.support.real_servers import require

README = (ROOT / "README.md").read_text()


def test_the_subscriber_prints_decisions(tmp_path: Path) -> None:
    require(Kafka)
    with Kafka(tmp_path / "kafka") as kafka:  # its own: other tests leave rubbish on the topics of theirs
        subscribe(kafka)


def subscribe(kafka: Kafka) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    starts = (Start(job_number=41, processors=4, limit=60, reason=FitsNow()),)
    envelope = Envelope(run="readme", sequence=0, event=Decided(time=7, starts=starts))

    async def publish() -> None:
        settings = Settings(kafka_bootstrap=kafka.address)
        await topic_admin.prepare_topics(settings)
        producer = bus.producer(settings)
        await producer.start()
        await producer.send_and_wait("decisions", envelope.to_bytes(), b"readme", 0)
        await producer.stop()

    asyncio.run(publish())
    command = [sys.executable, "-u", "-c", code]
    environment = {**os.environ, "SHADOWTIME_KAFKA_BOOTSTRAP": kafka.address}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment) as subscriber:
        assert subscriber.stdout is not None
        found = next(line for line in subscriber.stdout if "start job 41" in line)
        subscriber.kill()
    assert found == "7 start job 41 {'kind': 'fits-now'}\n"


def test_the_subscriber_has_ten_lines() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 10
