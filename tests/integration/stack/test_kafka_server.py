"""A Kafka broker keeps its topics through a kill. The requests are written by hand."""

import hashlib
import os
import shutil
import socket
import struct
from contextlib import ExitStack
from pathlib import Path

import pytest

from shadowtime.shared.stages import WRITTEN_BY
from shadowtime.stack.roles import roles
from shadowtime.stack.servers import Access, Kafka, ServerError
from shadowtime.stack.servers.checksums import read_sums
from shadowtime.stack.servers.jars import SUMS, jar_folder, kafka_version
from tests.support.patience import PATIENCE
from tests.support.real_servers import require

UNKNOWN_TOPIC = 3


@pytest.mark.nightly
def test_topics_and_their_partitions_survive_a_kill(tmp_path: Path) -> None:
    require(Kafka)
    with Kafka(tmp_path, settings={"message.max.bytes": 1000}) as broker:
        assert create_topic(broker, "jobs", partitions=3) == 0
        broker.kill()
        broker.start()
        assert partitions_of(broker, "jobs") == 3
        assert partitions_of(broker, "nobody-made-this") == 0  # and asking does not make it
    assert "message.max.bytes=1000\n" in (tmp_path / "broker.properties").read_text()
    with Kafka(tmp_path) as successor:  # another object, other ports, the same data
        assert partitions_of(successor, "jobs") == 3


@pytest.mark.nightly
def test_the_folder_may_have_any_name(tmp_path: Path) -> None:
    """A comma had split it: the data were in the first part, outside the folder, and the broker did not start."""
    require(Kafka)
    folder = tmp_path / "a b,c\\d é#"
    access = Access(folder / "access", roles(tuple(WRITTEN_BY)), tls=True)
    access.prepare()
    with Kafka(folder / "kafka", access=access) as broker:
        assert broker.answers()
    assert (folder / "kafka" / "data" / "meta.properties").exists()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def resident(pid: int) -> int:
    """Return the bytes of memory that a process uses."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.nightly
def test_connections_that_announce_much_and_send_little_stop_nobody(tmp_path: Path) -> None:
    """Kafka reserves what is announced, within its heap of 512 MB."""
    require(Kafka)
    with Kafka(tmp_path) as broker, ExitStack() as ends:
        assert create_topic(broker, "jobs", partitions=3) == 0
        for _ in range(800):
            client = ends.enter_context(socket.create_connection(("127.0.0.1", broker.port), timeout=PATIENCE))
            client.sendall(struct.pack(">i", 524_000) + b"x" * 100)
        assert partitions_of(broker, "jobs") == 3
        assert create_topic(broker, "more", partitions=3) == 0
        assert resident(broker.pid) < 800_000_000


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test with the jars of this machine."""
    require(Kafka)
    had = jar_folder()
    monkeypatch.setenv("SHADOWTIME_SERVERS", str(tmp_path))
    folder = jar_folder()
    assert folder == tmp_path / f"kafka-{kafka_version()}"
    shutil.copytree(had, folder)
    assert Kafka.available() is None
    return folder


def test_finding_17_a_broker_starts_from_no_jars_but_those_of_the_list(copied: Path, tmp_path: Path) -> None:
    (copied / "slf4j-api-1.7.36.jar").unlink()
    (copied / "more.jar").touch()
    jar = copied / f"kafka_2.13-{kafka_version()}.jar"
    sums, is_now = read_sums(SUMS), jar.stat()
    jar.write_bytes(bytes(jar.stat().st_size))
    os.utime(jar, ns=(is_now.st_atime_ns, is_now.st_mtime_ns))  # a change that hides its time
    with pytest.raises(ServerError) as refused:
        Kafka(tmp_path / "broker").start()
    zeros = hashlib.sha256(jar.read_bytes()).hexdigest()
    assert str(refused.value).splitlines() == [
        f"{copied} differs from {SUMS} (run shadowtime stack install):",
        f"{jar.name}: changed: SHA-256 {zeros}, not {sums[jar.name]}",
        "more.jar: additional",
        "slf4j-api-1.7.36.jar: missing",
    ]


def request(broker: Kafka, key: int, version: int, body: bytes) -> bytes:
    message = struct.pack(">hhih", key, version, 1, -1) + body
    with socket.create_connection(("127.0.0.1", broker.port), timeout=PATIENCE) as connection:
        connection.sendall(struct.pack(">i", len(message)) + message)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            return stream.read(size)[4:]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def create_topic(broker: Kafka, name: str, partitions: int) -> int:
    """Return the error code of CreateTopics, version 2."""
    topic = text(name) + struct.pack(">ihii", partitions, 1, 0, 0)
    answer = request(broker, 19, 2, struct.pack(">i", 1) + topic + struct.pack(">ib", 10_000, 0))
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + len(text(name)))
    return int(error)


def partitions_of(broker: Kafka, name: str) -> int:
    """Return how many partitions Metadata, version 4, tells of a topic."""
    answer = request(broker, 3, 4, struct.pack(">i", 1) + text(name) + struct.pack(">b", 1))
    error = struct.unpack_from(">h", answer, answer.index(text(name)) - 2)[0]
    assert error in (0, UNKNOWN_TOPIC)
    (count,) = struct.unpack_from(">i", answer, answer.index(text(name)) + len(text(name)) + 1)
    return int(count)
