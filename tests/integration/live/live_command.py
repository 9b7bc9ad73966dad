"""The command `live` beside a real Kafka, and the states that it sends."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from shadowtime.shared.messages.envelope import Envelope
from shadowtime.shared.stages.topics import SCORES
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.ports import free_port
from tests.support.forked import Forked
from tests.support.live_logs import taken
from tests.support.patience import PATIENCE


async def publish(settings: Settings, *logs: list[Envelope]) -> None:
    partitions = await topic_admin.prepare_topics(settings)
    producer = bus.producer(settings)
    await producer.start()
    for log in logs:
        place = bus.partition_of(log[0].run, partitions)
        for each in log:
            last = await producer.send(SCORES, each.to_bytes(), each.run.encode(), place)
        await last
    await producer.stop()


@asynccontextmanager
async def live(settings: Settings, folder: Path, *more: str) -> AsyncIterator[str]:
    """Run the page as a process; yield its address."""
    port = free_port()
    log = folder / "live.log"
    log.touch()
    command = ["live", f"--port={port}", f"--kafka-bootstrap={settings.kafka_bootstrap}", *more]
    process = Forked(command, dict(os.environ), log)
    try:
        async with asyncio.timeout(PATIENCE):
            while f"http://127.0.0.1:{port}/" not in log.read_text():
                assert process.poll() is None, log.read_text()
                await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        process.wait()


async def states(session: aiohttp.ClientSession, address: str, run: str | None = None) -> AsyncIterator[dict[str, Any]]:
    state: dict[str, Any] = {}
    async with session.get(address + "events", params={} if run is None else {"run": run}) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                state = taken(state, orjson.loads(line.removeprefix(b"data: ")))
                yield state


def of_run(state: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in state.items() if name not in ("runs", "behind")}
