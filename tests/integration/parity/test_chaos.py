"""The same decisions over Kafka, byte for byte, while everything is being killed."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.integration.parity.policies import REPLANNED
from tests.support.embedded import assert_complete, embedded
from tests.support.eventful import install
from tests.support.guarded import guarded
from tests.support.real_servers import require
from tests.support.workers import Workers

KTH = ROOT.parent / "shared" / "traces" / "KTH-SP2-1996-2.swf.gz"


def test_the_same_while_everything_is_being_killed(tmp_path: Path) -> None:
    """Every stage and the replayer by SIGKILL, one stage stopped until its partition has moved, Redis and Kafka."""
    chaos(tmp_path, ["--jobs", "400"], speed=10_000, kills=1, pause=1.0, seconds=600, share=0.5)


@pytest.mark.nightly
def test_a_log_with_everything_that_clusters_do_while_everything_is_being_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs cancelled, held, changed, suspended and told late, and a machine that shrinks and grows."""
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site")))
    sizes = [word for change in ("40000:64", "90000:128") for word in ("--capacity", change)]
    stages = ["--policy", "easy:runtime=experts", "--adjustment", "auto", "--wait-bound", "bmbp"]
    arguments = ["--mode", "eventful", "--jobs", "400", *sizes, *stages]
    chaos(tmp_path, arguments, speed=10_000, kills=1, pause=1.0, seconds=600, share=0.5, typed=True)


@pytest.mark.nightly
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
    policy = f"probabilistic:tau=0.2,candidates=spf,accept_easy_safe=yes,budget=0.9,patience=1,runtime={runtime}"
    arguments = [str(KTH), "--jobs", "3000", "--policy", policy]
    chaos(tmp_path, arguments, speed=12_000, kills=3, pause=4.0, seconds=1200, share=1.0)


@pytest.mark.archive
@pytest.mark.skipif(not KTH.exists(), reason=f"there is no {KTH}")
def test_trials_and_shapes_of_the_first_3000_jobs_of_kth_while_everything_is_being_killed(tmp_path: Path) -> None:
    """Random orders are drawn again, trials and what they taught survive the kills."""
    arguments = [str(KTH), "--jobs", "3000", "--policy", REPLANNED]
    chaos(tmp_path, arguments, speed=12_000, kills=3, pause=4.0, seconds=1200, share=1.0)


@pytest.mark.archive
@pytest.mark.skipif(not KTH.exists(), reason=f"there is no {KTH}")
def test_choices_for_the_first_3000_jobs_of_kth_while_everything_is_being_killed(tmp_path: Path) -> None:
    """Simulated machines, what they have come to and who decides survive the kills."""
    arguments = [str(KTH), "--jobs", "3000", "--policy", "tuned:runtime=empirical"]
    chaos(tmp_path, arguments, speed=12_000, kills=3, pause=4.0, seconds=1200, share=1.0)


@pytest.mark.archive
@pytest.mark.skipif(not KTH.exists(), reason=f"there is no {KTH}")
def test_trees_for_the_first_3000_jobs_of_kth_while_everything_is_being_killed(tmp_path: Path) -> None:
    """Trees grow in a worker nine times or more, and each of the ten workers dies once: none is grown otherwise."""
    arguments = [str(KTH), "--jobs", "3000", "--policy", "best:runtime=boosted"]
    chaos(tmp_path, arguments, speed=12_000, kills=1, pause=20.0, seconds=1500, share=1.0)


@contextmanager
def two_workers_per_stage(folder: Path, *, secure: bool, typed: bool = False) -> Iterator[Workers]:
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
            Workers(kafka, redis, folder, per_stage=2, typed=typed) as workers,
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
    typed: bool = False,
) -> None:
    """Replay while killing; at the end the decisions must be those of the embedded pipeline.

    The pace, `speed`, keeps the replay from ending before at least a `share` of everything was done to it.
    """
    expected = embedded(*arguments)
    chance = random.Random(1)
    until = time.monotonic() + seconds
    with two_workers_per_stage(folder, secure=secure, typed=typed) as workers:
        kafka, redis = workers.kafka, workers.redis
        assert isinstance(kafka, Kafka)
        assert isinstance(redis, Redis)
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
                kafka.stop()
                kafka.start()
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
