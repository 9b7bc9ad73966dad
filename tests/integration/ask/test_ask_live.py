"""Asked over real Redis while real workers work, are killed and start again: as the embedded run answers."""

import http.client
import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.ask.questions import Answer
from shadowtime.services.wait_bound.handler import WaitBounds
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.formatting import duration
from shadowtime.shared.messages.envelope import ClusterOpened, JobSubmitted
from shadowtime.shared.stages.stage import Stage
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.ask_server import ask_served
from tests.support.patience import PATIENCE
from tests.support.real_servers import require
from tests.support.small_logs import job, write_log
from tests.support.workers import Workers

JOBS = 300
STEP = 60
"""Seconds between two submissions."""

WAIT_BOUND = "bmbp:history=100"
JOB = {"processors": 2, "requested_time": 600, "queue": 1, "quantile": 0.8, "confidence": 0.9}


def small_log(folder: Path) -> Path:
    jobs = [
        job(number, STEP * number, processors=1 + number % 4, run_time=100, requested_time=200 + 100 * (number % 9))
        | {"wait_time": 7 * (number % 40), "queue_number": 1 + number % 2}
        for number in range(JOBS)
    ]
    return write_log(folder, *jobs, processors=32)


class Embedded:
    """The embedded run of the log; its answer at any sequence, ever later ones."""

    def __init__(self, log: Path) -> None:
        self.handlers: list[WaitBounds] = []
        workload = prepare(read_swf(log))
        wait_bound = canonical("wait-bound", WAIT_BOUND)
        plan = RunPlan("easy", workload.name, workload, configure("easy"), "recorded", wait_bound)
        stages = [
            Stage(each.name, each.reads, each.writes, self.open) if each.name == "wait_bound" else each
            for each in STAGES
        ]
        self.cluster = plan.cluster
        self.replay = EmbeddedReplay(plan.opened(), plan.source(), run="asked", stages=stages)

    def open(self, opened: ClusterOpened) -> WaitBounds:
        self.handlers.append(WaitBounds(opened))
        return self.handlers[-1]

    def answer(self, sequence: int) -> Answer:
        """Return what the run's own handler says of `JOB` after an event."""
        while self.replay.last is None or self.replay.last.sequence < sequence:
            self.replay.step()
        (handler,) = self.handlers
        asked = JobSubmitted(
            time=handler.time,
            job_number=0,
            requested_processors=int(JOB["processors"]),
            requested_time=int(JOB["requested_time"]),
            queue_number=int(JOB["queue"]),
        )
        bounds = handler.bounds_at(asked, JOB["quantile"], JOB["confidence"])
        return Answer(
            cluster=self.cluster,
            run="asked",
            sequence=sequence,
            time=handler.time,
            unix_start=handler.opened.unix_start,
            bounds=bounds,
            waiting=len(handler.jobs.waiting),
            ranges=handler.ranges_at(asked),
        )


def endpoint(redis: Redis, folder: Path) -> AbstractContextManager[tuple[int, "subprocess.Popen[bytes]"]]:
    """Run `ask --serve`; yield its port and its process."""
    return ask_served(folder, f"--redis-url={redis.url}")


def get(port: int, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, orjson.loads(response.read())
    finally:
        connection.close()


def by_http(port: int, cluster: str) -> Answer:
    status, said = get(port, f"/bound?{urlencode({'cluster': cluster, **JOB})}")
    assert status == 200, said
    return Answer.model_validate_json(orjson.dumps(said))


def by_command(redis: Redis, cluster: str, *more: str) -> "subprocess.CompletedProcess[str]":
    options = [f"--{name.replace('_', '-')}={value}" for name, value in JOB.items()]
    return subprocess.run(
        [sys.executable, "-m", "shadowtime", "ask", f"--cluster={cluster}", *options, *more],
        cwd=ROOT,
        env=os.environ | {"SHADOWTIME_REDIS_URL": redis.url},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.nightly
def test_asked_while_workers_work_and_die(tmp_path: Path) -> None:
    require(Redis)
    require(Kafka)
    log = small_log(tmp_path)
    embedded = Embedded(log)
    answers: list[Answer] = []
    with (
        Redis(tmp_path / "redis") as redis,
        Kafka(tmp_path / "kafka") as kafka,  # no other test's runs are on its topics
        Workers(kafka, redis, tmp_path, snapshot_every="150") as workers,
        endpoint(redis, tmp_path) as (port, server),
    ):
        status, said = get(port, f"/bound?{urlencode({'cluster': embedded.cluster, **JOB})}")
        assert (status, said["error"]) == (404, "cluster: stage wait_bound has no run yet")
        options = [str(log), "--mode", "recorded", "--wait-bound", WAIT_BOUND]
        replay = workers.replay("asked", tmp_path / "decisions.jsonl", *options, "--speed", str(JOBS * STEP / 20))
        workers.wait_for_decisions("asked")
        while len(answers) < 5 or answers[-1].time < 0.4 * JOBS * STEP:
            assert replay.poll() is None, workers.logs()
            answers.append(by_http(port, embedded.cluster))
            time.sleep(0.3)

        workers.signal("wait_bound-0", signal.SIGKILL)
        workers.processes["wait_bound-0"].wait()
        without = [by_http(port, embedded.cluster) for _ in range(2)]
        said_once = by_command(redis, embedded.cluster, "--json")
        assert without == [without[0], Answer.model_validate_json(said_once.stdout)], said_once.stderr
        answers += without

        workers.finish(replay)
        after = by_http(port, embedded.cluster)
        answers.append(after)
        table = by_command(redis, embedded.cluster)
        assert table.returncode == 0, table.stderr
        assert "ensemble" in table.stdout
        assert duration(max(each.bound or 0 for each in after.bounds)) in table.stdout

        redis.kill()
        status, said = get(port, f"/bound?{urlencode({'cluster': embedded.cluster, **JOB})}")
        assert (status, said["error"].partition(":")[0]) == (503, "Redis cannot be used")
        assert get(port, "/health")[0] == 503
        redis.start()
        assert by_http(port, embedded.cluster) == after
        assert get(port, "/health") == (200, {"healthy": True})

        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=PATIENCE) == 0
    assert len({answer.sequence for answer in answers}) >= 5, "the run stood still"
    for answer in answers:
        assert answer.model_copy(update={"outwaited": ()}) == embedded.answer(answer.sequence)
    assert {each.queue for each in after.bounds} == {None, 1}
    assert all(each.bound is not None for each in after.bounds), after
    assert embedded.replay.closed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_with_connections_open(redis_server: Redis, tmp_path: Path, number: signal.Signals) -> None:
    with endpoint(redis_server, tmp_path) as (port, server):
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE) for _ in range(5)]
        for connection in connections:
            connection.request("GET", "/health")
            assert connection.getresponse().read()
        server.send_signal(number)
        assert server.wait(timeout=PATIENCE) == 0
        for connection in connections:
            connection.close()


def test_what_is_not_http_and_a_port_in_use(redis_server: Redis, tmp_path: Path) -> None:
    with endpoint(redis_server, tmp_path) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.connect()
        connection.sock.sendall(b"\x00\xff nonsense\r\n\r\n")
        with suppress(ConnectionError):
            assert b"Traceback" not in connection.sock.recv(10_000)
        connection.close()
        command = [sys.executable, "-m", "shadowtime", "ask", "--serve", f"--port={port}"]
        ended = subprocess.run(
            [*command, f"--redis-url={redis_server.url}"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 2
        (line,) = ended.stderr.splitlines()
        assert line.startswith(f"error: cannot listen on 127.0.0.1:{port}: ")
