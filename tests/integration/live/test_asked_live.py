"""The live page over real Kafka and Redis: advice and the twin, also while Redis goes and comes back."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import redis.asyncio as client

from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion
from shadowtime.services.processes.ask.once import ADVISE
from shadowtime.services.shadows.comparison.stored import STORE
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.live.live_command import live, of_run, publish, states
from tests.support.live_logs import as_sent, log_of
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.stored_runs import Stored
from tests.support.stored_shadows import stored as shadow

JOB = {"cluster": "kth", "run": "kth/a", "processors": "8", "requested_time": "7200", "user": "1", "moldable": "true"}
AWAY = "Redis cannot be used"


async def keep(url: str, states: Mapping[tuple[str, str], tuple[int, bytes]]) -> None:
    """Store sequences and snapshots by stage and run, as workers and shadows do."""
    connection = client.Redis.from_url(url)
    for (stage, run), (sequence, snapshot) in states.items():
        await RedisStore(connection, stage).commit(Transaction(run, -1, sequence, 0, 0, snapshot, (), (), 0))
    await connection.aclose()


def test_it_answers_while_redis_is_there_and_goes_on_without(kafka: Kafka, tmp_path: Path) -> None:
    require(Redis)
    settings, log = Settings(kafka_bootstrap=kafka.address), log_of("kth", run="live/asked")
    stored = Stored("easy", "empirical")
    kept = {(each, "kth/a"): (stored.states[each].sequence, stored.states[each].snapshot()) for each in ADVISE}
    port = free_port()

    async def get(session: aiohttp.ClientSession, path: str, **parameters: str) -> tuple[int, Any]:
        async with session.get(path, params=parameters) as response:
            return response.status, await response.json()

    async def go() -> None:
        await publish(settings, log[:200])
        server = Redis(tmp_path / "redis", port)
        url = f"--redis-url=redis://127.0.0.1:{port}/0"
        async with live(settings, tmp_path, url) as address, aiohttp.ClientSession(address) as session:
            async with asyncio.timeout(PATIENCE):
                async for state in states(session, address, "live/asked"):
                    if state.get("time") == log[199].event.time:
                        break
                assert state["shadows"] == 0
            for path, parameters in (("ask/advice", JOB), ("ask/twin", {"cluster": "kth"})):
                status, said = await get(session, path, **parameters)
                assert (status, said["error"].partition(":")[0]) == (503, AWAY)
            with server:
                await keep(server.url, kept | {(STORE, "kth/live/shadow/best"): (0, shadow(100))})
                status, said = await get(session, "ask/advice", **JOB)
                assert status == 200, said
                expected = await stored.advising.advise(AdviceQuestion.model_validate(JOB))
                assert Advice.model_validate(said) == expected
                async with asyncio.timeout(PATIENCE):
                    while (answer := await get(session, "ask/twin", cluster="kth"))[0] == 503:
                        await asyncio.sleep(0.5)
                    assert answer[0] == 200
                    assert [each["name"] for each in answer[1]["shadows"]] == ["best"]
                    async for state in states(session, address, "live/asked"):
                        if state["shadows"] == 1:
                            break
                server.kill()
                assert (await get(session, "ask/advice", **JOB))[0] == 503
                await publish(settings, log[200:])
                async with asyncio.timeout(PATIENCE):
                    async for state in states(session, address, "live/asked"):
                        if state["closed"]:
                            break
                assert of_run(state) == of_run(as_sent(log)) | {"shadows": 1}
                server.start()
                again = await get(session, "ask/advice", **JOB)
                assert again == (200, said), again

    asyncio.run(go())
