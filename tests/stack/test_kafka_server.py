"""A Kafka broker keeps its topics through a kill. The requests are written by hand."""

import socket
import struct
from pathlib import Path

import pytest

from stack.kafka_server import has_jars, jar_folder, kafka_version
from stack.servers import Kafka
from tests.patience import PATIENCE
from tests.real_servers import require

UNKNOWN_TOPIC = 3


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


def test_jars_of_another_pom_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHADOWTIME_SERVERS", str(tmp_path))
    folder = tmp_path / f"kafka-{kafka_version()}"
    assert jar_folder() == folder
    assert not has_jars(folder)
    folder.mkdir()
    (folder / "pom.xml").write_text("<project/>")
    assert not has_jars(folder)


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
