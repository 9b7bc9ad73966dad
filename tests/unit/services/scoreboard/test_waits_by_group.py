"""Waits of groups and reasons for waiting, as the dashboards show them, against counts by hand."""

import pytest

from shadowtime.services.scoreboard.waits_by_group import (
    ALL_JOBS,
    LARGEST,
    MAX_OWNERS,
    MAX_PARTITIONS,
    SHOWN_OWNERS,
    WaitsByGroup,
    reasons_for_waiting,
)
from shadowtime.shared.messages import GpuType, JobStarted, JobSubmitted, MachineCapacity, Pool
from shadowtime.shared.stages import RunningJob


def job(number: int = 1, processors: int = 4, **fields: object) -> JobSubmitted:
    return JobSubmitted(time=0, job_number=number, requested_processors=processors, **fields)  # type: ignore[arg-type]


def runs(processors: int, suspended: int | None = None, **fields: object) -> RunningJob:
    started = JobStarted(time=0, job_number=9, processors=processors)
    return RunningJob(job(9, processors, **fields), started, suspended)


@pytest.mark.parametrize(
    ("waiting", "reason"),
    [
        (job(processors=3), "too few processors free"),
        (job(processors=2), "fits, others go first"),
        (job(processors=9), "larger than the machine is now"),
        (job(processors=9, blocked=True), "blocked by the site"),
        (job(processors=1, memory=60), "too little memory free"),
        (job(processors=1, memory=200), "larger than the machine is now"),
        (job(processors=1, pool=1, gpus=1), "too few GPUs free"),
        (job(processors=1, pool=1), "fits, others go first"),
    ],
)
def test_a_job_waits_for_the_first_reason_that_applies(waiting: JobSubmitted, reason: str) -> None:
    """Of two pools, the first has 2 of 8 processors and 50 of 100 MiB free, the second no GPU. One job is suspended."""
    pools = [Pool(name="cpu", processors=8, memory=100), Pool(name="gpu", processors=4, gpus=2)]
    capacities = MachineCapacity(12, pools)
    running = [runs(6, memory=50), runs(2, suspended=5), runs(1, pool=1, gpus=2)]
    counts = reasons_for_waiting(capacities, [waiting], running)
    assert {name for name, count in counts.items() if count} == {reason}
    assert len(counts) == 6, "every reason that can apply is told, or a chart would not fall back to 0"


@pytest.mark.parametrize(("kind", "reason"), [("a100", "too few GPUs free"), ("v100", "fits, others go first")])
def test_a_job_waits_for_the_type_of_gpus_that_it_names(kind: str, reason: str) -> None:
    """Of 2 a100 and 2 v100, a job that runs has both a100."""
    types = GpuType(name="a100", gpus=2), GpuType(name="v100", gpus=2)
    capacities = MachineCapacity(4, [Pool(name="gpu", processors=4, gpus=4, gpu_types=types)])
    holds = runs(1, pool=0, gpus=2)
    holds = holds._replace(started=holds.started.replaced(gpu_types=types[:1]))
    counts = reasons_for_waiting(capacities, [job(processors=1, pool=0, gpus=1, gpu_type=kind)], [holds])
    assert {name for name, count in counts.items() if count} == {reason}


def test_a_machine_that_knows_no_memory_tells_of_none() -> None:
    assert set(reasons_for_waiting(MachineCapacity(8, ()), [], [])) == {
        "blocked by the site",
        "larger than the machine is now",
        "too few processors free",
        "fits, others go first",
    }


def test_a_wait_is_in_each_bucket_that_is_as_long_and_in_each_group_of_its_job() -> None:
    waits = WaitsByGroup()
    waits.add(job(processors=1, partition_number=3), 60)
    waits.add(job(processors=65), 61)
    waits.add(job(processors=64), 10**9)
    histograms = {group: dict(histogram) for group, histogram in waits.histograms()}
    assert set(histograms) == {ALL_JOBS, "1 processor", "9 to 64 processors", LARGEST, "partition 3"}
    assert list(histograms[ALL_JOBS].values()) == [1, 2, 2, 2, 2, 2, 2, 2, 3]
    assert histograms["9 to 64 processors"]["604800"] == 0


def test_owners_and_partitions_are_bounded_and_survive_a_restart() -> None:
    waits = WaitsByGroup()
    for number in range(MAX_OWNERS + 5):
        for _ in range(2 if number == 77 else 1):
            waits.add(job(user_id=number, group_id=number % 3, partition_number=number % 50), 10)
    assert len(waits.owners["user"]) == MAX_OWNERS
    assert sum(group.startswith("partition") for group in waits.buckets) == MAX_PARTITIONS
    restored = WaitsByGroup()
    restored.restore(waits.snapshot())
    for some in (waits, restored):
        shown = dict(some.largest())
        assert len(shown) == SHOWN_OWNERS + 3
        assert next(iter(shown)) == "user 77"
        assert shown["user 77"] == (2, 20)
