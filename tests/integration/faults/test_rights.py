"""Who may do what, tried: every role at real servers, at what it may do and at what it may not."""

import asyncio
import base64
import gc
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import ApiVersionRequest
from aiokafka.protocol.metadata import MetadataRequest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import BusError
from shadowtime.shared.stages.topics import DEAD_LETTERS, FLOW
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.role_settings import VARIABLE
from shadowtime.stack.roles import (
    ADMIN,
    ASK,
    ASKED,
    FOLLOW,
    HEALTH,
    KAFKA,
    LIVE,
    METRICS,
    REDIS,
    REPLAYER,
    SHADOW,
    SHOWN,
    SUBSCRIBER,
    VICTORIA_METRICS,
    roles,
    secret_names,
)
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.victoria_metrics import USER
from tests.support.embedded import embedded
from tests.support.guarded import FLOW as STAGES
from tests.support.guarded import Guarded, guarded
from tests.support.patience import PATIENCE
from tests.support.processes import descendants, wait_until
from tests.support.workers import Workers

TOPICS = (*FLOW, DEAD_LETTERS)
IN_KAFKA = [role.name for role in roles(STAGES) if KAFKA in role.servers]
IN_REDIS = [role.name for role in roles(STAGES) if REDIS in role.servers]
ALL_BUT_ADMIN = [name for name in IN_KAFKA if name != ADMIN]

# The same table as in stack/roles.py, written down by hand: a slip there shall not go unseen.
WRITES = {
    ADMIN: set(TOPICS),
    REPLAYER: {"jobs"},
    FOLLOW: {"jobs"},
    SHADOW: {"jobs"},
    "runtime_distribution": {"runtime-distributions", "dead-letters"},
    "walltime_adjustment": {"walltime-adjustments", "dead-letters"},
    "wait_bound": {"wait-bounds", "dead-letters"},
    "scheduler": {"decisions", "dead-letters"},
    "scoreboard": {"scores", "dead-letters"},
    METRICS: set(),
    LIVE: set(),
    SUBSCRIBER: set(),
}
READS = {
    ADMIN: set(TOPICS),
    REPLAYER: {"jobs", "decisions", "scores"},
    FOLLOW: {"jobs"},
    SHADOW: {"jobs", "decisions"},
    **{stage: set(arrow) for stage, arrow in zip(STAGES, pairwise(FLOW), strict=True)},
    METRICS: {"scores", "decisions"},
    LIVE: set(TOPICS),
    SUBSCRIBER: set(TOPICS),
}
GROUPS = {name: {f"shadowtime-{name}"} for name in (*STAGES, METRICS)} | {SUBSCRIBER: {"subscriber-of-mine"}}


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""aiokafka leaves the connection of a login that was refused to the garbage collector, which comes when it likes."""


pytestmark = pytest.mark.nightly  # ten minutes; in `make test` a secure stack comes up in stack/test_supervisor.py


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("guarded")) as running:
        yield running


def allowed(work: Callable[[], Awaitable[Any]]) -> bool:
    """Return whether Kafka lets us; whatever else goes wrong is an error."""

    async def tried() -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                await work()
        except KafkaError as error:
            if "Authorization" in type(error).__name__:
                return False
            raise
        return True

    return asyncio.run(tried())


@pytest.mark.parametrize("role", IN_KAFKA)
def test_finding_08_a_role_publishes_to_its_own_topics_only(servers: Guarded, role: str) -> None:
    async def publish(topic: str) -> None:
        producer = bus.producer(servers.settings(role))
        try:
            await producer.start()
            await producer.send_and_wait(topic, b"x", b"rights", 0)
        finally:
            await producer.stop()

    assert {topic for topic in TOPICS if allowed(lambda topic=topic: publish(topic))} == WRITES[role]  # type: ignore[misc]


@pytest.mark.parametrize("role", ALL_BUT_ADMIN)
def test_nobody_begins_a_transaction(servers: Guarded, role: str) -> None:
    """Records of an open transaction would keep readers of committed records waiting."""

    async def begin() -> None:
        producer = AIOKafkaProducer(**bus.connection(servers.settings(role)), transactional_id="of-mine")
        try:
            await producer.start()
            await producer.begin_transaction()
        finally:
            await producer.stop()

    assert not allowed(begin)


@pytest.mark.parametrize("role", IN_KAFKA)
def test_finding_08_a_role_reads_its_own_topics_only(servers: Guarded, role: str) -> None:
    async def read(topic: str) -> None:
        consumer = bus.reader(servers.settings(role))
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek_to_beginning()
            await consumer.getmany(timeout_ms=500)
        finally:
            await consumer.stop()

    assert {topic for topic in TOPICS if allowed(lambda topic=topic: read(topic))} == READS[role]  # type: ignore[misc]


@pytest.mark.parametrize("role", ALL_BUT_ADMIN)
def test_finding_08_nobody_joins_the_group_of_another(servers: Guarded, role: str) -> None:
    """Or its offsets could be moved, and its partitions taken."""

    async def commit(group: str) -> None:
        consumer = AIOKafkaConsumer(**bus.connection(servers.settings(role)), group_id=group, enable_auto_commit=False)
        await consumer.start()
        try:
            place = TopicPartition(min(READS[role]), 0)
            consumer.assign([place])
            await consumer.commit({place: 0})
        finally:
            await consumer.stop()

    groups = sorted({group for found in GROUPS.values() for group in found} | {"any-other"})
    found = {group for group in groups if allowed(lambda group=group: commit(group))}  # type: ignore[misc]
    assert found == GROUPS.get(role, set())


@pytest.mark.parametrize("role", ALL_BUT_ADMIN)
def test_finding_08_nobody_but_the_administrator_makes_or_deletes_topics(servers: Guarded, role: str) -> None:
    async def refusals() -> list[int]:
        admin = AIOKafkaAdminClient(**bus.connection(servers.settings(role)))
        await admin.start()
        try:
            made = await admin.create_topics([NewTopic("mine", 1, 1)])
            deleted = await admin.delete_topics(["jobs"])
            return [code for _, code, *_ in made.topic_errors] + [code for _, code, *_ in deleted.topic_error_codes]
        finally:
            await admin.close()

    assert asyncio.run(refusals()) == [29, 29]  # TOPIC_AUTHORIZATION_FAILED


def test_a_role_that_may_not_create_topics_says_so_in_a_line(servers: Guarded) -> None:
    settings = servers.settings("scheduler").model_copy(update={"connect_seconds": 20.0})
    assert asyncio.run(topic_admin.prepare_topics(settings)) == settings.partitions

    async def delete() -> None:
        admin = AIOKafkaAdminClient(**bus.connection(servers.settings(ADMIN)))
        await admin.start()
        await admin.delete_topics(["dead-letters"])
        while "dead-letters" in await admin.list_topics():
            await asyncio.sleep(0.1)
        await admin.close()

    asyncio.run(delete())
    said = r"user 'scheduler' may neither see nor create topic dead-letters; .* shadowtime topics"
    with pytest.raises(BusError, match=said):
        asyncio.run(topic_admin.prepare_topics(settings))
    assert run(servers, "-m", "shadowtime", "topics").returncode == 0
    assert asyncio.run(topic_admin.prepare_topics(settings)) == settings.partitions


GUESSED = {"sasl_plain_username": "scheduler", "sasl_plain_password": "guessed"}


@pytest.mark.parametrize(
    "login",
    [{}, GUESSED | {"sasl_mechanism": "SCRAM-SHA-512"}, GUESSED | {"sasl_mechanism": "PLAIN"}],
    ids=["no password", "a wrong one", "another mechanism"],
)
@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_finding_08_kafka_lets_nobody_in_without_a_password(
    servers: Guarded, login: dict[str, str], listener: str
) -> None:
    port = servers.kafka.port if listener == "broker" else servers.kafka.controller_port
    protocol = {"security_protocol": "SASL_SSL" if login else "SSL", "ssl_context": servers.plan.access.context()}

    async def enter() -> None:
        connection = await create_conn("127.0.0.1", port, **protocol, **login)
        try:
            await connection.send(ApiVersionRequest())  # what versions there are, Kafka tells everyone
            await connection.send(MetadataRequest([]))
        finally:
            await connection.close()

    with pytest.raises(KafkaError):
        asyncio.run(asyncio.wait_for(enter(), PATIENCE))


def client(servers: Guarded, role: str) -> redis.Redis:
    settings = servers.settings(role)
    assert settings.redis_password is not None
    return redis.Redis.from_url(
        settings.redis_url,
        username=settings.redis_username,
        password=settings.redis_password.get_secret_value(),
        ssl_ca_certs=str(settings.redis_ca_file),
    )


DANGEROUS = (
    *("FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET dir", "CONFIG SET dir /tmp", "DEBUG SLEEP 0", "SHUTDOWN NOSAVE"),
    *("SAVE", "BGREWRITEAOF", "REPLICAOF 127.0.0.1 1", "MONITOR", "ACL LIST", "ACL SETUSER x on nopass +@all"),
    *("CLIENT KILL TYPE normal", "CLIENT LIST", "CLIENT PAUSE 1", "SWAPDB 0 1", "MODULE LIST", "SLOWLOG GET"),
    *("SCRIPT FLUSH", "SCRIPT KILL", "FUNCTION FLUSH", "RANDOMKEY", "DBSIZE", "PUBLISH x y", "SUBSCRIBE x", "INFO"),
    *("LATENCY RESET", "SORT x", "MIGRATE 127.0.0.1 1 x 0 1", "RESTORE x 0 x", "OBJECT ENCODING x", "SYNC"),
)


@pytest.mark.parametrize("role", [name for name in IN_REDIS if name != ADMIN])
def test_finding_08_no_role_has_a_dangerous_command_of_redis(servers: Guarded, role: str) -> None:
    permitted = set()
    for command in DANGEROUS:
        with client(servers, role) as connected:
            try:
                connected.execute_command(*command.split())
            except redis.exceptions.ResponseError as error:
                if isinstance(error, redis.exceptions.NoPermissionError) or "not allowed" in str(error):
                    continue
            permitted.add(command)
    assert permitted == set()


@pytest.mark.parametrize("role", IN_REDIS)
def test_finding_08_a_role_touches_its_own_keys_only(servers: Guarded, role: str) -> None:
    def may(*command: str) -> bool:
        try:
            connected.execute_command(*command)
        except redis.exceptions.NoPermissionError:
            return False
        except redis.exceptions.ResponseError as error:  # a script's own refusal
            if "permission" in str(error) or "can't run this command" in str(error) or "can't access" in str(error):
                return False
            raise
        return True

    with client(servers, role) as connected:
        keys = {stage: f"shadowtime:{{{stage}}}:state:rights" for stage in (*STAGES, FOLLOW, SHADOW, "preflight")}
        written = {stage for stage, key in keys.items() if may("HSET", key, "sequence", "1")}
        deleted = {stage for stage, key in keys.items() if may("DEL", key)}
        read = {stage for stage, key in keys.items() if may("HGETALL", key)}
        scripted = {stage for stage, key in keys.items() if may("EVAL", "return redis.call('DEL', KEYS[1])", "1", key)}
        hidden = {stage for stage, key in keys.items() if may("EVAL", f"return redis.call('DEL', '{key}')", "0")}
    own = set(keys) if role == ADMIN else {role} & {*STAGES, FOLLOW, SHADOW}
    assert written == deleted == scripted == hidden == own
    assert read == own | set({ASK: ASKED, LIVE: SHOWN}.get(role, ()))


def test_finding_16_redis_lets_nobody_in_without_a_name(servers: Guarded) -> None:
    for given in ({}, {"password": "guessed"}, {"username": "scheduler", "password": ""}):
        with (
            redis.Redis.from_url(servers.redis.url, ssl_ca_certs=str(servers.plan.access.authority), **given) as nobody,
            pytest.raises((redis.exceptions.AuthenticationError, redis.exceptions.ResponseError)),
        ):
            nobody.ping()


SAMPLE = b'{"metric":{"__name__":"shadowtime_fake"},"values":[1],"timestamps":[1700000000000]}\n'
DELETE = "api/v1/admin/tsdb/delete_series?match[]=shadowtime_fake"


def status(servers: Guarded, path: str, body: bytes | None = None, *, password: str | None = None) -> int:
    headers = {}
    if password is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
    request = urllib.request.Request(f"{servers.store.url}/{path}", body, headers)
    trusted = ssl.create_default_context(cafile=servers.plan.access.authority)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE, context=trusted) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_finding_08_samples_are_written_read_and_deleted_with_keys_only(servers: Guarded) -> None:
    access = servers.plan.access
    key, delete = access.secret(METRICS, VICTORIA_METRICS), access.secret(ADMIN, VICTORIA_METRICS)
    query = "api/v1/query?query=shadowtime_fake"
    for password in (None, "guessed", delete):
        assert status(servers, "api/v1/import", SAMPLE, password=password) == 401
        assert status(servers, "write", b"fake value=1", password=password) == 401
        assert status(servers, "api/v1/import/prometheus", b"fake 1\n", password=password) == 401
        assert status(servers, query, password=password) == 401
        assert status(servers, "api/v1/export?match[]=shadowtime_fake", password=password) == 401
        assert status(servers, DELETE, f"authKey={delete}".encode(), password=password) == 401
        assert status(servers, "snapshot/create", password=password) in (400, 401)
    assert status(servers, "api/v1/import", SAMPLE, password=key) == 204
    assert status(servers, query, password=key) == 200
    for guess in (None, b"authKey=guessed"):  # no real key: the server logs what it refuses
        assert status(servers, DELETE, guess, password=key) >= 400
    for path in ("snapshot/create", "internal/force_merge", "internal/force_flush", "flags", "config"):
        assert status(servers, path, password=key) >= 400
    assert status(servers, DELETE, f"authKey={delete}".encode(), password=key) == 204
    assert status(servers, "health") == 200


SUBSCRIBE = """
import asyncio
from shadowtime.shared.streaming.settings import read_settings
from shadowtime.shared.streaming.kafka.topic_follower import subscribe
async def main():
    async for messages in subscribe(read_settings(role="subscriber"), "decisions", beginning=True):
        for message in messages:
            if b'"starts":[{' in message.value:
                return print("a start")
asyncio.run(main())
"""


def as_user(servers: Guarded) -> dict[str, str]:
    """Return the environment of a user: nothing told but where the stack is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHADOWTIME_")}
    return environment | {VARIABLE: str(servers.folder)}


def asked_on_the_live_page(servers: Guarded, log: Path) -> dict[str, int]:
    """Return with which status the live page, as its role, answers what it asks of Redis."""
    port = free_port()
    command = [sys.executable, "-m", "shadowtime", "live", f"--port={port}"]
    questions = ("advice?cluster=bundled&run=guarded&processors=4&requested_time=60", "twin?cluster=bundled")
    with log.open("wb") as shown, subprocess.Popen(command, cwd=ROOT, env=as_user(servers), stderr=shown) as page:
        try:
            wait_until(lambda: f":{port}/" in log.read_text(), "the live page does not listen")
            return {each.partition("?")[0]: answered(f"http://127.0.0.1:{port}/ask/{each}") for each in questions}
        finally:
            page.terminate()


def answered(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def run(servers: Guarded, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a user does."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=as_user(servers),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def secrets(servers: Guarded) -> list[bytes]:
    found = [path.read_bytes().strip() for path in (servers.folder / "secrets").iterdir()]
    assert len(set(found)) == len(secret_names(servers.plan.access.roles))
    assert all(len(each) >= 32 for each in found)
    return [*found, str(servers.kafka.controller_login["sasl_plain_password"]).encode()]


def test_the_whole_pipeline_as_its_roles_and_no_secret_is_shown(servers: Guarded, tmp_path: Path) -> None:
    """Five stages and a replay under SASL, ACLs and TLS; then every command that a user has, without a step of his."""
    arguments = ["--jobs", "80", "--wait-bound", "bmbp"]
    expected = embedded(*arguments)
    shown: list[bytes] = []
    access = str(servers.folder)
    with Workers(servers.kafka, servers.redis, tmp_path, typed=True, access=access) as workers:
        replay = workers.replay("guarded", tmp_path / "kafka.jsonl", *arguments)
        workers.wait_for_decisions("guarded")
        shown += [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid())]
        workers.finish(replay)
        assert (tmp_path / "kafka.jsonl").read_bytes() == expected, workers.logs()
    assert any(b"kafka.Kafka" in line for line in shown)
    assert any(b"victoria-metrics" in line for line in shown)
    for arguments, told in (
        (["-m", "shadowtime", "rebuild", "scheduler", "--run", "guarded"], "run guarded rebuilt up to sequence"),
        (
            ["-m", "shadowtime", "watch", "decisions", "--beginning", "--count", "1", "--run", "guarded"],
            '"run":"guarded"',
        ),
        (
            ["-m", "shadowtime", "ask", "--cluster", "bundled", "--processors", "4", "--requested-time", "60"],
            "cluster bundled, run guarded",
        ),
        (["-c", SUBSCRIBE], "a start"),
        (["-m", "shadowtime", "settings"], "SHADOWTIME_KAFKA_PASSWORD = "),
    ):
        done = run(servers, *arguments)
        assert done.returncode == 0, done.stderr
        assert told in done.stdout + done.stderr
        shown += [done.stdout.encode(), done.stderr.encode()]
    assert asked_on_the_live_page(servers, tmp_path / "live.log") == {"advice": 200, "twin": 404}
    logs = [*tmp_path.glob("*.log"), *Path(servers.plan.folder).glob("*/server.log")]
    assert len(logs) > 8
    shown += [path.read_bytes() for path in logs]
    for secret in secrets(servers):
        assert not any(secret in text for text in shown)


def test_servers_listen_on_the_loopback_only(servers: Guarded) -> None:
    ports = {servers.kafka.port, servers.kafka.controller_port, servers.redis.port, servers.store.port}
    rows = [row.split() for table in ("tcp", "tcp6") for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    listening = {tuple(row[1].split(":")) for row in rows if row[3] == "0A"}
    assert {(host, int(port, 16)) for host, port in listening if int(port, 16) in ports} == {
        ("0100007F", port) for port in ports
    }


def test_finding_16_nobody_else_can_read_what_the_servers_write(servers: Guarded) -> None:
    for server in (servers.kafka, servers.redis, servers.store):
        assert server.folder.stat().st_mode & 0o077 == 0
    whole = [servers.folder, *servers.folder.rglob("*")]
    assert {path.name for path in whole if path.stat().st_mode & 0o077} == set()
    written = [path for path in Path(servers.plan.folder).rglob("*") if path.is_file() and path.name != "scrape.json"]
    assert len(written) > 100
    assert {path for path in written if path.stat().st_mode & 0o077} == set()


def test_a_password_that_is_made_anew_counts_after_the_next_start(servers: Guarded) -> None:
    old = servers.settings(LIVE)
    servers.plan.access.secret_file(LIVE, KAFKA).unlink()
    servers.plan.access.prepare()
    servers.kafka.grant()
    assert asyncio.run(topic_admin.prepare_topics(servers.settings(LIVE))) == old.partitions
    with pytest.raises(BusError, match="SaslAuthenticationFailed"):
        asyncio.run(topic_admin.prepare_topics(old))


def test_every_role_is_tried() -> None:
    assert set(WRITES) == set(READS) == set(IN_KAFKA)
    assert set(IN_REDIS) == {ADMIN, ASK, FOLLOW, HEALTH, LIVE, SHADOW, *STAGES}
