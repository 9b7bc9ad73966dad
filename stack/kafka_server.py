"""Apache Kafka as one KRaft node: broker and controller in one process."""

import base64
import functools
import os
import re
import shutil
import socket
import struct
import subprocess
import uuid
from pathlib import Path

from stack.ports import HOST, free_port
from stack.server import Server, ServerError, Settings

SOURCE = Path(__file__).with_name("kafka")
POM = SOURCE / "pom.xml"
LOWEST_JAVA = 17
FORMAT_SECONDS = 60.0

# ApiVersions, the first request of every client: key 18, version 0, correlation id 1, no client id.
API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)


def kafka_version() -> str:
    """Return the version of Kafka that the stack runs, as its pom.xml pins it."""
    found = re.search(r"<kafka\.version>([^<]+)</kafka\.version>", POM.read_text())
    if found is None:
        raise ServerError(f"{POM} names no kafka.version")
    return found[1]


def jar_folder() -> Path:
    """Return where the broker's jars are kept: below SHADOWTIME_SERVERS, else `.servers` in the checkout."""
    servers = os.environ.get("SHADOWTIME_SERVERS") or SOURCE.parent.parent / ".servers"
    return Path(servers).resolve() / f"kafka-{kafka_version()}"


def has_jars(folder: Path) -> bool:
    """Return whether `folder` holds what the pom.xml asks for; a copy of it, added last, says so."""
    copied = folder / POM.name
    return copied.exists() and copied.read_bytes() == POM.read_bytes()


class Kafka(Server):
    """A Kafka broker; clients bootstrap from `address`.

    Parameters
    ----------
    folder
        Data, log and written configuration.
    port
        Where it listens on loopback; by default a port that is free now.
    settings
        Broker settings beside or instead of those below, such as `{"message.max.bytes": 1000}`.
    heap_megabytes
        Upper bound of the Java heap.
    """

    name = "kafka"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Settings | None = None,
        heap_megabytes: int = 512,
    ) -> None:
        super().__init__(folder, port)
        self.settings: Settings = settings or {}
        self.heap_megabytes = heap_megabytes
        self._controller_port = free_port()

    @classmethod
    def available(cls) -> str | None:
        """Return why Kafka cannot be had on this machine, or None if it can."""
        java = _java()
        if java is None:
            return f"kafka needs Java {LOWEST_JAVA} or later, and there is none (run python -m stack.install)"
        if (version := _java_version(java)) < LOWEST_JAVA:
            return f"kafka needs Java {LOWEST_JAVA} or later; {java} is Java {version}"
        if not has_jars(jar_folder()):
            return f"the jars of kafka {kafka_version()} are not in {jar_folder()} (run python -m stack.install)"
        return None

    def answers(self) -> bool:
        """Return whether the broker takes requests, which it does once the controller has let it serve."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1.0) as connection:
                connection.sendall(struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS)
                with connection.makefile("rb") as stream:
                    answer = stream.read(10)
        except OSError:
            return False
        return answer[4:] == struct.pack(">ih", 1, 0)  # our correlation id, no error

    def _ports(self) -> list[int]:
        return [self.port, self._controller_port]

    def _command(self) -> list[str]:
        written = self.folder / "broker.properties"
        written.write_text("".join(f"{name}={value}\n" for name, value in self._all_settings().items()))
        (self.folder / "tmp").mkdir(exist_ok=True)
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(written)
        return [*self._java_command(), "kafka.Kafka", str(written)]

    def _all_settings(self) -> dict[str, str | int]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{self._controller_port}",
            "listeners": f"BROKER://{self.address},CONTROLLER://{HOST}:{self._controller_port}",
            "advertised.listeners": f"BROKER://{self.address}",
            "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            # A killed broker may come back only after the session of its predecessor: 9 s by default.
            "broker.session.timeout.ms": 3_000,
            "broker.heartbeat.interval.ms": 250,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1_000,
            "offsets.topic.num.partitions": 4,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "log.cleaner.dedupe.buffer.size": 8 * 2**20,  # of the heap; 128 MiB by default
            **self.settings,
        }

    def _java_command(self) -> list[str]:
        return [
            _java() or "java",
            f"-Xmx{self.heap_megabytes}m",
            "-Djava.net.preferIPv4Stack=true",
            "-XX:+UseSerialGC",  # the smallest, and enough for this heap
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",  # compression libraries unpack there
            f"-Dlog4j2.configurationFile={SOURCE / 'log4j2.xml'}",
            "-cp",
            f"{jar_folder()}/*",
        ]

    def _format(self, written: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = [*self._java_command(), "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool"]
        command = [*tool, "format", f"--cluster-id={cluster}", "--config", str(written)]
        with self.log.open("ab") as log:
            try:
                done = subprocess.run(  # noqa: S603
                    command, stdout=log, stderr=subprocess.STDOUT, timeout=FORMAT_SECONDS, check=False
                )
            except subprocess.TimeoutExpired:
                raise self._error(f"has not formatted its data folder in {FORMAT_SECONDS:g} s") from None
        if done.returncode != 0:
            raise self._error(f"cannot format its data folder (status {done.returncode})")


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


@functools.cache
def _java_version(java: str) -> int:
    """Return the feature release of a Java, 17 for `openjdk version "17.0.15"`; 0 where it does not say."""
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r'version "(\d+)', told.stderr)
    return int(found[1]) if found else 0
