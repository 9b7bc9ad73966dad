"""Redis keeps what it answered through a kill, and its settings hold. Requests go over a bare socket."""

from pathlib import Path

import pytest
from redis import Redis as Client

from shadowtime.shared.stages.topics import FLOW
from shadowtime.stack.roles import FOLLOW, REDIS, roles
from shadowtime.stack.servers.access import Access
from shadowtime.stack.servers.servers import Redis
from tests.support.real_servers import require
from tests.support.redis_questions import ask


@pytest.fixture(autouse=True)
def _needs_redis() -> None:
    require(Redis)


def test_a_value_survives_a_kill(tmp_path: Path) -> None:
    with Redis(tmp_path, settings={"appendfsync": "always"}) as server:
        assert ask(server, "PING") == b"+PONG\r\n"
        assert ask(server, "SET position 41") == b"+OK\r\n"
        server.kill()
        server.start()
        assert ask(server, "GET position") == b"$2\r\n41\r\n"


def test_transactions_of_roles_survive_a_kill_and_nobody_else_gets_in(tmp_path: Path) -> None:
    """Redis runs what its append-only file has of transactions as the user who has no name."""
    access = Access(tmp_path / "access", roles(FLOW))
    access.prepare()
    with Redis(tmp_path / "redis", settings={"appendfsync": "always"}, access=access) as server:
        for _ in range(2):
            for command in ("GET shadowtime:{follow}:x", "AUTH default x", "AUTH x", "ACL WHOAMI", "MULTI"):
                assert ask(server, command)[:1] == b"-"
            password = access.secret_file(FOLLOW, REDIS).read_text().strip()
            follower = Client(port=server.port, username=FOLLOW, password=password)
            with follower.pipeline(transaction=True) as pipe:
                pipe.hincrby("shadowtime:{follow}:x", "told", 1)
                pipe.rpush("shadowtime:{follow}:y", "event")
                pipe.execute()
            told = follower.hget("shadowtime:{follow}:x", "told")
            follower.close()
            server.kill()
            server.start()
    assert told == b"2"


def test_a_full_server_refuses_writes_and_evicts_nothing(tmp_path: Path) -> None:
    with Redis(tmp_path, settings={"maxmemory": "2mb"}) as server:
        assert ask(server, "SET kept 1") == b"+OK\r\n"
        refused = [ask(server, f"SETRANGE key{number} 200000 x") for number in range(20)][-1]
        assert refused.startswith(b"-OOM command not allowed")
        assert ask(server, "GET kept") == b"$1\r\n1\r\n"


def test_a_password_is_demanded_and_kept_from_other_users(tmp_path: Path) -> None:
    with Redis(tmp_path, password='a "b" \\ /@') as server:
        assert ask(server, "PING").startswith(b"-NOAUTH")
        assert server.url == f"redis://:a%20%22b%22%20%5C%20%2F%40@127.0.0.1:{server.port}/0"
        assert "a%20" not in server.address
        assert b"b" not in Path(f"/proc/{server.pid}/cmdline").read_bytes().split(b"\0")[2:]
    assert (tmp_path / "redis.conf").stat().st_mode & 0o077 == 0


def test_the_defaults_are_append_only_without_snapshots(tmp_path: Path) -> None:
    with Redis(tmp_path, settings={"databases": 1}) as server:
        assert b"everysec" in ask(server, "CONFIG GET appendfsync")
        assert b"yes" in ask(server, "CONFIG GET appendonly")
        assert b"noeviction" in ask(server, "CONFIG GET maxmemory-policy")
        assert ask(server, "CONFIG GET save").endswith(b"$0\r\n\r\n")
        assert ask(server, "SELECT 1").startswith(b"-ERR")
