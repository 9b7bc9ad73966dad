"""Embedded and over Kafka: the same decisions, byte for byte."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.parity.policies import REPLANNED
from tests.support.embedded import assert_complete, embedded
from tests.support.patience import PATIENCE
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly  # in `make test` test_chaos.py says the same, while everything is being killed

JOBS = 150
PROMISED = "conservative:speculate=expected,test_runs=yes,shape=greedy,runtime=empirical"
ANEW = "easy-sjbf:forecast=yes,runtime=gibbons(predict=anew)"
TUNED = "tuned:least=20,every=3600,runtime=empirical"


@pytest.fixture(scope="module")
def workers(kafka: Kafka, redis_server: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """One worker for each stage; a test that stops some of them starts others in their places."""
    with Workers(kafka, redis_server, tmp_path_factory.mktemp("workers")) as running:
        yield running


def assert_as_embedded(workers: Workers, run: str, folder: Path, *arguments: str) -> None:
    """Replay over Kafka: the decisions are those of the embedded pipeline, and every topic has all of the run."""
    workers.finish(workers.replay(run, folder / "kafka.jsonl", *arguments))
    assert (folder / "kafka.jsonl").read_bytes() == embedded(*arguments), workers.logs()
    assert_complete(Settings(kafka_bootstrap=workers.kafka.address), run)


@pytest.mark.parametrize(
    ("run", "policy"),
    [
        pytest.param("easy", "easy", id="easy"),
        pytest.param("best", "cautious", id="cautious"),
        pytest.param("replanned", REPLANNED, id="replanned"),
        pytest.param("promised", PROMISED, id="promised"),
        pytest.param("anew", ANEW, id="anew"),
        pytest.param("tuned", TUNED, id="tuned"),
    ],
)
def test_kafka_gives_the_decisions_of_the_embedded_pipeline(
    workers: Workers, tmp_path: Path, run: str, policy: str
) -> None:
    assert_as_embedded(workers, run, tmp_path, "--jobs", str(JOBS), "--policy", policy)


def test_risk_that_heads_were_put_to_is_the_same_over_kafka(workers: Workers, tmp_path: Path) -> None:
    """Budget and patience are remembered from pass to pass, distributions from submission to end."""
    policy = "probabilistic:tau=0.5,budget=0.9,patience=1,runtime=experts"
    arguments = ["--jobs", "80", "--policy", policy]
    assert embedded(*arguments).count(b"probably-harmless") > 10
    assert_as_embedded(workers, "risk", tmp_path, *arguments)


def test_templates_of_a_file_are_the_same_over_kafka(workers: Workers, tmp_path: Path) -> None:
    """The log of the run spells them out."""
    (tmp_path / "found.templates").write_text("# by hand\nmean(key=user,history=4)\nlinear(key=request)\n")
    policy = f"easy-sjbf:runtime=templates(set={tmp_path / 'found.templates'})"
    assert_as_embedded(workers, "templates", tmp_path, "--jobs", "80", "--policy", policy)


def test_a_log_that_is_read_in_pieces_is_the_same_over_kafka(workers: Workers, tmp_path: Path) -> None:
    arguments = ["--jobs", "80", "--in-pieces"]
    assert embedded(*arguments) == embedded(*arguments[:-1])
    assert_as_embedded(workers, "pieces", tmp_path, *arguments)


def test_trees_that_grow_in_a_worker_are_the_same_over_kafka(workers: Workers, tmp_path: Path) -> None:
    policy, jobs = "easy-sjbf:runtime=boosted(history=500,days=1,trees=15,rounds=4)", ["--jobs", "450"]
    assert embedded(*jobs, "--policy", policy) != embedded(*jobs, "--policy", "easy-sjbf:runtime=requested")
    assert_as_embedded(workers, "boosted", tmp_path, *jobs, "--policy", policy)


def test_two_workers_per_stage_and_a_rebalance_in_mid_run(workers: Workers, kafka: Kafka, tmp_path: Path) -> None:
    arguments = ["--jobs", str(2 * JOBS)]
    expected = embedded(*arguments)
    with Workers(kafka, workers.redis, tmp_path) as more:
        replay = more.replay("rebalance", tmp_path / "kafka.jsonl", *arguments)
        more.wait_for_decisions("rebalance")
        assert replay.poll() is None, "the replay ended before anything moved"
        for name in workers.names:  # one of each stage leaves, and comes back
            workers.signal(name, signal.SIGTERM)
            workers.processes[name].wait(timeout=PATIENCE)
        workers.tend()
        more.finish(replay)
        assert (tmp_path / "kafka.jsonl").read_bytes() == expected, workers.logs() + more.logs()
    assert_complete(Settings(kafka_bootstrap=kafka.address), "rebalance")
