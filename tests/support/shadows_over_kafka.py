"""Shadows as processes over real servers, to be killed, and what they told."""

import asyncio
import io
import random
import signal
import subprocess
import sys
import time

from shadowtime.replayer.comparison.records import DecisionLog
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.envelope import ClusterClosed, Envelope
from shadowtime.shared.stages.topics import DECISIONS
from shadowtime.shared.streaming.kafka.clients import partition_of
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from tests.support.embedded import assert_complete
from tests.support.workers import Workers


def shadow(workers: Workers, real: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start shadows of the run `real`."""
    cluster = real.partition("/")[0]
    command = [sys.executable, "-m", "shadowtime", "shadow", "--cluster", cluster, "--of", real, *arguments]
    with (workers.folder / "shadow.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=workers.environment, stdout=log, stderr=log)
    workers.replays.append(process)
    return process


def killed(workers: Workers, real: str, *policies: str, kills: int, pause: float, seconds: float) -> None:
    """Play exact shadows to their ends; their process is killed, and each second time a worker with it.

    A kill comes some `pause` seconds after the last; all has to be over within `seconds`.
    """
    chance = random.Random(5)
    arguments = ["--exact", *(each for policy in policies for each in ("--policy", policy))]
    running = shadow(workers, real, *arguments)
    until, done = time.monotonic() + seconds, 0
    rest = time.monotonic() + pause
    while running.poll() is None:
        assert time.monotonic() < until, workers.logs()
        time.sleep(0.5)
        workers.tend()
        if done < kills and time.monotonic() > rest and running.poll() is None:
            running.kill()
            running.wait()
            if done % 2:
                workers.signal(chance.choice(workers.names), signal.SIGKILL)
            done += 1
            rest = time.monotonic() + pause * (0.75 + 0.5 * chance.random())
            running = shadow(workers, real, *arguments)
    assert running.returncode == 0, workers.logs()
    assert done == kills


def told(workers: Workers, run: str) -> list[Envelope]:
    """Return what lies of a run on the topic of decisions, each once."""
    settings = Settings(kafka_bootstrap=workers.kafka.address)

    async def read() -> list[Envelope]:
        found: list[Envelope] = []
        async for record in read_log(settings, DECISIONS, partition_of(run, settings.partitions)):
            if record.key == run.encode():
                envelope = Envelope.from_bytes(record.value)
                if envelope.sequence == len(found):
                    found.append(envelope)
        return found

    return asyncio.run(read())


def assert_played(workers: Workers, run: str, decisions: bytes) -> None:
    """A shadow is over, decided so, and nothing of it is lost or doubled on any topic."""
    log, file = told(workers, run), io.BytesIO()
    assert isinstance(log[-1].event, ClusterClosed)
    write = DecisionLog(file)
    for envelope in log:
        write(envelope)
    assert file.getvalue() == decisions
    assert_complete(Settings(kafka_bootstrap=workers.kafka.address), run)
