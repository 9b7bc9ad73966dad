"""After a failover of Redis, a client leaves the server that is only a replica now."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shadowtime.shared.errors import StoreError
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Redis


def test_a_client_of_a_server_that_became_a_replica_connects_anew(empty_redis: Redis) -> None:
    transaction = Transaction("run", -1, 0, 0, 0, b"{}", (), (b"{}",), 0)

    async def run() -> None:
        admin: Any = connect(Settings(redis_url=empty_redis.url))
        client: Any = connect(Settings(redis_url=empty_redis.url))
        store = RedisStore(client, "scheduler")
        try:
            works: list[Callable[[], Awaitable[object]]]
            works = [lambda: store.commit(transaction), lambda: store.attempt("run")]
            for work in works:
                await store.wait_for(1.0)
                before = await client.execute_command("CLIENT", "ID")
                await admin.execute_command("REPLICAOF", "127.0.0.1", "1")
                with pytest.raises(StoreError, match="read only replica"):
                    await work()
                assert (
                    await client.execute_command("CLIENT", "ID") != before
                )  # a balancer would lead this one to the new primary
                await admin.execute_command("REPLICAOF", "NO", "ONE")
                await work()
        finally:
            await admin.execute_command("REPLICAOF", "NO", "ONE")
            await admin.aclose()
            await client.aclose()

    asyncio.run(run())
