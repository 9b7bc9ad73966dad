"""The reasons in the log of a followed Slurm are those that squeue prints, and the words are Slurm's own."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.services.follower.io.follower import STORE
from shadowtime.services.processes.ask.words import WordReader
from shadowtime.services.processes.live.page_data import matches, overview
from shadowtime.services.processes.live.queue_rows import everything
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.messages.envelope import Envelope, JobChanged
from shadowtime.shared.streaming.state.run_follower import reading
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.follower_process import FollowerProcess, following
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import SlurmCluster, unavailable

pytestmark = pytest.mark.nightly

SECONDS = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    require_reason(unavailable())
    with SlurmCluster() as made:
        yield made


async def page_of(follower: FollowerProcess, log: list[Envelope]) -> dict[str, object]:
    """Return the reasons on the live page by id of the job, and the jobs that a search for a user finds."""
    runs = LiveRuns()
    for envelope in log:
        runs.push(envelope)
    view = runs.view(follower.run)
    async with reading(follower.settings, STORE) as reader:
        words = await WordReader(reader).of(view.opened.cluster, follower.run)
    state = overview(view, words)
    users = {job.user_id for job in view.jobs.waiting.values()}
    found = [matches(view, words.name("user", user), everything, words) for user in users]
    return {
        "waiting": {words.job(number): job.site_reason for number, job in view.jobs.waiting.items()},
        "rows": {state["ids"].get(number, str(number)) for number in state["queue"]},
        "users": set(state["users"].values()),
        "found": {row[1] for each in found for row in each["jobs"] if row[3] == "waiting"},
    }


def test_the_log_and_the_page_have_the_words_of_squeue(
    cluster: SlurmCluster, kafka: Kafka, redis_server: Redis, tmp_path: Path
) -> None:
    with following(cluster, kafka, redis_server, tmp_path / "log") as follower:
        fills = cluster.submit("games", "fills", "-n", "32", "-t", "30", wrap="sleep 1000")
        cluster.wait_for(fills, "RUNNING")
        for number in range(30):
            cluster.submit("games", f"waits{number}", "-n", str(1 + number), "-t", "20", wrap="sleep 5")
        cluster.submit("games", "array", "-n", "2", "-t", "20", "--array=0-3", wrap="sleep 5")
        cluster.submit("games", "after", f"--dependency=afterok:{fills}", "-n", "1", "-t", "5", wrap="sleep 5")
        held = cluster.submit("games", "held", "-n", "1", "-t", "5", wrap="sleep 5")
        cluster.control("hold", str(held))
        time.sleep(SECONDS)  # Slurm looks at all jobs, and gives each its reason
        text = cluster.run("squeue", "-h", "-r", "-t", "PD", "-O", "JobArrayID:|,Reason:|")
        log = follower.wait_until_told(int(time.time()))
        page = asyncio.run(page_of(follower, log))

    lines = [line.split("|")[:2] for line in text.splitlines()]
    said = {job.strip(): reason.strip() for job, reason in lines}
    waiting = page["waiting"]
    assert isinstance(waiting, dict)
    assert {"Priority", "Resources"} <= set(waiting.values())
    assert {job: said[job] for job in waiting} == {job: reason or "None" for job, reason in waiting.items()}
    rows = page["rows"]
    assert isinstance(rows, set)
    assert rows <= set(said)
    assert page["users"] == {"games"}
    assert page["found"] == set(waiting)
    changes = [envelope.event for envelope in log if isinstance(envelope.event, JobChanged)]
    counted = Counter(change.site_reason for change in changes if change.site_reason is not None)
    assert sum(counted.values()) <= 3 * len(waiting)
