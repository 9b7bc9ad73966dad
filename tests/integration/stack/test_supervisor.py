"""The stack comes up, comes back whatever is killed, and leaves nothing behind. All on real servers."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import BusError
from shadowtime.shared.metric_names import FOLLOW_JOB, SCRAPE_JOB
from shadowtime.shared.streaming.kafka.topic_admin import prepare_topics
from shadowtime.shared.streaming.role_settings import FOLLOW_PORT
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.run_cache import memory_limit
from shadowtime.stack.local.command_line import culprit, tell_little_memory
from shadowtime.stack.local.plan import FOLLOWERS, METRICS, StackPlan
from shadowtime.stack.local.state import Process, StackState, read_state, supervisor_of
from shadowtime.stack.roles import ADMIN, REDIS
from shadowtime.stack.servers import SERVERS, Kafka, ServerError, ports
from shadowtime.stack.servers.ports import HOST, free_port, is_free
from shadowtime.stack.servers.worker import Worker
from tests.support.local_stack import FLOW, new_plan, options, stack
from tests.support.patience import PATIENCE
from tests.support.processes import alive, descendants, wait_until
from tests.support.real_servers import require

NAMES = ["kafka", "redis", "victoria-metrics", *FLOW, METRICS, "live"]


def told(plan: StackPlan) -> StackState:
    state = read_state(Path(plan.folder))
    assert state is not None
    return state


def process(plan: StackPlan, name: str) -> Process:
    return next(each for each in told(plan).processes if each.name == name)


def pid_of(plan: StackPlan, name: str) -> int:
    pid = process(plan, name).pid
    assert pid is not None
    return pid


def kill_and_wait(plan: StackPlan, name: str) -> None:
    """Kill a process and return when the stack has another one, healthy."""
    before = process(plan, name)
    os.kill(pid_of(plan, name), signal.SIGKILL)
    wait_until(
        lambda: process(plan, name).restarts > before.restarts and process(plan, name).healthy, f"{name} stays away"
    )
    assert process(plan, name).pid != before.pid


def ask_redis(plan: StackPlan, command: str) -> bytes:
    login = f"AUTH {ADMIN} {plan.access.secret(ADMIN, REDIS)}"
    with socket.create_connection((HOST, plan.redis_port), timeout=PATIENCE) as connection:
        connection.sendall(login.encode() + b"\r\n")
        assert connection.recv(4096) == b"+OK\r\n"
        connection.sendall(command.encode() + b"\r\n")
        return connection.recv(4096)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackPlan]:
    for server in SERVERS:
        require(server)
    plan = new_plan(tmp_path_factory.mktemp("stack"))
    done = stack("up", *options(plan))
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "healthy after" in done.stdout
        assert all(name in done.stdout for name in NAMES)
        assert f"export SHADOWTIME_ACCESS={plan.folder}/access" in done.stdout
        yield plan
    finally:
        stack("down", "--folder", plan.folder)


def test_status_shows_every_process_in_the_order_of_the_flow(running: StackPlan) -> None:
    done = stack("status", "--folder", running.folder)
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == NAMES
    assert {row[-1] for row in rows} == {"healthy"}


def test_finding_16_nobody_else_reads_the_folder_and_redis_asks_for_a_password(running: StackPlan) -> None:
    folder = Path(running.folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path for path in folder.rglob("*") if path.stat().st_mode & 0o077} == set()
    with socket.create_connection((HOST, running.redis_port), timeout=PATIENCE) as connection:
        connection.sendall(b"DBSIZE\r\n")
        assert connection.recv(4096).startswith(b"-NOAUTH")


def command_of(plan: StackPlan, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does: nothing told but where the stack is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHADOWTIME_")}
    return subprocess.run(
        [sys.executable, "-m", "shadowtime", *arguments],
        cwd=ROOT,
        env=environment | {"SHADOWTIME_ACCESS": str(plan.access.folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_commands_find_the_running_stack(running: StackPlan) -> None:
    asked = command_of(running, "ask", "--cluster", "none", "--processors", "1", "--requested-time", "1")
    assert "has no run yet" in asked.stderr, asked.stderr


@pytest.mark.nightly
def test_finding_08_a_secure_stack_comes_up_by_one_command_and_asks_who_one_is(tmp_path: Path) -> None:
    for server in SERVERS:
        require(server)
    plan = new_plan(tmp_path / "stack")
    done = stack("up", *options(plan), "--tls")
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        made = StackPlan.read(Path(plan.folder))
        assert (made.secure, made.tls) == (True, True)
        done = command_of(plan, "replay", "--transport", "kafka", "--jobs", "5", "--json", "-")
        assert done.returncode == 0, done.stderr
        nobody = Settings(kafka_bootstrap=f"{HOST}:{plan.kafka_port}", connect_seconds=5)
        with pytest.raises(BusError):
            asyncio.run(prepare_topics(nobody))
    finally:
        stack("down", "--folder", plan.folder)


def test_a_second_up_says_so(running: StackPlan) -> None:
    before = descendants(told(running).supervisor)
    done = stack("up", *options(running))
    assert done.returncode == 0
    assert f"the stack runs already (supervisor {told(running).supervisor})" in done.stdout
    assert descendants(told(running).supervisor) >= before


def test_a_taken_port_is_named_with_the_remedy(running: StackPlan, tmp_path: Path) -> None:
    done = stack("up", *options(running)[2:], "--folder", str(tmp_path))
    assert done.returncode == 2
    assert f"kafka cannot listen on 127.0.0.1:{running.kafka_port}: another process does" in done.stderr
    assert "--kafka-port PORT" in done.stderr
    assert "Traceback" not in done.stderr


def scraped(plan: StackPlan, job: str, label: str) -> set[str]:
    """Return who answers the scrapes of a job, by a label."""
    connection = http.client.HTTPConnection(HOST, plan.victoria_metrics_port, timeout=PATIENCE)
    with closing(connection):
        connection.request("GET", "/api/v1/targets?state=active")
        targets = json.loads(connection.getresponse().read())["data"]["activeTargets"]
    labels = [each["labels"] for each in targets if each["health"] == "up"]
    return {each[label] for each in labels if each["job"] == job}


def test_every_worker_is_scraped(running: StackPlan) -> None:
    wait_until(lambda: scraped(running, SCRAPE_JOB, "worker") == {*FLOW, METRICS}, "a worker is not scraped")


def test_a_follower_is_scraped_and_nobody_complains_where_there_is_none(running: StackPlan, tmp_path: Path) -> None:
    port = next(each for each in range(FOLLOW_PORT, FOLLOW_PORT - FOLLOWERS, -1) if is_free(each))
    (tmp_path / "pools.toml").write_text('[[pool]]\nname = "batch"\nprocessors = 16\npartitions = ["batch"]\n')
    place = ["--from", str(tmp_path), "--pools", str(tmp_path / "pools.toml"), f"--web-port={port}"]
    command = [sys.executable, "-m", "shadowtime", "follow", "lines", "--cluster", "beside", *place]
    access = {"SHADOWTIME_ACCESS": f"{running.folder}/access"}
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | access) as follower:
        try:
            wait_until(lambda: f"{HOST}:{port}" in scraped(running, FOLLOW_JOB, "instance"), "it is not scraped")
        finally:
            follower.terminate()
        assert follower.wait(PATIENCE) == 0
    log = (Path(running.folder) / "victoria-metrics" / "server.log").read_text()
    assert "cannot scrape" not in log


def test_a_killed_worker_comes_back(running: StackPlan) -> None:
    kill_and_wait(running, "wait_bound")


def test_a_killed_redis_comes_back_with_its_data(running: StackPlan) -> None:
    assert ask_redis(running, "SET position 41") == b"+OK\r\n"
    kill_and_wait(running, "redis")
    assert ask_redis(running, "GET position") == b"$2\r\n41\r\n"


def test_down_under_load_leaves_no_process(running: StackPlan) -> None:
    kafka = f"kafka-bootstrap=127.0.0.1:{running.kafka_port}"
    command = [sys.executable, "-m", "shadowtime", "replay", "--transport", "kafka", "--set", kafka]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as replay:
        try:
            state_before = ask_redis(running, "DBSIZE")
            wait_until(lambda: ask_redis(running, "DBSIZE") != state_before, "the replay does not begin")
            everything = descendants(told(running).supervisor)
            assert len(everything) == 1 + 2 * len(NAMES)  # each with its guard
            done = stack("down", "--folder", running.folder)
        finally:
            replay.kill()
    assert done.returncode == 0, done.stderr
    assert "ended in" in done.stdout
    assert alive(everything) == set()
    assert supervisor_of(Path(running.folder)) is None
    assert not list(running.access.folder.glob("*.env")), "commands would look for a stack that has ended"
    assert running.access.secret(ADMIN, REDIS), "secrets stay with the data"


SLOW_TO_END = """
import signal, sys, time
from pathlib import Path
from shadowtime.stack.local.state import hold_lock

ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
with hold_lock(Path(sys.argv[1])):
    print("runs", flush=True)
    while not ended:
        time.sleep(0.01)
time.sleep(1)
"""
"""A supervisor whose lock is free a second before it has ended."""


def test_down_returns_when_the_supervisor_has_ended_not_when_its_lock_is_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLOW_TO_END, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"runs\n"
        done = stack("down", "--folder", str(tmp_path))
        assert alive({supervisor.pid}) == set()
    assert (done.returncode, supervisor.returncode) == (0, 0), done.stderr


def test_down_and_status_say_when_nothing_runs(tmp_path: Path) -> None:
    down, status = stack("down", "--folder", str(tmp_path)), stack("status", "--folder", str(tmp_path))
    assert (down.returncode, status.returncode) == (0, 1)
    assert f"nothing runs in {tmp_path}" in down.stdout
    assert "shadowtime stack up" in status.stdout


def test_a_killed_supervisor_takes_everything_with_it(tmp_path: Path) -> None:
    for server in SERVERS:
        require(server)
    plan = new_plan(tmp_path, FLOW[:1])
    plan.write()
    with subprocess.Popen(
        [sys.executable, "-m", "shadowtime.stack.local.supervisor", plan.folder], cwd=ROOT
    ) as supervisor:
        try:
            wait_until(lambda: (state := read_state(tmp_path)) is not None and state.healthy, "it does not come up")
            everything = descendants(supervisor.pid)
            assert len(everything) == 1 + 2 * 6  # servers, worker, what writes results, live page, each with its guard
        finally:
            supervisor.kill()
    wait_until(lambda: not alive(everything), "a process outlives its supervisor")
    assert supervisor_of(tmp_path) is None


def test_two_servers_cannot_share_a_port() -> None:
    for server in SERVERS:
        require(server)
    with pytest.raises(ServerError, match=r"kafka and redis cannot both listen on 127\.0\.0\.1:7000"):
        StackPlan("", FLOW, kafka_port=7000, redis_port=7000).require()
    with pytest.raises(ServerError, match="victoria-metrics and scoreboard cannot both listen on"):
        StackPlan("", FLOW, web_port=8424).require()
    StackPlan("", FLOW, web_port=6077).require()  # workers leave the live page its port


def test_who_does_not_become_healthy_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("error: no such topic\n")
    healthy = Process("kafka", "127.0.0.1:1", 1, 0, True, "", "")
    failing = Process("scheduler", "127.0.0.1:2", None, 4, False, "ended with status 2", str(tmp_path / "log"))
    said = culprit(StackState(7, 2, (healthy, failing)))
    assert said.startswith("scheduler at 127.0.0.1:2 does not become healthy: ended with status 2; the end of ")
    assert said.endswith("error: no such topic")


def test_workers_take_settings_from_the_environment_but_not_where_the_servers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADOWTIME_KAFKA_SECURITY_PROTOCOL", "SSL")
    monkeypatch.setenv("SHADOWTIME_SNAPSHOT_EVERY", "10")
    worker = Worker("scheduler", "scheduler", tmp_path / "access", tmp_path, 4)
    environment = worker.environment()
    assert "SHADOWTIME_KAFKA_SECURITY_PROTOCOL" not in environment
    assert environment["SHADOWTIME_SNAPSHOT_EVERY"] == "10"
    assert environment["SHADOWTIME_ACCESS"] == str(tmp_path / "access")


def test_the_default_ports_are_those_of_the_settings() -> None:
    plan, settings = StackPlan("", ()), Settings()
    assert settings.kafka_bootstrap == f"{HOST}:{plan.kafka_port}"
    assert settings.redis_url == f"redis://{HOST}:{plan.redis_port}/0"
    assert settings.web_port == plan.web_port
    taken = {worker.port for worker in StackPlan("", FLOW, workers=8).make_workers()}
    assert taken.isdisjoint(range(FOLLOW_PORT, FOLLOW_PORT - FOLLOWERS, -1))  # however many workers there are
    assert settings.victoria_metrics_url == f"http://{HOST}:{plan.victoria_metrics_port}"


def test_workers_of_a_stack_share_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHADOWTIME_MEMORY_MB", raising=False)
    workers = StackPlan("", FLOW, workers=3).make_workers()
    assert workers[-1].name == METRICS
    shares = {int(worker.environment()["SHADOWTIME_MEMORY_MB"]) for worker in workers}
    assert shares == {int(memory_limit() / (len(workers) - 1) / 1e6)}
    monkeypatch.setenv("SHADOWTIME_MEMORY_MB", "700")
    assert workers[0].environment()["SHADOWTIME_MEMORY_MB"] == "700"


@pytest.mark.parametrize(("megabytes", "told"), [(512, "may use 102 MB"), (5 * 512, "")])
def test_a_stack_with_little_memory_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], megabytes: int, told: str
) -> None:
    """With 512 MB for all workers, every honest run with a predictor was refused, and nothing had said so."""
    monkeypatch.delenv("SHADOWTIME_MEMORY_MB", raising=False)
    monkeypatch.setattr("shadowtime.stack.servers.worker.memory_limit", lambda: megabytes * 1e6)
    tell_little_memory(StackPlan("", FLOW))
    printed = capsys.readouterr().out
    assert (told in printed) if told else not printed
    monkeypatch.setenv("SHADOWTIME_MEMORY_MB", "700")
    tell_little_memory(StackPlan("", FLOW))
    assert not capsys.readouterr().out


def test_no_server_takes_a_port_of_the_stack_that_is_still_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's controller had the port of a worker, which could not start then."""
    first = free_port(len(FLOW) + 6)
    monkeypatch.setattr(ports, "RESERVED", set())
    monkeypatch.setenv(ports.PORTS, f"{first}-{first + len(FLOW) + 5}")
    plan = StackPlan("", FLOW, 1, first, first + 1, first + 2, first + 3, first + len(FLOW) + 4)
    kafka = plan.make_servers()[0]
    assert isinstance(kafka, Kafka)
    assert kafka.controller_port == first + len(FLOW) + 5
