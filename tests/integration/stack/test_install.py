"""`shadowtime stack install` tells what it cannot get and why, and leaves alone what is there."""

import os
import pty
import shutil
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack import install
from shadowtime.stack.servers.checksums import read_sums
from shadowtime.stack.servers.jars import SUMS, jar_folder, kafka_version
from shadowtime.stack.servers.servers import SERVERS, Kafka, Redis
from tests.support.real_servers import require


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH but what a test puts there, whose owner has said nothing of apt."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    for name in ("JAVA_HOME", "CI", "SHADOWTIME_APT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SHADOWTIME_SERVERS", str(tmp_path / "servers"))
    return path


@pytest.fixture
def apt(bare: Path) -> Path:
    """The file in which an apt-get that brings no package notes what it was called with."""
    called = bare.parent / "called"
    program(bare, "apt-get", f'echo "$*" >> {called}; exit 100')
    program(bare, "sudo", '[ "$1" = -n ] && shift && exec "$@"')
    program(bare, "true", "exit 0")
    return called


def test_what_is_there_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for server in SERVERS:
        require(server)
    assert install.main() == 0
    assert capsys.readouterr().out == "kafka: ready\nredis: ready\nvictoria-metrics: ready\n"


def test_what_cannot_be_had_is_named(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main() == 1
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "kafka: not available: java and mvn are not on PATH, "
        "and there is no apt-get to install default-jre-headless maven",
        "redis: not available: redis-server is not on PATH, and there is no apt-get to install redis-server",
        "victoria-metrics: not available: victoria-metrics is not on PATH, "
        "and there is no apt-get to install victoria-metrics",
    ]


def test_a_hub_that_cannot_be_had_is_named(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["jupyterhub"]) == 1
    assert (
        "jupyterhub: not available: node and npm are not on PATH, and there is no apt-get to install nodejs npm"
        in capsys.readouterr().err
    )
    reason = install.hub_missing()
    assert reason is not None
    assert "run shadowtime stack install jupyterhub" in reason
    assert not install.hub_folder().exists()


def test_another_lock_is_another_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = install.hub_folder()
    (tmp_path / "lock").write_text("other")
    monkeypatch.setattr(install, "HUB_LOCK", tmp_path / "lock")
    assert install.hub_folder() != before
    monkeypatch.setattr(install, "HUB_LOCK", tmp_path / "nowhere")
    assert "it is part of a checkout" in (install.hub_missing() or "")


def test_without_root_the_command_to_run_is_told(
    bare: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(bare, "apt-get", "exit 0")
    program(bare, "sudo", "exit 1")
    assert install.main(["--yes"]) == 1
    assert "needs root or sudo without a password: apt-get install redis-server\n" in capsys.readouterr().err


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
    install.install(Redis, True)
    assert Redis.available() is None


FORBIDDEN = ", and SHADOWTIME_APT=no forbids the installation: apt-get install redis-server"


@pytest.mark.parametrize(
    ("said", "arguments", "why"),
    [
        (
            {},
            [],
            "; apt-get install redis-server needs your consent: "
            "give --yes or SHADOWTIME_APT=yes, or run this in a terminal",
        ),
        ({"SHADOWTIME_APT": "no"}, ["--yes"], FORBIDDEN),
        ({"SHADOWTIME_APT": "no", "CI": "true"}, [], FORBIDDEN),
    ],
)
def test_finding_17_apt_is_not_used_where_nobody_allowed_it(
    apt: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    said: dict[str, str],
    arguments: list[str],
    why: str,
) -> None:
    monkeypatch.setattr(install, "PACKAGES", {Redis: install.PACKAGES[Redis]})
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert install.main(arguments) == 1
    assert capsys.readouterr().err == f"redis: not available: redis-server is not on PATH{why}\n"
    assert not apt.exists()


@pytest.mark.parametrize(
    ("said", "arguments"), [({}, ["--yes"]), ({"SHADOWTIME_APT": "yes"}, []), ({"CI": "true"}, [])]
)
def test_apt_is_used_where_it_is_allowed(
    apt: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, str], arguments: list[str]
) -> None:
    monkeypatch.setattr(install, "PACKAGES", {Redis: install.PACKAGES[Redis]})
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert install.main(arguments) == 1
    assert [line.split()[0] for line in apt.read_text().splitlines()] == ["install", "update"]


@pytest.mark.parametrize(("answer", "installs"), [("\n", False), ("n\n", False), ("y\n", True), ("\x04", False)])
def test_finding_17_a_terminal_is_asked_for_each_package_by_name(apt: Path, answer: str, installs: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "shadowtime.stack.install"]
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, answer.encode() * len(SERVERS))
        told = ""
        with suppress(OSError):  # the end of a terminal is an error
            while text := os.read(ours, 1000):
                told += text.decode()
    os.close(ours)
    assert process.returncode == 1
    for names in ("default-jre-headless maven", "redis-server", "victoria-metrics"):
        assert f"apt-get install {names}? [y/N] " in told
        assert (f"and you declined the installation: apt-get install {names}\r\n" in told) is not installs
    assert apt.exists() is installs


@pytest.mark.parametrize(
    ("said", "arguments", "told"),
    [
        (
            "",
            ["brwoser"],
            "shadowtime stack install: unknown argument 'brwoser'; "
            "known: --yes, compose, browser, registry, slurm, jupyterhub\n",
        ),
        ("maybe", [], "SHADOWTIME_APT: expected yes or no, found 'maybe'\n"),
    ],
)
def test_what_is_not_understood_is_said(
    bare: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.setenv("SHADOWTIME_APT", said)
    assert install.main(arguments) == 2
    assert capsys.readouterr().err == told


def test_a_maven_that_fails_is_quoted_and_leaves_nothing(
    bare: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program(bare, "java", """echo 'openjdk version "17.0.1"' >&2""")
    program(bare, "mvn", "echo 'no route to the repository'; exit 1")
    assert install.main() == 1
    assert "ended with status 1:\nno route to the repository\n" in capsys.readouterr().err
    assert list((tmp_path / "servers").iterdir()) == []


@pytest.fixture
def jars() -> Path:
    """The folder of this machine's jars; to be asked for before `bare`."""
    require(Kafka)
    return jar_folder()


def maven(bare: Path, jars: Path, afterwards: str = "") -> None:
    """Put a Java there, and a Maven that brings those jars, then does what is said in their folder."""
    program(bare, "java", """echo 'openjdk version "17.0.1"' >&2""")
    path = "PATH=/bin:/usr/bin"
    program(bare, "mvn", f'{path}; for last; do :; done; cp -r {jars} "${{last#*=}}"; cd "${{last#*=}}"; {afterwards}')


def test_other_jars_are_replaced(jars: Path, bare: Path) -> None:
    maven(bare, jars)
    folder = jar_folder()
    folder.mkdir(parents=True)
    (folder / "old.jar").touch()
    install.install(Kafka, None)
    assert Kafka.available() is None
    assert {path.name for path in folder.glob("*.jar")} == set(read_sums(SUMS))


def test_finding_17_jars_that_are_not_those_of_the_list_are_refused(
    jars: Path, bare: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    maven(bare, jars, f"rm slf4j-api-*.jar; echo >> kafka_2.13-{kafka_version()}.jar; touch more.JAR")
    monkeypatch.setattr(install, "PACKAGES", {Kafka: install.PACKAGES[Kafka]})
    assert install.main() == 1
    named = [line.partition(": SHA-256")[0] for line in capsys.readouterr().err.splitlines()]
    assert named == [
        f"kafka: not available: the jars that Maven fetched differ from {SUMS}:",
        f"kafka_2.13-{kafka_version()}.jar: changed",
        "more.JAR: additional",
        "slf4j-api-1.7.36.jar: missing",
    ]
    assert not jar_folder().exists()


def test_a_java_that_is_too_old_is_named(bare: Path) -> None:
    program(bare, "java", """echo 'openjdk version "11.0.2"' >&2""")
    program(bare, "mvn", "exit 1")
    assert Kafka.available() == f"kafka needs Java 17 or later; {bare}/java is Java 11 (set JAVA_HOME to a later one)"
