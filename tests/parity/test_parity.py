"""Embedded, over Kafka, and over Kafka while everything is being killed: the same decisions, byte for byte."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shadowtime.shared.paths import ROOT
from shadowtime.shared.streaming.bus import partition_of
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers import Kafka, Redis
from tests.guarded import guarded
from tests.parity.topic_logs import sequences, without_duplicates
from tests.parity.workers import Workers
from tests.patience import PATIENCE
from tests.real_servers import require

JOBS = 150
KTH = ROOT.parent / "shared" / "traces" / "KTH-SP2-1996-2.swf.gz"


REPLANNED = "conservative:order=R/L,guarantees=no,speculate=0.8,test_runs=yes,shape=half,widen=yes"
PROMISED = "conservative:speculate=expected,test_runs=yes,shape=greedy,runtime=empirical"


def embedded(folder: Path, *arguments: str) -> bytes:
    """Return the decision log of the embedded pipeline."""
    path = folder / "embedded.jsonl"
    subprocess.run([sys.executable, "-m", "replayer", "--decisions", str(path), *arguments], cwd=ROOT, check=True)
    return path.read_bytes()


def assert_complete(settings: Settings, run: str) -> None:
    """Nothing lost, nothing doubled: each sequence appears on every topic, in order after de-duplication."""
    found = sequences(settings, run, partition_of(run, settings.partitions))
    count = max(found["jobs"]) + 1
    assert {topic: len(without_duplicates(numbers)) for topic, numbers in found.items()} == dict.fromkeys(found, count)


@pytest.mark.parametrize(
    ("run", "policy"),
    [("easy", "easy"), ("best", "best"), ("replanned", REPLANNED), ("promised", PROMISED)],
    ids=["easy", "best", "replanned", "promised"],
)
def test_kafka_gives_the_decisions_of_the_embedded_pipeline(
    kafka: Kafka, redis_server: Redis, tmp_path: Path, run: str, policy: str
) -> None:
    arguments = ["--jobs", str(JOBS), "--policy", policy]
    expected = embedded(tmp_path, *arguments)
    with Workers(kafka, redis_server, tmp_path) as workers:
        workers.finish(workers.replay(run, tmp_path / "kafka.jsonl", *arguments))
        assert (tmp_path / "kafka.jsonl").read_bytes() == expected, workers.logs()
    assert_complete(Settings(kafka_bootstrap=kafka.address), run)


def test_risk_that_heads_were_put_to_is_the_same_over_kafka(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    """Budget and patience are remembered from pass to pass, distributions from submission to end."""
    policy = "probabilistic:tau=0.5,budget=0.9,patience=1,runtime=experts"
    arguments = ["--jobs", "80", "--policy", policy]
    expected = embedded(tmp_path, *arguments)
    assert expected.count(b"probably-harmless") > 10
    with Workers(kafka, redis_server, tmp_path) as workers:
        workers.finish(workers.replay("risk", tmp_path / "kafka.jsonl", *arguments))
        assert (tmp_path / "kafka.jsonl").read_bytes() == expected, workers.logs()
    assert_complete(Settings(kafka_bootstrap=kafka.address), "risk")


def test_templates_of_a_file_are_the_same_over_kafka(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    """The log of the run spells them out."""
    (tmp_path / "found.templates").write_text("# by hand\nmean(key=user,history=4)\nlinear(key=request)\n")
    arguments = ["--jobs", "80", "--policy", f"easy-sjbf:runtime=templates(set={tmp_path / 'found.templates'})"]
    expected = embedded(tmp_path, *arguments)
    with Workers(kafka, redis_server, tmp_path) as workers:
        workers.finish(workers.replay("templates", tmp_path / "kafka.jsonl", *arguments))
        assert (tmp_path / "kafka.jsonl").read_bytes() == expected, workers.logs()
    assert_complete(Settings(kafka_bootstrap=kafka.address), "templates")


def test_two_workers_per_stage_and_a_rebalance_in_mid_run(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    arguments = ["--jobs", str(2 * JOBS)]
    expected = embedded(tmp_path, *arguments)
    with Workers(kafka, redis_server, tmp_path, per_stage=2) as workers:
        replay = workers.replay("rebalance", tmp_path / "kafka.jsonl", *arguments)
        workers.wait_for_decisions("rebalance")
        assert replay.poll() is None, "the replay ended before anything moved"
        for name in workers.names[::2]:  # one of each stage leaves, and comes back
            workers.signal(name, signal.SIGTERM)
            workers.processes[name].wait(timeout=PATIENCE)
        workers.finish(replay)
        assert (tmp_path / "kafka.jsonl").read_bytes() == expected, workers.logs()
    assert_complete(Settings(kafka_bootstrap=kafka.address), "rebalance")


def test_the_same_while_everything_is_being_killed(tmp_path: Path) -> None:
    """Every stage and the replayer by SIGKILL, one stage stopped until its partition has moved, Redis and Kafka."""
    chaos(tmp_path, ["--jobs", "400"], speed=10_000, kills=1, pause=1.0, seconds=600, share=0.5)


def test_the_same_under_passwords_rights_and_tls_while_everything_is_being_killed(tmp_path: Path) -> None:
    chaos(tmp_path, ["--jobs", "400"], speed=10_000, kills=1, pause=1.0, seconds=600, share=0.5, secure=True)


@pytest.mark.archive
@pytest.mark.skipif(not KTH.exists(), reason=f"there is no {KTH}")
@pytest.mark.parametrize("secure", [False, True], ids=["open", "secure"])
def test_the_first_5000_jobs_of_kth_while_everything_is_being_killed(tmp_path: Path, secure: bool) -> None:
    arguments = [str(KTH), "--jobs", "5000"]
    chaos(tmp_path, arguments, speed=12_000, kills=5, pause=6.0, seconds=1500, share=1.0, secure=secure)


@pytest.mark.archive
@pytest.mark.skipif(not KTH.exists(), reason=f"there is no {KTH}")
@pytest.mark.parametrize("runtime", ["hmm", "empirical"])
def test_probabilities_for_the_first_3000_jobs_of_kth_while_everything_is_being_killed(
    tmp_path: Path, runtime: str
) -> None:
    """Long enough for the first hidden Markov models, which are learned in memory and must survive the kills."""
    policy = f"probabilistic:tau=0.2,order=expected,accept_easy_safe=yes,budget=0.9,patience=1,runtime={runtime}"
    arguments = [str(KTH), "--jobs", "3000", "--policy", policy]
    chaos(tmp_path, arguments, speed=12_000, kills=3, pause=4.0, seconds=1200, share=1.0)


@pytest.mark.archive
@pytest.mark.skipif(not KTH.exists(), reason=f"there is no {KTH}")
def test_trials_and_shapes_of_the_first_3000_jobs_of_kth_while_everything_is_being_killed(tmp_path: Path) -> None:
    """Random orders are drawn again, trials and what they taught survive the kills."""
    arguments = [str(KTH), "--jobs", "3000", "--policy", REPLANNED]
    chaos(tmp_path, arguments, speed=12_000, kills=3, pause=4.0, seconds=1200, share=1.0)


@contextmanager
def two_workers_per_stage(folder: Path, *, secure: bool) -> Iterator[Workers]:
    """Yield workers over servers of their own; `secure` ones under SASL, ACLs and TLS, each worker in its role."""
    if secure:
        with guarded(folder / "stack") as servers:
            access = str(servers.folder)
            with Workers(servers.kafka, servers.redis, folder, per_stage=2, access=access) as workers:
                yield workers
    else:
        require(Kafka)
        require(Redis)
        with (
            Kafka(folder / "kafka") as kafka,
            Redis(folder / "redis") as redis,
            Workers(kafka, redis, folder, per_stage=2) as workers,
        ):
            yield workers


def chaos(
    folder: Path,
    arguments: list[str],
    *,
    speed: int,
    kills: int,
    pause: float,
    seconds: float,
    share: float,
    secure: bool = False,
) -> None:
    """Replay while killing; at the end the decisions must be those of the embedded pipeline.

    The pace, `speed`, keeps the replay from ending before at least a `share` of everything was done to it.
    """
    expected = embedded(folder, *arguments)
    chance = random.Random(1)
    until = time.monotonic() + seconds
    with two_workers_per_stage(folder, secure=secure) as workers:
        kafka, redis = workers.kafka, workers.redis
        run, path = "chaos", folder / "kafka.jsonl"
        arguments = [*arguments, "--speed", str(speed)]
        replay = workers.replay(run, path, *arguments)
        workers.wait_for_decisions(run)
        victims = [name for name in [*workers.names, "replay"] for _ in range(kills)]
        chance.shuffle(victims)
        acts: list[str] = [*victims, "stop", "kafka", "redis"]
        chance.shuffle(acts)
        for done, act in enumerate(acts):
            if replay.poll() is not None:
                assert done >= share * len(acts), f"the replay ended after {done} of {len(acts)}\n{workers.logs()}"
                break
            if act == "replay":
                replay.kill()
                replay.wait()
                replay = workers.replay(run, path, *arguments)
            elif act == "stop":
                stopped = chance.choice(workers.names)
                workers.signal(stopped, signal.SIGSTOP)
                time.sleep(9)  # longer than its session: the partition moves to the other worker
                workers.signal(stopped, signal.SIGCONT)
            elif act == "kafka":
                kafka.restart()
            elif act == "redis":
                redis.kill()
                redis.start()
            else:
                workers.signal(act, signal.SIGKILL)
            time.sleep(pause * chance.random())
            workers.tend()
        workers.finish(replay, until - time.monotonic())
        assert path.read_bytes() == expected, workers.logs()
        assert_complete(workers.kafka_settings, run)
