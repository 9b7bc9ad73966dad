"""What every server must keep, whatever it is."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers import SERVERS, Kafka, Redis, Server, ServerError, VictoriaMetrics
from shadowtime.stack.servers.ports import HOST, free_port
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.server_control import pause, resume


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.name)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    require(request.param)
    made: Server = request.param(tmp_path_factory.mktemp(request.param.name))
    with made:
        yield made


@pytest.fixture
def small(tmp_path: Path) -> Redis:
    require(Redis)
    return Redis(tmp_path)


def test_a_started_server_answers_on_loopback_at_its_address(server: Server) -> None:
    assert server.running
    assert server.answers()
    assert server.address == f"127.0.0.1:{server.port}"
    listening = Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]
    local = [fields[1].split(":") for fields in map(str.split, listening) if fields[3] == "0A"]
    assert [host for host, port in local if int(port, 16) == server.port] == ["0100007F"]


def test_a_paused_server_holds_its_port_but_does_not_answer(server: Server) -> None:
    pause(server)
    try:
        assert server.running
        assert not server.answers()
    finally:
        resume(server)
    wait_for_an_answer(server)


def test_a_second_start_is_refused(server: Server) -> None:
    with pytest.raises(ServerError, match=f"{server.address} is running already"):
        server.start()
    assert server.answers()


def test_a_killed_server_is_gone_and_comes_back_at_the_same_address(server: Server) -> None:
    address, pid = server.address, server.pid
    server.kill()
    assert not server.running
    assert not server.answers()
    assert not Path(f"/proc/{pid}").exists()
    server.start()
    assert server.answers()
    assert (server.address, server.pid) != (address, pid)
    assert server.address == address


def test_a_server_that_a_thread_restarts_outlives_the_thread(small: Redis) -> None:
    def restart() -> None:
        small.stop()
        small.start()

    with small:
        restarting = threading.Thread(target=restart)
        restarting.start()
        restarting.join()
        time.sleep(0.2)
        assert small.answers()


def test_stop_and_kill_leave_a_server_that_is_not_running_alone(small: Redis) -> None:
    small.stop()
    small.kill()
    with pytest.raises(ServerError, match=f"redis at {small.address} is not running"):
        pause(small)


def test_stop_ends_a_paused_server(small: Redis) -> None:
    small.start()
    pause(small)
    small.stop()
    assert not small.running


def test_stop_kills_what_does_not_obey(small: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    small.start()
    small.stop_seconds = 0.2  # type: ignore[misc]  # no test has twenty seconds
    monkeypatch.setattr(signal, "SIGCONT", 0)  # so that the paused server stays deaf
    pause(small)
    with pytest.raises(ServerError, match=r"did not stop within 0\.2 s and was killed"):
        small.stop()
    assert not small.running


def test_a_server_dies_with_its_parent(tmp_path: Path) -> None:
    require(Redis)
    program = (
        "import sys, time; from pathlib import Path; from shadowtime.stack.servers import Redis\n"
        "server = Redis(Path(sys.argv[1])); server.start(); print(server.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(pid, 0)
        parent.kill()
    deadline = time.monotonic() + PATIENCE
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} outlives its parent"
        time.sleep(0.02)


@pytest.mark.parametrize("kind", SERVERS, ids=lambda kind: kind.name)
def test_a_taken_port_is_named(kind: type[Server], tmp_path: Path) -> None:
    require(kind)
    with socket.create_server((HOST, free_port())) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=f"{kind.name} cannot listen on 127.0.0.1:{port}: another process"):
            kind(tmp_path, port).start()


@pytest.mark.parametrize(
    ("kind", "missing"),
    [(Kafka, "needs Java 17 or later"), (Redis, "redis-server"), (VictoriaMetrics, "victoria-metrics")],
)
def test_a_missing_program_is_named(
    kind: type[Server], missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    reason = kind.available()
    assert reason is not None
    assert missing in reason
    with pytest.raises(ServerError, match=missing):
        kind(tmp_path).start()


@pytest.mark.parametrize(
    ("made", "logged"),
    [
        (lambda folder: Kafka(folder, settings={"log.retention.ms": "soon"}), "log.retention.ms"),
        (lambda folder: Redis(folder, settings={"no-such-directive": 1}), "no-such-directive"),
        (lambda folder: VictoriaMetrics(folder, settings={"no-such-flag": 1}), "no-such-flag"),
    ],
    ids=["kafka", "redis", "victoria-metrics"],
)
def test_a_server_that_does_not_start_shows_the_end_of_its_log(
    made: Callable[[Path], Server], logged: str, tmp_path: Path
) -> None:
    server = made(tmp_path)
    require(type(server))
    with pytest.raises(ServerError, match=rf"(?s){server.name} at .*; the end of .*server\.log:.*{logged}"):
        server.start()
    assert not server.running


def test_a_server_that_never_answers_is_given_up_and_ended(small: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "start_seconds", 0.3)
    monkeypatch.setattr(Redis, "answers", lambda self: False)
    with pytest.raises(ServerError, match=r"does not answer after 0\.3 s"):
        small.start()
    assert not small.running


@pytest.mark.nightly
def test_the_fixtures_bring_up_one_server_each(tmp_path: Path) -> None:
    for kind in SERVERS:
        require(kind)
    test = tmp_path / "test_fixtures.py"
    test.write_text(
        "def test_fixtures(kafka, redis_server, victoria_metrics):\n"
        "    assert kafka.answers() and redis_server.answers() and victoria_metrics.answers()\n"
    )
    done = run_pytest(test, {})
    assert done.returncode == 0, done.stdout


def test_a_missing_server_skips_here_and_fails_in_ci(tmp_path: Path) -> None:
    test = tmp_path / "test_missing.py"
    test.write_text("def test_missing(redis_server):\n    pass\n")
    at_home = run_pytest(test, {"PATH": str(tmp_path)})
    assert "1 skipped" in at_home.stdout
    assert "redis needs redis-server, which is not on PATH" in at_home.stdout
    in_ci = run_pytest(test, {"PATH": str(tmp_path), "CI": "1"})
    assert in_ci.returncode == 1
    assert "CI needs every server: redis needs redis-server" in in_ci.stdout


def run_pytest(test: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    outer = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.support.real_servers",
        "-rs",
        "--rootdir",
        str(test.parent),
        str(test),
    ]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=outer | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def wait_for_an_answer(server: Server) -> None:
    deadline = time.monotonic() + PATIENCE
    while not server.answers():
        assert time.monotonic() < deadline


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
