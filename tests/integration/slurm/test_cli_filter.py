"""The Lua plug-in on a real Slurm: what it prints, and that no submission fails or waits longer than it may."""

import http.server
import os
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from shadowtime.shared.cli import ROOT
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.ask_server import ask_served
from tests.support.follower_process import following
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import CONF, USERS, SlurmCluster, unavailable
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly

PLUGIN = ROOT / "stack/slurm/cli_filter.lua"
LINES = "likely to start in 2.0 h (80 %: 40.0 min to 6.0 h)\nwith a limit of 4.0 h instead of 24.0 h: 35.0 min\n"
SUBMISSIONS = int(os.environ.get("SHADOWTIME_SUBMISSIONS", "40"))


class FilteredCluster(SlurmCluster):
    conf = CONF + "CliFilterPlugins=cli_filter/lua\n"


class Answers(http.server.ThreadingHTTPServer):
    """A server that answers with `body` after `delay` seconds, and notes the questions."""

    daemon_threads = True
    body, delay, status = LINES, 0.0, 200

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that waits no longer leaves."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Answers)
        server.asked.append(parse_qs(urlsplit(self.path).query))
        time.sleep(server.delay)
        body = server.body.encode()
        self.send_response(server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    require_reason(unavailable())
    if not list(Path("/usr/share/lua").glob("*/socket.lua")):
        require_reason("there is no lua-socket; shadowtime stack install slurm")
    with FilteredCluster(2) as cluster:
        yield cluster


@contextmanager
def answering(cluster: SlurmCluster, **how: object) -> Iterator[Answers]:
    with Answers() as server:
        for name, value in how.items():
            setattr(server, name, value)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        install(cluster, server.server_address[1])
        yield server
        server.shutdown()


def install(cluster: SlurmCluster, port: int | str) -> None:
    text = PLUGIN.read_text().replace("6090", str(port), 1)
    (cluster.base / "etc/cli_filter.lua").write_text(text)


def submit(cluster: SlurmCluster, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    user = USERS[0]
    prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    words = cluster.environment | {"USER": user} | environment
    return subprocess.run(
        [*prefix, *command], env=words, cwd="/tmp", capture_output=True, text=True, timeout=60, check=False
    )


SBATCH = ("sbatch", "--time=1-0", "--ntasks=2", "--cpus-per-task=3", "--partition=batch", "--wrap=true")


@pytest.mark.parametrize(
    ("command", "processors", "seconds"),
    [
        (SBATCH, "6", "86400"),
        ((*SBATCH, "--array=1-3"), "6", "86400"),
        (("sbatch", "--nodes=2", "--ntasks-per-node=2", "-t90", "--wrap=true"), "4", "5400"),
        (("srun", "-n1", "-t0:45", "true"), "1", "60"),
        (("salloc", "-n2", "-t5", "true"), "2", "300"),
    ],
)
def test_a_submission_says_when_the_job_is_likely_to_start(
    cluster: SlurmCluster, command: tuple[str, ...], processors: str, seconds: str
) -> None:
    with answering(cluster) as server:
        done = submit(cluster, *command)
    assert done.returncode == 0, done.stderr
    assert LINES in done.stderr
    assert LINES not in done.stdout
    (asked,) = server.asked
    assert asked["user"] == [USERS[0]]
    assert (asked["processors"], asked["requested_time"]) == ([processors], [seconds])


@pytest.mark.parametrize(
    ("options", "memory"),
    [
        ((), None),
        (("--mem=3G",), ["3072"]),
        (("--mem=1500", "--nodes=2"), ["3000"]),
        (("--mem-per-cpu=500M",), ["3000"]),
        (("--mem-per-cpu=1G",), ["6144"]),
    ],
)
def test_the_stated_memory_is_asked_about(
    cluster: SlurmCluster, options: tuple[str, ...], memory: list[str] | None
) -> None:
    """A job that waits for memory was "likely to start now"."""
    with answering(cluster) as server:
        done = submit(cluster, *SBATCH, *options)
    assert done.returncode == 0, done.stderr
    assert server.asked[0].get("memory") == memory


@pytest.mark.parametrize(
    "options",
    [
        ("--test-only",), ("--hold",), ("--begin=now+1hour",), ("--exclusive",), ("--dependency=singleton",),
        ("--nodelist=n01",), ("--exclude=n01", "--cpus-per-task=1"), ("--quiet",),
        ("--hint=nomultithread",), ("--threads-per-core=1",),
    ],
)  # fmt: skip
def test_it_is_silent_about_jobs_that_it_cannot_describe(cluster: SlurmCluster, options: tuple[str, ...]) -> None:
    with answering(cluster) as server:
        done = submit(cluster, *SBATCH, *options)
        unlimited = submit(cluster, "sbatch", "--wrap=true")
        off = submit(cluster, *SBATCH, SHADOWTIME_HINT="off")
    assert (done.returncode, unlimited.returncode, off.returncode) == (0, 0, 0)
    assert not any("likely" in each.stderr for each in (done, unlimited, off))
    assert server.asked == []


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ({"body": ""}, ""),
        ({"status": 404}, ""),
        ({"status": 503}, ""),
        ({"body": "one\ntwo\nthree\n"}, "one\ntwo\n"),
        ({"body": "\x1b[2Jred\n"}, "[2Jred\n"),
        ({"body": "x" * 5_000}, "x" * 200 + "\n"),
        ({"body": "x" * 100_000}, ""),
        ({"delay": 5.0}, ""),
    ],
)
def test_an_odd_answer_harms_nothing(cluster: SlurmCluster, how: dict[str, object], shown: str) -> None:
    with answering(cluster, **how):
        done = submit(cluster, *SBATCH)
    assert done.returncode == 0
    assert done.stderr == shown


@pytest.mark.parametrize("port", ["1", "0", "65536", "nil", "'x'"])
def test_a_dead_server_or_a_wrong_setting_is_silent(cluster: SlurmCluster, port: str) -> None:
    install(cluster, port)
    done = submit(cluster, *SBATCH)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_submission_takes_at_most_300_ms_longer(cluster: SlurmCluster) -> None:
    """Submissions without and with the plug-in take turns, so that both meet the same load."""
    for name, how in (("healthy", {}), ("slow", {"delay": 5.0}), ("dead", None)):
        times: dict[str, list[float]] = {"off": [], "on": []}
        with answering(cluster, **(how or {})):
            if how is None:
                install(cluster, 1)
            for _ in range(SUBMISSIONS):
                for kind in times:
                    began = time.monotonic()
                    done = submit(cluster, *SBATCH, "--parsable", SHADOWTIME_HINT=kind)
                    times[kind].append(time.monotonic() - began)
                    assert done.returncode == 0, done.stderr
        added = [1e3 * (on - off) for on, off in zip(times["on"], times["off"], strict=True)]
        median, off = statistics.median(added), statistics.median(times["off"]) * 1e3
        p99 = sorted(added)[max(0, int(0.99 * len(added)) - 1)]
        print(
            f"{name}: {off:.0f} ms without, added: median {median:.0f} ms, 99th percentile {p99:.0f} ms, n={len(added)}"
        )
        assert median < 400
        submit(cluster, "scancel", f"--user={USERS[0]}")


def test_the_real_server_answers_beside_a_followed_slurm(
    cluster: SlurmCluster, kafka: Kafka, redis_server: Redis, tmp_path: Path
) -> None:
    """Jobs are submitted to a full machine: each hint is of the followed run, and in time."""
    policy = "easy:queue=priority,forecast=calibrated"
    install(cluster, 1)
    servers = {"SHADOWTIME_REDIS_URL": redis_server.url, "SHADOWTIME_KAFKA_BOOTSTRAP": kafka.address}
    with (
        Workers(kafka, redis_server, tmp_path) as workers,
        following(cluster, kafka, redis_server, tmp_path / "follower.log", policy) as follower,
    ):
        follower.wait_until_told(int(time.time()))
        for number in range(40):  # a past from which starts are forecast
            cluster.submit(USERS[number % 5], "past", f"-n{1 + number % 4}", "-t5", wrap=f"sleep {1 + number % 4}")
        cluster.wait_until_idle(200)
        for job in [cluster.submit("games", "fills", "-n4", "-t30", wrap="sleep 1500") for _ in range(2)]:
            cluster.wait_for(job, "RUNNING")
        log = follower.wait_until_told(int(time.time()) + 10)
        workers.wait_for_answers(follower.settings, follower.run, log[-1].sequence)
        with ask_served(tmp_path, environment=os.environ | servers) as (port, _):
            install(cluster, port)
            file = cluster.base / "etc/cli_filter.lua"
            file.write_text(file.read_text().replace('CLUSTER = "mine"', f'CLUSTER = "{follower.cluster}"', 1))
            hints, times = [], []
            for kind in ("on", "off") * SUBMISSIONS:
                began = time.monotonic()
                done = submit(cluster, "sbatch", "-t20", "-n2", "-pbatch", "--wrap=true", SHADOWTIME_HINT=kind)
                times.append(time.monotonic() - began)
                assert done.returncode == 0, done.stderr
                hints.append(done.stderr)
    answered = [hint for hint in hints[::2] if hint]
    added = [1e3 * (on - off) for on, off in zip(times[::2], times[1::2], strict=True)]
    print(
        f"{len(answered)} of {SUBMISSIONS} answered, {statistics.median(added):.0f} ms added in the median",
        answered[:2],
    )
    assert not any(hints[1::2])
    assert len(answered) >= SUBMISSIONS / 2
    span = "[0-9.]+ (s|min|h)"
    for hint in answered:
        assert re.match(rf"likely to start in {span} \(80 %: {span} to {span}\)\n", hint), hint
