"""Shadows over real servers: the decisions of a closed replay, also while they and the stages are killed."""

import asyncio
from collections.abc import Iterator

import pytest

from shadowtime.shared.messages.envelope import ClusterClosed, JobStarted
from shadowtime.shared.stages.topics import DEAD_LETTERS
from shadowtime.shared.streaming.kafka.log_reader import read_log
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.embedded import embedded
from tests.support.forked import run_forked
from tests.support.patience import PATIENCE
from tests.support.shadows_over_kafka import assert_played, killed, shadow, told
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly

JOBS = "100"
REAL = "bundled/easy"


@pytest.fixture(scope="module")
def workers(kafka: Kafka, redis_server: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """One worker for each stage, a replay under `easy` over them, and a shadow from its end on."""
    folder = tmp_path_factory.mktemp("workers")
    with Workers(kafka, redis_server, folder) as running:
        running.finish(running.replay(REAL, folder / "real.jsonl", "--jobs", JOBS, "--policy", "easy"))
        running.finish(shadow(running, REAL, "--since", "now", "--name", "later", "--policy", "best"))
        yield running


def test_exact_shadows_decide_as_closed_replays_while_everything_is_killed(workers: Workers) -> None:
    """One that takes the place of another in mid-work tells what that one would have told, and no more."""
    killed(workers, REAL, "easy", "best", kills=5, pause=4.0, seconds=2 * PATIENCE)
    for policy in ("easy", "best"):
        assert_played(workers, f"bundled/shadow/{policy}", embedded("--jobs", JOBS, "--policy", policy))


def test_a_shadow_from_now_on_tells_what_happened_and_goes_on_by_itself(workers: Workers) -> None:
    log = told(workers, "bundled/later/best")
    opened = log[0].event
    real = {
        each.event.job_number: each.event.time for each in told(workers, REAL) if isinstance(each.event, JobStarted)
    }
    found = {each.event.job_number: each.event.time for each in log if isinstance(each.event, JobStarted)}
    assert opened.obeyed_from == max(each.event.time for each in told(workers, REAL)) + 1  # type: ignore[union-attr]
    assert found == real
    assert isinstance(log[-1].event, ClusterClosed)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--of", "nobody", "--name", "none", "--policy", "easy"], "has no run 'nobody'"),
        (["--policy", "easy", "--policy", "easy"], "given twice"),
        (["--policy", "esy"], "unknown policy"),
        (["--cluster", "other", "--policy", "easy"], "is of cluster 'bundled', not of 'other'"),
        (["--since", "noon", "--policy", "easy"], "noon"),
        (["--by-predictions", "--name", "later", "--policy", "best"], "already as an exact shadow of 'bundled/easy'"),
        (["--name", "later", "--policy", "best", "--seed", "3"], "other settings"),
    ],
)
def test_what_cannot_be_played_is_said_in_one_line(workers: Workers, arguments: list[str], says: str) -> None:
    environment = {**workers.environment, "COLUMNS": "200"}
    usual = {"--cluster": "bundled", "--of": REAL}
    others = [word for option, value in usual.items() if option not in arguments for word in (option, value)]
    done = run_forked("shadow", *others, *arguments, environment=environment)
    assert done.returncode == 2 or done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_was_a_dead_letter(workers: Workers) -> None:
    settings = Settings(kafka_bootstrap=workers.kafka.address)

    async def count() -> int:
        return sum(
            [
                record.key is not None and record.key.startswith(b"bundled/")
                for partition in range(settings.partitions)
                async for record in read_log(settings, DEAD_LETTERS, partition)
            ]
        )

    assert asyncio.run(count()) == 0
