"""What docker-compose.yml gives the servers is what real ones take, with the hosts of the network as loopback."""

import asyncio
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from aiokafka.errors import TopicAuthorizationFailedError

from shadowtime.shared.errors import BusError
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.compose.credentials import FLOW, MOUNTED, SCRAPE, files, give, make, names
from shadowtime.stack.compose.kafka_rights import prepare
from shadowtime.stack.roles import KAFKA, kafka_acls, roles
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.server import Server
from shadowtime.stack.servers.servers import Kafka, Redis, VictoriaMetrics
from tests.support.compose import services
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until
from tests.support.real_servers import require
from tests.support.redis_questions import ask


@contextmanager
def running(
    command: list[str],
    server: Server,
    folder: Path,
    environment: dict[str, str],
    answers: Callable[[], bool] | None = None,
) -> Iterator[None]:
    """Run a command of the compose file until the server it starts has answered and the caller is done."""
    log = folder / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=folder, env={"PATH": "/usr/bin:/bin"} | environment, stdout=output, stderr=output
        ) as process,
    ):
        try:
            wait_until(lambda: (answers or server.answers)() or process.poll() is not None, log.read_text())
            assert process.poll() is None, log.read_text()
            yield
            process.terminate()
            process.wait(PATIENCE)
        finally:
            process.kill()


def apply_cluster_event(port: int) -> Callable[[], bool]:
    """Return what tells whether something listens at a port."""

    def asked() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    return asked


def given(tmp_path: Path) -> dict[str, str]:
    """Write the secrets of every container below a folder, as its first container does; return all by name."""
    all_roles = roles(FLOW)
    made = make(tmp_path, names(all_roles))
    give(tmp_path, files(all_roles, made))
    return made


def test_redis_takes_its_users_and_asks_everyone_finding_08(tmp_path: Path) -> None:
    require(Redis)
    block, port = services()["redis"], free_port()
    made = given(tmp_path)
    server = Redis(tmp_path, port, password=made["redis-admin"])
    command = [each.replace(str(MOUNTED), str(tmp_path)) for each in block["command"]]
    check = block["healthcheck"]["test"][-1].replace("-p 6379", f"-p {port}")
    with running(
        [*command, "--port", str(port), "--bind", "127.0.0.1"], server, tmp_path, {}, apply_cluster_event(port)
    ):
        assert ask(server, "PING").startswith(b"-NOAUTH")
        assert healthy(["sh", "-c", check.replace(str(MOUNTED), str(tmp_path))], {})
        (tmp_path / "wrong").mkdir()
        assert not healthy(["sh", "-c", check.replace(str(MOUNTED), str(tmp_path / "wrong"))], {})
        with redis.Redis(port=port, username="scheduler", password=made["redis-scheduler"]) as client:
            assert client.hset("shadowtime:{scheduler}:state:r", "sequence", "1")
            for refused in ("FLUSHALL", "HGETALL shadowtime:{scoreboard}:state:r", "CONFIG GET *", "ACL LIST"):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    client.execute_command(*refused.split())
    assert (tmp_path / "appendonlydir").is_dir()


def test_victoria_metrics_takes_its_flags(tmp_path: Path) -> None:
    """An old one reads no password from a file: `file://…` is its password then."""
    require(VictoriaMetrics)
    block, port = services()["victoria-metrics"], free_port()
    given(tmp_path)
    here = {
        "-storageDataPath=/victoria-metrics-data": f"-storageDataPath={tmp_path}/data",
        "-httpListenAddr=:8428": f"-httpListenAddr=127.0.0.1:{port}",
        f"-promscrape.config={MOUNTED}/victoria-metrics/{SCRAPE}": (
            f"-promscrape.config={tmp_path}/victoria-metrics/{SCRAPE}"
        ),
    }
    flags = [here.get(flag, flag) for flag in block["command"]]
    assert set(here) < set(block["command"])
    with running(["victoria-metrics", *flags], VictoriaMetrics(tmp_path, port), tmp_path, {}):
        for path in ("api/v1/query?query=up", "api/v1/admin/tsdb/delete_series", "api/v1/import"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", b"", timeout=PATIENCE)


@pytest.mark.nightly
def test_kafka_takes_its_settings_and_everyone_his_rights_finding_08(tmp_path: Path) -> None:
    require(Kafka)
    block = services()["kafka"]
    environment = block["environment"]
    made = given(tmp_path)
    told = {
        name.removeprefix("KAFKA_").lower().replace("___", "-").replace("_", "."): value
        for name, value in environment.items()
        if name.startswith("KAFKA_") and name != "KAFKA_HEAP_OPTS"
    }
    port, controller, local = free_port(), free_port(), free_port()
    text = "".join(f"{name}={value}\n" for name, value in told.items())
    for there, here in {
        "kafka:9092": f"127.0.0.1:{port}",
        "//:9092": f"//127.0.0.1:{port}",
        ":9093": f":{controller}",
        ":9094": f":{local}",
        "/var/lib/kafka/data": str(tmp_path / "data"),
        str(MOUNTED): str(tmp_path),
    }.items():
        assert there in text
        text = text.replace(there, here)
    server = Kafka(tmp_path, port)
    properties = tmp_path / "broker.properties"
    properties.write_text(text)
    (tmp_path / "tmp").mkdir()
    java = server.java_command()
    cluster = f"--cluster-id={environment['CLUSTER_ID']}"
    formatted = [*java, "kafka.tools.StorageTool", "format", cluster, "--config", str(properties)]
    subprocess.run(formatted, check=True, capture_output=True, timeout=PATIENCE)
    with running([*java, "kafka.Kafka", str(properties)], server, tmp_path, {}, apply_cluster_event(local)):
        *bash, script = block["healthcheck"]["test"][1:]
        wait_until(lambda: healthy([*bash, script.replace("/9094", f"/{local}")], {}), "the check of health fails")
        assert not healthy([*bash, script.replace("/9094", f"/{free_port()}")], {})
        admin: dict[str, Any] = {
            "kafka_bootstrap": f"127.0.0.1:{local}",
            "kafka_sasl_mechanism": "PLAIN",
            "kafka_username": "admin",
        }
        secure: dict[str, Any] = {"kafka_security_protocol": "SASL_PLAINTEXT", "connect_seconds": PATIENCE}
        users = [role for role in roles(FLOW) if KAFKA in role.servers and not role.administers]
        passwords = {role.name: made[role.secret(KAFKA)] for role in users}
        settings = Settings(**admin, **secure, kafka_password=made["kafka-admin"])
        for _ in range(2):  # again changes nothing
            asyncio.run(prepare(settings, passwords, kafka_acls(users)))
        asyncio.run(try_rights({"kafka_bootstrap": f"127.0.0.1:{port}", **secure}, passwords))


async def try_rights(told: dict[str, Any], passwords: dict[str, str]) -> None:
    """The replayer writes jobs, a subscriber reads them, neither does what the other does, nobody else enters."""

    def settings(user: str, password: str | None = None) -> Settings:
        return Settings(**told, kafka_username=user, kafka_password=password or passwords[user])

    producer = bus.producer(settings("replayer"))
    await producer.start()
    try:
        await producer.send_and_wait("jobs", b"{}", partition=0)
        with pytest.raises(TopicAuthorizationFailedError):
            await producer.send_and_wait("decisions", b"{}", partition=0)
    finally:
        await producer.stop()
    assert len([record async for record in read_log(settings("subscriber"), "jobs", 0)]) == 1
    for user, password in (("replayer", "guess"), ("nobody", "guess")):
        with pytest.raises(BusError, match="cannot be used"):
            await topic_admin.prepare_topics(settings(user, password))


def test_kafka_takes_sessions_as_short_as_the_workers(tmp_path: Path) -> None:
    """Workers ask for 6 s; the broker's own lower limit is 6 s, and tests use less."""
    assert int(services()["kafka"]["environment"]["KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS"]) <= 6_000
    assert Settings().max_message_bytes <= 1_048_588  # Kafka's message.max.bytes by default


def healthy(command: list[str], environment: dict[str, str]) -> bool:
    kept = {"PATH": "/usr/bin:/bin"} | environment
    return subprocess.run(command, env=kept, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
