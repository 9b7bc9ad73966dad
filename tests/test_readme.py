"""What the README tells is true: its subscriber runs, and its commands and options exist."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from shadowtime.shared.events import Decided, Envelope, Start
from shadowtime.shared.paths import ROOT
from shadowtime.shared.reasons import FitsNow
from shadowtime.shared.streaming import bus
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers import Kafka
from tests.real_servers import require

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
        await bus.prepare_topics(settings)
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


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", README)) <= targets


def test_options_exist() -> None:
    shown = ""
    for command in (
        ["replayer"],
        ["replayer.generate"],
        ["services", "watch"],
        ["services", "live"],
        ["services", "ask"],
    ):
        call = [sys.executable, "-m", *command, "--help"]
        shown += subprocess.run(
            call, cwd=ROOT, capture_output=True, text=True, check=True, env={"COLUMNS": "200"}
        ).stdout
    told = set(re.findall(r"`(--[a-z-]+)", README))
    assert told
    assert {option for option in told if option not in shown} == set()
