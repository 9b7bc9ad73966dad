"""`python -m stack.install` tells what it cannot get and why, and leaves alone what is there."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from stack import install
from stack.kafka_server import POM, kafka_version
from stack.servers import SERVERS, Kafka, Redis
from tests.real_servers import require


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH but what a test puts there."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("SHADOWTIME_SERVERS", str(tmp_path / "servers"))
    return path


def test_what_is_there_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for server in SERVERS:
        require(server)
    assert install.main() == 0
    assert capsys.readouterr().out == "kafka: ready\nredis: ready\nvictoria-metrics: ready\n"


def test_what_cannot_be_had_is_named(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main() == 1
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "kafka: not available: java is not on PATH, and there is no apt-get to install default-jre-headless",
        "redis: not available: redis-server is not on PATH, and there is no apt-get to install redis-server",
        "victoria-metrics: not available: victoria-metrics is not on PATH, "
        "and there is no apt-get to install victoria-metrics",
    ]


def test_without_root_the_command_to_run_is_told(
    bare: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(bare, "apt-get", "exit 0")
    program(bare, "sudo", "exit 1")
    assert install.main() == 1
    assert "takes root or sudo without a password: apt-get install redis-server\n" in capsys.readouterr().err


def test_a_package_is_installed_after_an_update_if_need_be(
    bare: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(install, "PACKAGES", {Redis: {"redis-server": "no-such-service"}})
    lists, server = tmp_path / "lists", bare / "redis-server"
    program(bare, "sudo", '[ "$1" = -n ] && shift && exec "$@"')
    program(bare, "true", "exit 0")
    chmod = shutil.which("chmod", path="/bin:/usr/bin")
    update = f'[ "$1" = update ] && : > {lists} && exit'
    program(bare, "apt-get", f"{update}\n[ -e {lists} ] && : > {server} && {chmod} +x {server}")
    install.install(Redis)
    assert Redis.available() is None


def test_a_maven_that_fails_is_quoted_and_leaves_nothing(
    bare: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program(bare, "java", """echo 'openjdk version "17.0.1"' >&2""")
    program(bare, "mvn", "echo 'no route to the repository'; exit 1")
    assert install.main() == 1
    assert "ended with status 1:\nno route to the repository\n" in capsys.readouterr().err
    assert list((tmp_path / "servers").iterdir()) == []


def test_jars_of_an_older_pom_are_replaced(bare: Path, tmp_path: Path) -> None:
    old = tmp_path / "servers" / f"kafka-{kafka_version()}"
    old.mkdir(parents=True)
    (old / "old.jar").touch()
    (old / "pom.xml").write_text("<project/>")
    program(bare, "java", """echo 'openjdk version "17.0.1"' >&2""")
    mkdir = shutil.which("mkdir", path="/bin:/usr/bin")
    program(bare, "mvn", f'for last; do :; done; folder=${{last#*=}}; {mkdir} "$folder"; : > "$folder/new.jar"')
    install.install(Kafka)
    assert sorted(path.name for path in old.iterdir()) == ["new.jar", POM.name]


def test_a_java_that_is_too_old_is_named(bare: Path) -> None:
    program(bare, "java", """echo 'openjdk version "11.0.2"' >&2""")
    program(bare, "mvn", "exit 1")
    assert Kafka.available() == f"kafka needs Java 17 or later; {bare}/java is Java 11"
