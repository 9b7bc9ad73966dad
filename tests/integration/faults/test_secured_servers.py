"""Kafka behind TLS and SASL, Redis behind TLS and a password: right credentials work, wrong ones are one clear line."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from shadowtime.services.follower.io.slurm import Waker
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.streaming.role_settings import format_env_file
from shadowtime.stack.servers.jars import jar_folder
from shadowtime.stack.servers.ports import HOST, free_port
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.embedded import embedded
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly

SECRET = "correct-horse"
WRONG = "battery-staple"


@dataclass(frozen=True)
class Secured:
    """Servers that let nobody in without a password, and the authority that signed their certificates."""

    kafka: Kafka
    redis: Redis
    settings: dict[str, str]


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


def certificates(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Make an authority and a certificate for this host; return the authority, the certificate and its key."""
    folder.mkdir()
    authority, authority_key = folder / "ca.pem", folder / "ca.key"
    certificate, key, request, extension = (folder / f"server.{end}" for end in ("pem", "key", "csr", "ext"))
    extension.write_text(f"subjectAltName=IP:{HOST}\n")
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    run(*new, "-x509", "-days", "2", "-subj", f"/CN={name}", "-keyout", authority_key, "-out", authority)
    run(*new, "-subj", f"/CN={HOST}", "-keyout", key, "-out", request)
    signed = ("-CA", authority, "-CAkey", authority_key, "-CAcreateserial", "-extfile", extension)
    run("openssl", "x509", "-req", "-days", "2", "-in", request, *signed, "-out", certificate)
    return authority, certificate, key


def kafka_settings(folder: Path, port: int, secured: int) -> dict[str, str | int]:
    """Return the settings of a broker with an open listener for its maker and one behind TLS and SASL."""
    _, certificate, key = certificates(folder / "kafka-certificates", "authority of Kafka")
    store = folder / "kafka.pem"
    store.write_bytes(key.read_bytes() + certificate.read_bytes())
    controller = free_port()
    login = "listener.name.secured"
    module = "org.apache.kafka.common.security"
    return {
        "listeners": f"BROKER://{HOST}:{port},CONTROLLER://{HOST}:{controller},SECURED://{HOST}:{secured}",
        "advertised.listeners": f"BROKER://{HOST}:{port},SECURED://{HOST}:{secured}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        f"{login}.ssl.keystore.type": "PEM",
        f"{login}.ssl.keystore.location": str(store),
        f"{login}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{login}.plain.sasl.jaas.config": f'{module}.plain.PlainLoginModule required user_watcher="{SECRET}";',
        f"{login}.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
    }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    require(Kafka)
    require(Redis)
    folder = tmp_path_factory.mktemp("secured")
    port, behind_sasl, behind_tls = free_port(), free_port(), free_port()
    authority, certificate, key = certificates(folder / "redis-certificates", "authority of Redis")
    tls: dict[str, str | int] = {"tls-port": behind_tls, "tls-cert-file": str(certificate), "tls-key-file": str(key)}
    tls |= {"tls-ca-cert-file": str(authority), "tls-auth-clients": "no"}
    kafka = Kafka(folder / "kafka", port, kafka_settings(folder, port, behind_sasl))
    with kafka, Redis(folder / "redis", password=SECRET, settings=tls) as redis:
        java = ("java", "-cp", f"{jar_folder()}/*", "kafka.admin.ConfigCommand", "--bootstrap-server", kafka.address)
        user = ("--alter", "--entity-type", "users", "--entity-name", "worker")
        run(*java, *user, "--add-config", f"SCRAM-SHA-512=[iterations=4096,password={SECRET}]")
        settings = {
            "kafka_bootstrap": f"{HOST}:{behind_sasl}",
            "kafka_security_protocol": "SASL_SSL",
            "kafka_ca_file": str(folder / "kafka-certificates" / "ca.pem"),
            "kafka_username": "worker",
            "kafka_password": SECRET,
            "redis_url": f"rediss://{HOST}:{behind_tls}/0",
            "redis_ca_file": str(authority),
            "redis_password": SECRET,
        }
        yield Secured(kafka, redis, settings)


def command(arguments: list[str], settings: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command with settings from the environment, where secrets belong."""
    environment = os.environ | {f"SHADOWTIME_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "shadowtime", *arguments],
        cwd=ROOT,
        env=environment | {"SHADOWTIME_WEB_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_whole_pipeline_behind_passwords_and_tls(secured: Secured, tmp_path: Path) -> None:
    arguments = ["--jobs", "30"]
    expected = embedded(*arguments)
    with Workers(secured.kafka, secured.redis, tmp_path, 1, typed=True, **secured.settings) as workers:
        workers.finish(workers.replay("secured", tmp_path / "kafka.jsonl", *arguments))
        assert (tmp_path / "kafka.jsonl").read_bytes() == expected, workers.logs()
        assert SECRET not in workers.logs()
    rebuilt = command(["rebuild", "scheduler"], secured.settings)
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert "run secured rebuilt up to sequence" in rebuilt.stderr
    plain = secured.settings | {"kafka_sasl_mechanism": "PLAIN", "kafka_username": "watcher"}
    watched = command(["watch", "decisions", "--beginning", "--count", "1"], plain)
    assert watched.returncode == 0, watched.stderr
    assert '"run":"secured"' in watched.stdout


@pytest.mark.parametrize("password", [SECRET, WRONG])
def test_a_waker_has_a_login_of_its_own(secured: Secured, tmp_path: Path, password: str) -> None:
    access = tmp_path / "slurm.env"
    access.write_text(format_env_file(secured.settings | {"kafka_password": password}))
    access.chmod(0o600)

    async def waited() -> float:
        async with AIOKafkaAdminClient(bootstrap_servers=secured.kafka.address) as admin:
            await admin.create_topics([NewTopic(f"slurm-{password}", 1, 1)])
        waker = Waker(f"{secured.settings['kafka_bootstrap']}/slurm-{password}", access)
        began = time.monotonic()
        async with AIOKafkaProducer(bootstrap_servers=secured.kafka.address) as producer:
            try:
                waiting = asyncio.create_task(waker.wait(PATIENCE if password == SECRET else 10))
                while not waiting.done():
                    await producer.send_and_wait(f"slurm-{password}", b"a job")
                    await asyncio.sleep(0.2)
                return time.monotonic() - began
            finally:
                await waker.close()

    seconds = asyncio.run(waited())
    assert seconds < PATIENCE if password == SECRET else seconds >= 10


WORKER = ["serve", "scheduler"]
WATCH = ["watch", "jobs"]
AS_WATCHER = {"kafka_username": "watcher", "kafka_sasl_mechanism": "PLAIN"}


@pytest.mark.parametrize(
    ("arguments", "other", "reason"),
    [
        (WORKER, {"kafka_password": WRONG}, "SaslAuthenticationFailed"),
        (WATCH, AS_WATCHER | {"kafka_password": WRONG}, "SaslAuthenticationFailed"),
        (WATCH, {"kafka_sasl_mechanism": "SCRAM-SHA-256"}, "UnsupportedSaslMechanism"),
        (WORKER, {"kafka_ca_file": "redis_ca_file"}, "CERTIFICATE_VERIFY_FAILED"),
    ],
    ids=["password", "plain password", "mechanism", "certificate"],
)
def test_kafka_refuses(secured: Secured, arguments: list[str], other: dict[str, str], reason: str) -> None:
    changed = {name: secured.settings.get(value, value) for name, value in other.items()}
    assert_refused(command(arguments, secured.settings | changed), reason)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"redis_password": WRONG}, "it rejects the user and the password of the settings"),
        ({"redis_ca_file": "kafka_ca_file"}, "CERTIFICATE_VERIFY_FAILED"),
    ],
    ids=["password", "certificate"],
)
def test_redis_refuses(secured: Secured, other: dict[str, str], reason: str) -> None:
    changed = {name: secured.settings.get(value, value) for name, value in other.items()}
    assert_refused(command(WORKER, secured.settings | changed), reason)


def assert_refused(ended: "subprocess.CompletedProcess[str]", reason: str) -> None:
    assert ended.returncode == 2, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ")
    assert reason in line
    assert SECRET not in ended.stdout + ended.stderr
    assert WRONG not in ended.stdout + ended.stderr
