"""From topic `scores` to a real VictoriaMetrics: the same series, whatever is killed meanwhile; and Grafana Live."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.services.catalogue import configure
from shadowtime.services.processes.metrics.grafana_live import live_lines
from shadowtime.services.processes.metrics.writer import import_lines
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.decisions import Kill
from shadowtime.shared.messages.envelope import Decided, Envelope, JobSubmitted, SchedulingPoint
from shadowtime.shared.messages.samples import Sample
from shadowtime.shared.stages.topics import DECISIONS, SCORES
from shadowtime.shared.streaming.kafka import clients as bus
from shadowtime.shared.streaming.kafka import topic_admin
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.ports import HOST, free_port
from shadowtime.stack.servers.servers import Kafka, VictoriaMetrics
from tests.support.forked import Forked
from tests.support.metric_store import alike, ask, exported
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until
from tests.support.real_servers import require
from tests.support.server_control import reset_rollup_cache

HOSTILE = 'x",policy="y"} or vector(1) #\n<script>alert(1)</script>\\ `$(reboot)`'


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """A broker of its own: the process reads all that was ever written."""
    require(Kafka)
    with Kafka(tmp_path / "kafka") as server:
        yield server


def envelopes(run: str, jobs: int, every: int) -> list[Envelope]:
    """Return what the scoreboard tells of a replay."""
    workload = prepare(read_swf(BUNDLED), limit=jobs)
    plan = RunPlan("made", "bundled", workload, configure("easy"), sample_every=every)
    told: list[Envelope] = []
    plan.replay([told.append]).run_to_end()
    return [envelope.model_copy(update={"run": run}) for envelope in told]


def publish(kafka: Kafka, topic: str, values: Sequence[bytes]) -> None:
    async def work() -> None:
        settings = Settings(kafka_bootstrap=kafka.address)
        await topic_admin.prepare_topics(settings)
        producer = bus.producer(settings)
        await producer.start()
        for delivery in [await producer.send(topic, value, b"r", 0) for value in values]:
            await delivery
        await producer.stop()

    asyncio.run(work())


def expected(told: Sequence[Envelope]) -> dict[str, list[tuple[int, float]]]:
    """Return the series that these envelopes make."""
    lines, _ = import_lines(told)
    rows = [json.loads(line) for line in lines.splitlines()]
    return {
        json.dumps(row["metric"], sort_keys=True): sorted(zip(row["timestamps"], row["values"], strict=True))
        for row in rows
    }


class Process:
    """`shadowtime serve metrics` as a process that a test may kill."""

    def __init__(self, kafka: Kafka, store: VictoriaMetrics, folder: Path, **settings: str) -> None:
        given = {"kafka_bootstrap": kafka.address, "victoria_metrics_url": store.url, "web_port": "0", **settings}
        environment = {**os.environ, **{f"SHADOWTIME_{name.upper()}": value for name, value in given.items()}}
        self.log = folder / "metrics.log"
        self.process = Forked(["serve", "metrics"], environment, self.log)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


@pytest.mark.nightly
@pytest.mark.parametrize("away", [3, 60])
def test_samples_arrive_once_whoever_is_killed(kafka: Kafka, tmp_path: Path, away: int) -> None:
    require(VictoriaMetrics)
    told = envelopes("r", jobs=60, every=600)
    values = [envelope.to_bytes() for envelope in told]
    third = len(values) // 3
    with VictoriaMetrics(tmp_path / "store") as store:
        publish(kafka, SCORES, [b"rubbish", *values[:third]])
        with Process(kafka, store, tmp_path):
            wait_until(lambda: alike(exported(store), expected(told[:third])), "the first third is not written")
        publish(kafka, SCORES, values[third : 2 * third])
        with Process(kafka, store, tmp_path):  # killed before it stored a position: it begins anew
            wait_until(lambda: alike(exported(store), expected(told[: 2 * third])), "the second third is not written")
            store.stop()
            publish(kafka, SCORES, [*values[2 * third :], *values[-5:]])  # with duplicates
            time.sleep(away)
            store.start()
            wait_until(lambda: alike(exported(store), expected(told)), "what came meanwhile is not written")


@pytest.mark.nightly
def test_what_a_killed_server_had_not_saved_is_written_again(kafka: Kafka, tmp_path: Path) -> None:
    """The server acknowledged the samples, and then lost its memory while there was nothing more to write."""
    require(VictoriaMetrics)
    told = envelopes("r", jobs=40, every=600)
    with (
        VictoriaMetrics(tmp_path / "store") as store,
        Process(kafka, store, tmp_path, web_port=str(free_port())) as process,
    ):
        publish(kafka, SCORES, [envelope.to_bytes() for envelope in told])
        wait_until(lambda: b"has restarted" in process.log.read_bytes() or written(store), "nothing is written")
        store.kill()
        store.start()
        wait_until(lambda: alike(exported(store), expected(told)), "samples are lost")


def written(store: VictoriaMetrics) -> bool:
    """Return whether the server has taken samples, be they in its memory only."""
    with urllib.request.urlopen(f"{store.url}/metrics", timeout=PATIENCE) as answer:
        found = [line.split() for line in answer.read().decode().splitlines() if "vm_rows_inserted_total" in line]
    return any(float(value) > 0 for _, value in found)


def test_hostile_names_are_names_and_nothing_else(tmp_path: Path) -> None:
    require(VictoriaMetrics)
    figures = (("shadowtime_queued_jobs", (HOSTILE,), 3.0), ("shadowtime_no_such_metric", (), 1.0))
    sample = Sample(time=1_704_067_200, cluster=HOSTILE, policy=HOSTILE, figures=figures)
    envelope = Envelope(run=HOSTILE, sequence=1, event=SchedulingPoint(time=1), samples=(sample,))
    lines, count = import_lines([envelope])
    assert count == 1
    with VictoriaMetrics(tmp_path / "store") as store:
        request = urllib.request.Request(f"{store.url}/api/v1/import", data=lines, method="POST")
        urllib.request.urlopen(request, timeout=PATIENCE).close()
        (series,) = map(json.loads, exported(store, '{__name__!=""}'))
        assert set(series) == {"__name__", "cluster", "experiment", "policy", "run", "queue"}
        assert series["experiment"] == series["run"]
        assert series["cluster"] == HOSTILE  # JSON keeps it; the scoreboard has made it harmless before
        shown, _, digest = series["run"].rpartition(" ")
        assert shown == "x_,policy=_y__ or vector(1) #__script_alert(1)_/script__ __(reboot)_"
        assert len(digest) == 8  # it tells the run from others that look like it
        reset_rollup_cache(store)
        query = f'shadowtime_queued_jobs{{run="{series["run"]}"}}'
        assert len(ask(store, "query", query=query, time=1_704_067_260)["result"]) == 1


@pytest.mark.parametrize("server", ["victoria-metrics", "grafana"])
def test_a_password_in_a_url_is_refused_and_not_shown(server: str) -> None:
    command = [sys.executable, "-m", "shadowtime", "serve", "metrics", f"--{server}-url=http://me:hidden@127.0.0.1:1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert f"use the setting {server}-password" in ended.stderr
    assert "hidden" not in ended.stderr


def test_a_kafka_that_is_away_is_one_line(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "shadowtime",
        "serve",
        "metrics",
        "--kafka-bootstrap=127.0.0.1:1",
        "--connect-seconds=1",
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert "Kafka at 127.0.0.1:1 cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr


class Grafana(ThreadingHTTPServer):
    """Takes lines for Grafana Live, and says what it is told to say."""

    def __init__(self) -> None:
        super().__init__((HOST, free_port()), Taker)
        self.lines: list[str] = []
        self.status = 200
        self.asked = 0


class Taker(BaseHTTPRequestHandler):
    server: Grafana

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked += 1
        known = self.path == "/api/live/push/shadowtime" and self.headers["Authorization"] == "Bearer glsa_1"
        if known and self.server.status == 200:
            self.server.lines += body.splitlines()
        self.send_response(self.server.status if known else 401)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        pass


def test_live_drops_what_grafana_does_not_take_and_the_store_gets_everything(kafka: Kafka, tmp_path: Path) -> None:
    require(VictoriaMetrics)
    told = envelopes("r", jobs=40, every=3_600)
    values = [envelope.to_bytes() for envelope in told]
    web = free_port()
    with VictoriaMetrics(tmp_path / "store") as store, Grafana() as grafana:
        thread = threading.Thread(target=grafana.serve_forever, daemon=True)
        thread.start()
        live = {"grafana_url": f"http://{HOST}:{grafana.server_address[1]}", "grafana_password": "glsa_1"}
        with Process(kafka, store, tmp_path, web_port=str(web), **live) as process:
            wait_until(lambda: figures(web), "the process does not begin")
            publish(kafka, DECISIONS, values[:20])
            wait_until(lambda: grafana.lines, "nothing is pushed")
            grafana.status = 500
            before = len(grafana.lines)
            publish(kafka, DECISIONS, values[20:60])
            publish(kafka, SCORES, values)
            wait_until(lambda: figures(web)["shadowtime_live_dropped_total"] > 0, "nothing is dropped")
            wait_until(lambda: alike(exported(store), expected(told)), "Grafana stands in the way of the store")
            assert len(grafana.lines) == before
            process.process.send_signal(signal.SIGTERM)
            assert process.process.wait(timeout=PATIENCE) == 0
            assert "glsa_1" not in process.log.read_text()
        grafana.shutdown()
        thread.join()
    assert grafana.lines[0].startswith(("decision,cluster=bundled,run=r job=", "prediction,cluster=bundled,run=r job="))


def figures(web: int) -> dict[str, float]:
    """Return the health figures of the process; nothing while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{web}/metrics", timeout=PATIENCE) as answer:
            lines = [line.split() for line in answer.read().decode().splitlines() if not line.startswith("#")]
    except OSError:
        return {}
    return {name: float(value) for name, value in lines}


def test_lines_of_grafana_live_keep_their_form_whatever_the_names() -> None:
    submitted = JobSubmitted(time=5, job_number=3, requested_processors=1)
    decided = Decided(time=5, kills=(Kill(job_number=3, requeue=False, reason=HOSTILE),))
    for event in (submitted, decided):
        (line,) = live_lines(Envelope(run=HOSTILE, cluster=HOSTILE, sequence=1, event=event), 10)
        assert "\n" not in line
        assert line.endswith(" 15000000000")
        assert not set("<>`{}$") & set(line)
        tags = line.replace("\\ ", "").replace("\\,", "").replace("\\=", "").split(" ")[0]
        assert [each.partition("=")[0] for each in tags.split(",")][1:] == ["cluster", "run"]
