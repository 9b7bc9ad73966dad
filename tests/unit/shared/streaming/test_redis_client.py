"""Commands are written by hiredis, as redis-py would write them. Every failure of a cluster is a store error."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection

from shadowtime.shared.errors import StoreError
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore

KINDS = {"redis://h:6379/0": Connection, "rediss://h:6379/0": SSLConnection, "unix:///h": UnixDomainSocketConnection}
COMMANDS = [
    ("SCRIPT LOAD", "return 1"),
    ("EVALSHA", "0" * 40, 1, "shadowtime:{scheduler}:state:r\u00fcn", b"\x00\r\n\xff", -1, "", b"x" * 20_000, 1.5),
]


@pytest.mark.parametrize("url", KINDS)
def test_commands_are_written_as_redis_py_writes_them(url: str) -> None:
    client: Any = connect(Settings(redis_url=url))
    connection = client.connection_pool.make_connection()
    plain = KINDS[url]()
    assert isinstance(connection, type(plain))
    for command in COMMANDS:
        written = b"".join(connection.pack_command(*command))
        assert written == b"".join(plain.pack_command(*command))
    assert b"".join(connection.pack_commands(COMMANDS)) == b"".join(plain.pack_commands(COMMANDS))
    assert type(connection).pack_command is not type(plain).pack_command


def test_a_cluster_without_a_reachable_node_is_a_store_error() -> None:
    """The worker retries after a `StoreError`; redis-py's own error would end it."""

    async def all_fail() -> None:
        client = connect(Settings(redis_url="redis+cluster://127.0.0.1:1"))
        try:
            store = RedisStore(client, "scheduler")
            transaction = Transaction("run", -1, 0, 0, 0, b"{}", (), (b"{}",), 0)
            for work in (store.wait_for(0.0), store.load("run"), store.attempt("run"), store.commit(transaction)):
                with pytest.raises(StoreError, match="Redis cannot be used: "):
                    await work
        finally:
            await client.aclose()

    asyncio.run(all_fail())
