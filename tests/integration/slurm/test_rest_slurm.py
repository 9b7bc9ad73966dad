"""A real Slurm tells the same through slurmrestd as by its commands."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey, Node
from shadowtime.services.follower.io.slurm_commands import ByCommands, SlurmClient, SlurmNodes
from shadowtime.services.follower.io.slurm_rest import ByRest
from shadowtime.services.follower.options import FollowOptions
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import REST_COMMAND, REST_USER, USERS, SlurmCluster, unavailable

ODD = ",".join(str(number * number) for number in range(1, 26))
"""An array of which the tasks take more than the 64 characters that are told unasked."""

STEPPED = range(3, 31, 3)
"""An array with a step; `squeue -r` of 22.05 leaves out the last task of one that waits, slurmrestd does not."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    require_reason(unavailable(REST_COMMAND))
    with SlurmCluster(4, rest=True) as made:
        yield made
        for user in USERS:
            made.run("scancel", "-u", user)
        made.wait_until_idle(30)  # what still runs would outlive its slurmd


def submit_all(cluster: SlurmCluster) -> dict[str, int]:
    """Submit jobs of all kinds, return their numbers once each is in the state that it is called by."""
    submit, control = cluster.submit, cluster.control
    first, second, third, fourth, _ = USERS
    long = "sleep 300"
    jobs = {
        "requeued": submit(second, "requeued", "-n", "1", "-t", "5", "--requeue", wrap=long),
        "suspended": submit(second, "suspended", "-n", "1", "-t", "5", wrap=long),
        "cancelled": submit(second, "cancelled", "-n", "1", "-t", "5", wrap=long),
        "failed": submit(second, "failed", "-n", "1", "-t", "2", wrap="sleep 1; exit 3"),
        "completed": submit(second, "a|b", "-n", "1", "-t", "2", wrap="sleep 1"),
        "running": submit(first, "two\nlines\udcff", "-n", "2", "-t", "5", wrap=long),
        "exclusive": submit(first, "exclusive", "-N", "1", "--exclusive", "-t", "5", wrap=long),
        "unlimited": submit(first, "unlimited", "-p", "low", "-n", "2", "-t", "UNLIMITED", wrap=long),
    }
    for name in ("requeued", "suspended", "cancelled", "running"):
        cluster.wait_for(jobs[name], "RUNNING")
    jobs |= {
        "array": submit(third, "array", "--array=0-5%2", "-n", "1", "-t", "3", wrap=long),
        "held": submit(third, "held", "--hold", "-n", "4", "-t", "3", wrap=long),
        "odd": submit(third, "odd", f"--array={ODD}", "--hold", "-n", "1", "-t", "3", wrap=long),
        "large": submit(fourth, "large", "-N", "40", "-t", "2", wrap=long),
        "wide": submit(fourth, "wide", "-N", "40", "-t", "2", wrap=long),
        "partitions": submit(fourth, "partitions", "-p", "debug,batch", "-n", "4", "-t", "2", wrap=long),
        "range": submit(fourth, "range", "-N", "2-3", "--exclusive", "-t", "2", wrap=long),
        "stepped": submit(fourth, "stepped", "--array=3-30:3", "-n", "4", "-t", "2", wrap=long),
        "dropped": submit(fourth, "dropped", "--array=1-3", "-n", "16", "-t", "2", wrap=long),
    }
    het = ("-D", "/tmp", "-o", "/dev/null", "-J", "het", "-n9", "-t2", "--wrap", long, ":", "-n4", "-t2")
    cluster.run("sbatch", *het, user=third)
    control("suspend", str(jobs["suspended"]))
    control("requeue", str(jobs["requeued"]))
    cluster.run("scancel", *(str(jobs[name]) for name in ("cancelled", "wide", "dropped")))
    control("update", "nodename=n04", "state=drain", "reason=test")
    for name in ("cancelled", "failed", "completed"):
        cluster.wait_for(jobs[name], name.upper())
    return jobs


async def both(
    tell: Callable[[SlurmClient], Awaitable[Any]], commands: SlurmClient, rest: SlurmClient
) -> tuple[Any, Any]:
    """Return what commands and slurmrestd tell at a moment before and after which commands told the same."""
    until = time.monotonic() + 30
    while True:
        before, told, after = await tell(commands), await tell(rest), await tell(commands)
        if before == after:
            return before, told
        assert time.monotonic() < until, "it changes all the time"


def in_order(machine: SlurmNodes) -> tuple[list[Node], dict[str, int]]:
    """Return nodes with their partitions in order: sinfo has another each time."""
    return [node._replace(partitions=tuple(sorted(node.partitions))) for node in machine.nodes], dict(machine.tiers)


def by_life(observations: Sequence[JobObservation]) -> dict[tuple[LifeKey, int | None], JobObservation]:
    found = {(observation.key, observation.start): observation for observation in observations}
    assert len(found) == len(observations)
    return found


@pytest.mark.nightly
def test_slurmrestd_tells_what_the_commands_tell(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])
    jobs = submit_all(cluster)
    asyncio.run(
        compare(jobs, ByCommands(FollowOptions()), ByRest(FollowOptions(rest=cluster.rest_url, rest_user=REST_USER)))
    )


async def compare(jobs: dict[str, int], commands: SlurmClient, rest: SlurmClient) -> None:
    async def machine_of(asked: SlurmClient) -> Any:
        return in_order(await asked.machine())

    async def jobs_of(asked: SlurmClient) -> Any:
        return by_life((await asked.jobs(await asked.machine())).observations)

    first = int(time.time()) - 3600

    async def past_of(asked: SlurmClient) -> Any:
        return by_life(await asked.accounted(first, int(time.time()) + 1))

    async def some_of(asked: SlurmClient) -> Any:
        return by_life(await asked.accounted(first, jobs=[jobs["requeued"], jobs["stepped"], jobs["running"]]))

    try:
        printed, told = await both(machine_of, commands, rest)
        assert told == printed
        printed, told = await both(jobs_of, commands, rest)
        left_out = told.keys() - printed.keys()
        assert {(key.job, key.task) for key, _ in left_out} <= {(jobs["stepped"], STEPPED[-1])}
        assert {life: told[life] for life in printed} == printed
        assert {"waiting", "running", "suspended", "over"} == {observation.state for observation in told.values()}
        assert {key.task for key, _ in told if key.job == jobs["odd"]} == set(map(int, ODD.split(",")))
        assert len(told) >= 50
        for asked in (past_of, some_of):
            printed, told = await both(asked, commands, rest)
            assert told == printed
            assert any(key.job == jobs["requeued"] and start is not None for key, start in told)
        assert await rest.accounted(1_000_000, 1_000_001) == []
        assert await rest.accounted(first, jobs=[99_999]) == []
        ours, theirs = await commands.load(), await rest.load()
        assert ours is not None
        assert theirs is not None
        assert 0 <= theirs.time - ours.time <= 2
        assert theirs.since == ours.since
        assert theirs.requests > 0 < (theirs.seconds or 0)  # of the user of slurmrestd
    finally:
        await rest.close()
