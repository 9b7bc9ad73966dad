"""Commands are written by hiredis, as redis-py would write them."""

from typing import Any

import pytest
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection

from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect

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
