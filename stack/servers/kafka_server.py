"""Apache Kafka as one KRaft node: broker and controller in one process."""

import asyncio
import base64
import functools
import os
import re
import secrets
import shutil
import struct
import subprocess
import uuid
from pathlib import Path
from typing import Any

from shadowtime.shared.private_files import write_private
from shadowtime.stack.roles import ADMIN, KAFKA, kafka_acls
from shadowtime.stack.servers.access import Access, connect
from shadowtime.stack.servers.jars import SOURCE, SUMS, jar_faults, jar_folder, kafka_version
from shadowtime.stack.servers.ports import HOST, free_port
from shadowtime.stack.servers.server import OWNER_ONLY, Server, Settings, open_log

MIN_JAVA = 17
FORMAT_SECONDS = 150.0
MODULES = "org.apache.kafka.common.security"
MECHANISM = "SCRAM-SHA-512"
CONTROLLER = "controller"
"""User name of the broker at its own controller."""

# ApiVersions, the first request of every client: key 18, version 0, correlation id 1, no client id.
API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)


class Kafka(Server):
    """A Kafka broker. Clients bootstrap from `address`.

    Parameters
    ----------
    folder, port
        As in `Server`.
    settings
        Additional broker settings, such as `{"message.max.bytes": 1000}`. They override those below.
    access
        Users with passwords, and their rights after `grant`. Without it, every client may do everything.
    jars
        Folder with the jars of the broker; by default the one that `fetch_jars` fills.
    """

    name = "kafka"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        settings: Settings | None = None,
        access: Access | None = None,
        jars: Path | None = None,
    ) -> None:
        super().__init__(folder, port)
        self.access = access
        self.jars = jar_folder() if jars is None else jars
        self.controller_login: dict[str, Any] = {}
        """Credentials for the controller; empty if it asks for none."""
        self.settings: Settings = settings or {}
        self.controller_port = free_port()
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    @classmethod
    def available(cls) -> str | None:
        """Return the reason why Kafka is not available on this machine, or None if it is."""
        java = _java()
        if java is None:
            return f"kafka needs Java {MIN_JAVA} or later, and there is none (run shadowtime stack install)"
        if (version := _java_version(java)) < MIN_JAVA:
            return f"kafka needs Java {MIN_JAVA} or later; {java} is Java {version} (set JAVA_HOME to a later one)"
        if not jar_folder().is_dir():
            return f"the jars of kafka {kafka_version()} are not in {jar_folder()} (run shadowtime stack install)"
        if faults := jar_faults(jar_folder()):
            return "\n".join([f"{jar_folder()} differs from {SUMS} (run shadowtime stack install):", *faults])
        return None

    def answers(self) -> bool:
        """Return whether the broker answers requests. It does so once its controller has admitted it."""
        try:
            with connect(self.port, self.access) as connection:
                connection.sendall(struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS)
                with connection.makefile("rb") as stream:
                    answer = stream.read(10)
        except OSError:
            return False

        return answer[4:] == struct.pack(">ih", 1, 0)  # our correlation id, no error

    def settings_for(self, role: str) -> dict[str, str]:
        """Return the settings with which a process of a role reaches this broker."""
        settings = {"kafka_bootstrap": self.address, "kafka_security_protocol": self._protocol()}
        if self.access is None:
            return settings
        if self.access.tls:
            settings["kafka_ca_file"] = str(self.access.authority)
        secret = self.access.secret_file(role, KAFKA)
        return settings | {
            "kafka_sasl_mechanism": MECHANISM,
            "kafka_username": role,
            "kafka_password_file": str(secret),
        }

    def grant(self) -> None:
        """Set the users of the running broker and their rights. Raise `ServerError` if that fails.

        Without `access`, nothing happens. The connection goes to the controller. Its one user gets a new password at
        each start of the broker.
        """
        if self.access is None:
            return
        from shadowtime.stack.servers.kafka_access import grant  # here, because a plain installation has no aiokafka

        acls, passwords = kafka_acls(self.access.roles), self.access.passwords(KAFKA)
        asyncio.run(grant(HOST, self.controller_port, self.controller_login, passwords, acls))

    def _protocol(self) -> str:
        if self.access is None:
            return "PLAINTEXT"
        return "SASL_SSL" if self.access.tls else "SASL_PLAINTEXT"

    def _access_settings(self, access: Access) -> dict[str, str | int]:
        """Return the settings for passwords. The broker itself logs in as the administrator."""
        controller = secrets.token_urlsafe(32)
        self.controller_login = {
            "security_protocol": self._protocol(),
            "ssl_context": access.context(),
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": CONTROLLER,
            "sasl_plain_password": controller,
        }
        admin = f'username="{ADMIN}" password="{access.secret(ADMIN, KAFKA)}"'
        known = f'username="{CONTROLLER}" password="{controller}" user_{CONTROLLER}="{controller}"'
        scram, plain = f"{MODULES}.scram.ScramLoginModule required", f"{MODULES}.plain.PlainLoginModule required"
        settings: dict[str, str | int] = {
            "listener.security.protocol.map": f"BROKER:{self._protocol()},CONTROLLER:{self._protocol()}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": f"User:{ADMIN};User:{CONTROLLER}",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.broker.sasl.enabled.mechanisms": MECHANISM,
            "listener.name.broker.scram-sha-512.sasl.jaas.config": f"{scram} {admin};",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": f"{plain} {known};",
        }
        if access.tls:
            store = self.folder / "server.pem"
            write_private(store, access.key.read_text() + access.certificate.read_text())
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": store.name,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": os.path.relpath(access.authority, self.folder),
            }

        return settings

    def _ports(self) -> list[int]:
        return [self.port, self.controller_port]

    def _command(self) -> list[str]:
        written = self.folder / "broker.properties"
        write_private(written, "".join(f"{name}={value}\n" for name, value in self._all_settings().items()))
        (self.folder / "tmp").mkdir(exist_ok=True)
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(written)
        return [*self.java_command(), "kafka.Kafka", written.name]

    def _all_settings(self) -> dict[str, str | int]:
        """Return the settings of the broker. Paths are relative to the folder in which the broker runs.

        An absolute path could contain a comma, which separates two folders, or a backslash, which escapes.
        """
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": f"BROKER://{self.address},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"BROKER://{self.address}",
            "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "data",
            "auto.create.topics.enable": "false",
            # A killed broker can rejoin only after the session of its predecessor has expired: 9 s by default.
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
            **({} if self.access is None else self._access_settings(self.access)),
            **self.settings,
        }

    def java_command(self) -> list[str]:
        """Return the command line of Java with the classes of Kafka, without the name of the main class."""
        return [
            _java() or "java",
            "-Xmx512m",
            "-Djava.net.preferIPv4Stack=true",
            "-XX:+UseSerialGC",  # the smallest, and enough for this heap
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",  # compression libraries unpack there
            f"-Dlog4j2.configurationFile={SOURCE / 'log4j2.xml'}",
            "-cp",
            f"{self.jars}/*",
        ]

    def _format(self, written: Path) -> None:
        tool = [*self.java_command(), "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool"]
        command = [*tool, "format", f"--cluster-id={self.cluster_id}", "--config", written.name]
        with open_log(self.log) as log:
            try:
                done = subprocess.run(  # noqa: S603
                    command,
                    cwd=self.folder,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=FORMAT_SECONDS,
                    check=False,
                    umask=OWNER_ONLY,
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
    """Return the feature release of a Java, such as 17 for `openjdk version "17.0.15"`; 0 if it is unknown."""
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    match = re.search(r'version "(\d+)', version.stderr)
    return int(match[1]) if match else 0
