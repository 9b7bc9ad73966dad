"""Tests of what a Slurm source believes: answers that contradict each other are not."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey, Node
from shadowtime.services.follower.io.process import health_of
from shadowtime.services.follower.io.slurm import SlurmSource
from shadowtime.services.follower.io.slurm_commands import SlurmJobs, SlurmNodes
from shadowtime.services.follower.options import FollowOptions
from shadowtime.services.follower.slurm.load import Load
from shadowtime.shared.errors import ContradictionError
from shadowtime.shared.messages.envelope import Event, JobEnded, JobSubmitted

EVERY = 0.01
NOW = int(time.time())
RUNS = JobObservation(
    LifeKey(7, -1, NOW - 500), "running", 0, NOW - 500, NOW - 490, limit=6000, processors=4, partition="batch"
)
RUNS.node_list = "n1"
ELSEWHERE = replace(RUNS, key=LifeKey(8, -1, NOW - 400), eligible=NOW - 400, start=NOW - 400, node_list="n2")


def nodes(*held: int, memory: int = 0) -> SlurmNodes:
    return SlurmNodes(
        [Node(f"n{number}", ("batch",), 4, memory, 0, 4, count) for number, count in enumerate(held, 1)], {"batch": 0}
    )


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source's clock stands at `NOW`: these tests may run long after they were collected."""
    stopped = SimpleNamespace(time=lambda: float(NOW), monotonic=time.monotonic)
    for module in ("slurm", "mirrored"):
        monkeypatch.setattr(f"shadowtime.services.follower.io.{module}.time", stopped)


class Answers:
    """A Slurm of two nodes, whose answers can be set."""

    def __init__(self, shown: Iterable[JobObservation], *held: int) -> None:
        self.shown, self.held, self.refused = list(shown), held, 0
        self.accounts: list[JobObservation] = []
        self.spent: float | None = 0.0
        self.time = NOW
        self.hides = True
        self.manages: bool | None = True
        self.memory = 0

    async def load(self) -> Load:
        self.time += 1
        return Load(self.time, NOW - 1_000, 10, self.spent, 0)

    async def machine(self) -> SlurmNodes:
        return nodes(*self.held, memory=self.memory)

    async def jobs(self, machine: SlurmNodes) -> SlurmJobs:
        return SlurmJobs(self.shown, {each.node_list for each in self.shown})

    async def accounted(self, *_: Any, **__: Any) -> list[JobObservation]:
        return self.accounts

    async def may_hide_jobs(self) -> bool:
        return self.hides

    async def manages_memory(self, machine: SlurmNodes) -> bool | None:
        return self.manages

    async def close(self) -> None:
        pass


def met(answers: Answers) -> SlurmSource:
    source = SlurmSource(FollowOptions(every=EVERY, patience=600), answers)
    asyncio.run(source.meet())
    return source


def look(source: SlurmSource) -> list[Event]:
    asyncio.run(source.listen())
    told: list[Event] = []
    while source.next_time() is not None:
        told += source.next_instant()
    return told


def health(source: SlurmSource) -> tuple[bool, dict[str, Any]]:
    followed = SimpleNamespace(
        run="mine/live", sequence=5, source=source, behind=source.load.behind, failure=lambda: None
    )
    return health_of(cast("Any", followed))


def test_a_new_run_without_the_right_to_see_jobs_is_refused() -> None:
    with pytest.raises(ContradictionError, match=r"sinfo has jobs on n1, n2, but squeue shows none there.*PrivateData"):
        met(Answers([], 4, 4))


def test_lost_rights_end_no_job_and_turn_health_red() -> None:
    answers = Answers([RUNS, ELSEWHERE], 4, 4)
    source = met(answers)
    look(source)
    answers.shown = []  # PrivateData=jobs
    answers.accounts = [RUNS, ELSEWHERE]
    assert [event for event in look(source) if isinstance(event, JobEnded)] == []
    well, page = health(source)
    assert (well, source.load.contradicted) == (False, True)
    assert "sinfo has jobs on n1, n2" in page["reason"]
    answers.shown = [RUNS, ELSEWHERE]
    look(source)
    well, page = health(source)
    assert (well, "reason" in page, source.load.failures) == (True, False, 1)


def test_where_slurm_allocates_no_memory_it_keeps_no_job_waiting() -> None:
    """With CR_Core, squeue prints all memory of a node for each waiting job, and none for a running one.

    So each job that had waited held a node's memory for all its run: shadows started one job for each node.
    """
    waits = replace(RUNS, key=LifeKey(9, -1, NOW - 300), state="waiting", start=None, eligible=NOW - 300, memory=3700)
    waits.node_list = ""
    for manages, memory, pool in ((False, None, None), (True, 3700, 8000), (None, 3700, 8000)):
        answers = Answers([RUNS, waits], 4, 0)
        answers.manages, answers.memory = manages, 4000
        source = met(answers)
        (job,) = [event for event in look(source) if isinstance(event, JobSubmitted) and event.job_number == 9]
        assert (job.memory, source.mirror.parts.pools[0].memory) == (memory, pool)


@pytest.mark.parametrize(("accounts", "warned"), [([], True), ([RUNS], False)])
def test_a_past_without_the_running_jobs_is_reported(
    accounts: list[JobObservation], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """With PrivateData=jobs in slurmdbd.conf alone, the log had no past, and nobody heard of it."""
    answers = Answers([RUNS, ELSEWHERE], 4, 4)
    answers.accounts = accounts
    source = SlurmSource(FollowOptions(every=EVERY, patience=600, history=3_600), answers)
    asyncio.run(source.meet())
    for _ in range(3):
        look(source)
    told = [record.getMessage() for record in caplog.records if "accounting has none" in record.getMessage()]
    assert len(told) == warned
    assert all("none of the 2 jobs that squeue shows as running, such as 7:" in text for text in told)


def test_a_node_that_has_lost_count_of_its_processors_stops_nothing() -> None:
    """Its job has ended, and slurmctld still counts the processors as allocated. No job is hidden."""
    answers = Answers([RUNS, ELSEWHERE], 4, 4)
    answers.hides = False
    source = met(answers)
    look(source)
    ended = replace(ELSEWHERE, state="over", end=NOW - 5, run_time=395)
    answers.shown, answers.accounts = [RUNS], [ended]
    (over,) = [event for _ in range(3) for event in look(source) if isinstance(event, JobEnded)]
    assert over.run_time == 395
    assert (health(source)[0], source.load.contradicted) == (True, False)


def test_a_job_that_alone_is_no_longer_shown_and_whose_processors_are_in_use_is_not_ended() -> None:
    """As when a user sees its own jobs only, on nodes that it shares."""
    mine = replace(RUNS, processors=2)
    other = replace(ELSEWHERE, processors=2, node_list="n1")
    answers = Answers([mine, other], 4, 0)
    source = met(answers)
    look(source)
    answers.shown, answers.accounts = [mine], [mine, other]
    for _ in range(5):
        assert [event for event in look(source) if isinstance(event, JobEnded)] == []
    assert "squeue does not show job 8" in health(source)[1]["reason"]


def test_a_job_that_accounting_has_for_ever_and_that_holds_nothing_is_only_in_doubt() -> None:
    answers = Answers([RUNS, ELSEWHERE], 4, 4)
    source = met(answers)
    look(source)
    answers.shown, answers.held, answers.accounts = [RUNS], (4, 0), [ELSEWHERE]
    look(source)
    assert (source.load.contradicted, [key.job for key in source.mirror.doubts]) == (False, [8])


def test_a_node_whose_job_changes_between_two_answers_is_no_contradiction() -> None:
    class Changing(Answers):
        async def jobs(self, machine: SlurmNodes) -> SlurmJobs:
            self.held = (4, 0)
            return await super().jobs(machine)

    met(Changing([RUNS], 4, 4))


def test_above_its_share_of_slurmctld_the_follower_looks_less_often() -> None:
    answers = Answers([RUNS], 4, 0)
    source = met(answers)
    look(source)
    for _ in range(3):
        answers.spent = (answers.spent or 0) + 0.1  # of a second
        look(source)
    assert source.load.share == pytest.approx(0.1)
    assert source.every == EVERY * 8
    answers.spent = None
    look(source)
    assert source.load.share is None


@pytest.mark.parametrize("ahead", [-4_000, 0, 4_000])
def test_another_clock_than_that_of_slurmctld_changes_nothing(ahead: int) -> None:
    """With a clock minutes ahead, the follower asked accounting without a pause, and never took a picture."""

    class Counted(Answers):
        asked = 0

        async def accounted(self, *_: Any, **__: Any) -> list[JobObservation]:
            self.asked += 1
            return self.accounts

    answers = Counted([], 0, 0)
    answers.time = NOW - ahead
    source = met(answers)
    for _ in range(5):
        look(source)
    assert source.mirror.picture == []
    assert (answers.asked, health(source)[0]) == (0, True)
    assert health(source)[1]["behind_seconds"] < 60
    restored = SlurmSource(FollowOptions(every=EVERY, patience=600), answers)
    restored.restore(source.snapshot())
    look(restored)
    assert (answers.asked, restored.mirror.picture) == (0, [])
    answers.time += 3_600  # away for an hour
    restored = SlurmSource(FollowOptions(every=EVERY, patience=600), answers)
    restored.restore(source.snapshot())
    look(restored)
    assert (answers.asked, restored.mirror.picture) == (1, None)
