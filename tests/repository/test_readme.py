"""README keeps its word: its Python prints what it shows, what it links exists, and it stays short.

The commands of README and docs are tried in tests/repository/test_docs.py. The subscriber is docs/subscribing.md's.
"""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shadowtime import __version__
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
SUBSCRIBING = (ROOT / "docs" / "subscribing.md").read_text()


def test_it_is_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
def test_its_python_prints_what_it_shows(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    ((code, shown),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == shown


def test_files_that_it_links_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []


def test_the_citation_is_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {__version__}\n" in citation
    assert "\n  - name: The Shadowtime developers\n" in citation


def test_the_subscriber_prints_decisions(tmp_path: Path) -> None:
    require(Kafka)
    with Kafka(tmp_path / "kafka") as kafka:  # its own: other tests leave rubbish on the topics of theirs
        subscribe(kafka)


def subscribe(kafka: Kafka) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", SUBSCRIBING, re.DOTALL)
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
