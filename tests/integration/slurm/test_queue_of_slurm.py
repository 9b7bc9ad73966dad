"""`shadowtime queue` beside a real Slurm whose machine is full: each row is that of squeue, and that of `ask --job`."""

import json
import os
import random
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.ask_server import ask_served
from tests.support.follower_process import FollowerProcess, following
from tests.support.forked import run_forked
from tests.support.lives import log_of
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import USERS, SlurmCluster, unavailable
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly

WAITING = 300
POLICY = "easy:queue=priority,forecast=calibrated"
COLUMNS = "JobArrayID:|,UserName:|,Partition:|,NumCPUs:|,TimeLimit:|,StateCompact:|,EligibleTime:|,StartTime:|,Name:|"


def squeue(cluster: SlurmCluster) -> dict[str, tuple[Any, ...]]:
    """Return the user, partition, processors, limit in seconds, state, and begin of the wait or start of each job."""
    rows: dict[str, tuple[Any, ...]] = {}
    command = ("env", "SLURM_TIME_FORMAT=%s", "TZ=UTC", "squeue", "-h", "-r", "-t", "PD,R", "-O", COLUMNS)
    for line in cluster.run(*command).splitlines():
        job, user, partition, processors, limit, state, eligible, start, *_ = (part.strip() for part in line.split("|"))
        at = eligible if state == "PD" else start
        rows[job] = (user, partition, int(processors), seconds(limit), state, int(at) if at.isdigit() else None)
    return rows


def seconds(limit: str) -> int | None:
    """Return the seconds of a limit as squeue prints it: [days-][hours:]minutes:seconds."""
    if limit == "UNLIMITED":
        return None
    days, _, clock = limit.rpartition("-")
    parts = [0, 0, *map(int, clock.split(":"))][-3:]
    return 86_400 * int(days or 0) + 3_600 * parts[0] + 60 * parts[1] + parts[2]


def shown(answer: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the same of the answer of `shadowtime queue --json`."""
    zero, rows = answer["unix_start"], {}
    for row in answer["waiting"]:
        places = row["user"], row["partition"], row["processors"], row["requested_time"]
        rows[row["job_id"]] = (*places, "PD", zero + row["since"])
    for row in answer["running"]:
        rows[row["job_id"]] = (
            *(row["user"], row["partition"], row["processors"], row["limit"]),
            *("R", zero + row["started"]),
        )
    return rows


def asked(follower: FollowerProcess, folder: Path, environment: dict[str, str], jobs: list[str]) -> dict[str, Any]:
    """Return the answers of `ask --serve` about jobs."""
    answers = {}
    with ask_served(folder, environment=environment) as (port, _):
        for job in jobs:
            url = f"http://127.0.0.1:{port}/why?cluster={follower.cluster}&job={job}"
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                answers[job] = json.load(answer)
    return answers


def test_every_row_is_that_of_squeue_and_of_ask(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    require_reason(unavailable())
    rng = random.Random(3)
    with (
        SlurmCluster() as cluster,
        Workers(kafka, redis_server, tmp_path),
        following(cluster, kafka, redis_server, tmp_path / "follower.log", POLICY) as follower,
    ):
        follower.wait_until_told(int(time.time()))
        for number in range(40):  # a past from which starts are forecast
            cluster.submit(USERS[number % 5], "past", f"-n{1 + number % 4}", "-t5", wrap=f"sleep {1 + number % 5}")
        cluster.wait_until_idle(200)
        fills = [cluster.submit("games", "fills", "-n", "4", "-t", "60", wrap="sleep 3000") for _ in range(8)]
        for job in fills:
            cluster.wait_for(job, "RUNNING")
        waiting = 0
        while waiting < WAITING:
            partition = rng.choice(["batch", "batch", "low", "debug"])
            most = 4 if partition == "debug" else 32
            limit = rng.choice(["5", "20", "30", "2:30"] if partition == "debug" else ["7", "90", "1-0", "12:00:00"])
            options = [f"-n{rng.randint(1, most)}", "-t", limit, "-p", partition]
            tasks = rng.choice([1, 1, 1, 5])
            array = [f"--array=0-{tasks - 1}"] if tasks > 1 else []
            cluster.submit(rng.choice(USERS), "waits", *options, *array, wrap="sleep 5")
            waiting += tasks
        wait_until(lambda: all(row[5] for row in squeue(cluster).values()), "slurmctld has not looked at all jobs")
        truth = squeue(cluster)
        follower.wait_until_told(int(time.time()) + 10)
        follower.process.send_signal(signal.SIGSTOP)  # starts depend on the time of the log: it stands for both answers
        last = log_of(follower.settings, follower.run)[-1].sequence
        environment = os.environ | {
            "SHADOWTIME_REDIS_URL": redis_server.url,
            "SHADOWTIME_KAFKA_BOOTSTRAP": kafka.address,
        }

        def queue() -> dict[str, Any]:
            done = run_forked("queue", follower.cluster, "--json", environment=environment)
            assert done.returncode == 0, done.stderr
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer

        wait_until(lambda: queue()["sequence"] >= last, "the scheduler has not answered")
        began = time.monotonic()
        answer = queue()
        took = time.monotonic() - began
        narrow = run_forked("queue", follower.cluster, environment=environment | {"COLUMNS": "80"})
        answers = asked(follower, tmp_path, environment, [job for job, row in truth.items() if row[4] == "PD"])
        truth_after = squeue(cluster)
    assert truth == truth_after, "the machine was not at rest"
    rows = shown(answer)
    different = {job: (row, rows.get(job)) for job, row in truth.items() if rows.get(job) != row}
    print(f"{len(truth)} rows in {took:.2f} s, {len(different)} different from squeue")
    assert different == {}
    assert set(rows) == set(truth)
    assert len(answer["waiting"]) >= WAITING
    for row in answer["waiting"]:
        why = answers[row["job_id"]]
        assert row["starts"] == why["starts"], row["job_id"]
        assert row["waits_for"] == why.get("waits_for", why["state"]), row["job_id"]
    known = sum(row["starts"] is not None for row in answer["waiting"])
    print(f"{known} of {len(answer['waiting'])} waiting jobs have an expected start")
    lines = narrow.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.split()[:1] == [job] for line in lines for job in truth) >= len(truth)
