"""Types of GPUs: what jobs ask for and get, what nodes have, and for which type a job waits."""

import asyncio
import json
from dataclasses import replace
from typing import cast

import pytest

from shadowtime.services.follower.cluster.accounted_lives import observations_of_rows
from shadowtime.services.follower.cluster.mirror import Mirror
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey, shifted
from shadowtime.services.follower.io.slurm import SlurmSource
from shadowtime.services.follower.io.slurm_commands import SlurmClient, SlurmJobs, SlurmNodes
from shadowtime.services.follower.options import FollowOptions
from shadowtime.services.follower.slurm.squeue import node_rows, nodes_of
from shadowtime.services.processes.ask.cluster_queue import QueueAnswer, WaitingRow
from shadowtime.services.processes.ask.queue_text import queue_lines
from shadowtime.services.scheduler.explain.stage import Explaining
from shadowtime.shared.accounting import sacct
from shadowtime.shared.accounting.machine_parts import parts_of_nodes
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    Event,
    JobChanged,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.gpu_types import GpuType
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.text.explanations import brief_of
from tests.unit.services.follower.looks import WAITS as SEEN
from tests.unit.services.follower.looks import look, mirror
from tests.unit.services.follower.slurm_texts import WAITS, read, row

TYPES = (GpuType(name="a100", gpus=2), GpuType(name="v100", gpus=4))
A100 = "cpu=8,mem=7200M,node=1,gres/gpu=2,gres/gpu:a100=2"


def test_pools_name_their_types_only_if_there_are_several() -> None:
    has = {"processors": 8, "nodes": 1, "memory": 4000}
    nodes = [
        ("g1", ["gpu"], has | {"gpus": 2}, {"a100": 2}),
        ("g2", ["gpu"], has | {"gpus": 4}, {"v100": 4}),
        ("h1", ["other"], has | {"gpus": 4}, {"v100": 4}),
    ]
    mixed, alike = parts_of_nodes(nodes).pools
    assert (mixed.gpus, mixed.gpu_types) == (6, TYPES)
    assert (alike.gpus, alike.gpu_types) == (4, None)


def test_a_job_names_the_type_that_it_asks_for_and_keeps_it_as_it_starts() -> None:
    assert read(WAITS).gpu_type == ""
    assert read(WAITS, **{"tres-alloc": A100}).gpu_type == "a100"
    seen = mirror()
    (told,) = look(seen, 20, replace(SEEN, gpu_type="a100"))
    assert isinstance(told, JobSubmitted)
    assert told.gpu_type == "a100"
    assert look(seen, 30, replace(SEEN, gpu_type="v100")) == [JobChanged(time=29, job_number=7, gpu_type="v100")]
    runs = replace(SEEN, state="running", start=35, gpu_type="a100")  # what it got, of any type
    assert [type(event) for event in look(seen, 40, runs)] == [JobStarted]


NODES = (
    "g1|gpu|1|mixed|2/6/0/8|4000|1000|gpu:A100:2(S:0-1)|gpu:A100:1(IDX:0)|\n"
    "g2|gpu|1|idle|0/8/0/8|4000|0|gpu:v100:4|gpu:v100:0(IDX:N/A)|\n"
)


def gpu_mirror() -> Mirror:
    nodes = nodes_of(node_rows(NODES), {})
    parts = parts_of_nodes((node.name, node.partitions, node.has, node.gpu_types) for node in nodes)
    return Mirror(parts, NameTable(Names()), 0)


def pictured(**changes: str) -> JobObservation:
    (seen,) = shifted([read(WAITS, Partition="gpu", NumCPUs="1", NumNodes="1", **changes)], 1795541100)
    return seen


RUNS = {"State": "RUNNING", "NodeList": "g1", "StartTime": "1795541170", "Reason": "None"}


@pytest.mark.parametrize(
    ("resources", "got"),
    [
        ("cpu=1,gres/gpu=2,gres/gpu:a100=2", (GpuType(name="a100", gpus=2),)),
        (
            "cpu=1,gres/gpu=3,gres/gpu:v100=1,gres/gpu:a100=2",
            (GpuType(name="a100", gpus=2), GpuType(name="v100", gpus=1)),
        ),
        ("cpu=1,gres/gpu=1", (GpuType(name="a100", gpus=1),)),  # as its node tells
        ("cpu=1", None),
    ],
)
def test_a_start_says_which_gpus_a_job_got(resources: str, got: tuple[GpuType, ...] | None) -> None:
    seen = gpu_mirror()
    look(seen, 60, pictured(**{"tres-alloc": "cpu=1,gres/gpu=2"}))
    events = look(seen, 90, pictured(**RUNS, **{"tres-alloc": resources}))
    assert [event.gpu_types for event in events if isinstance(event, JobStarted)] == [got]


def test_the_types_of_nodes_are_stored_and_those_of_new_nodes_are_learnt() -> None:
    """After a restart of the follower, no node told the type of the GPUs of a job."""

    class Client:
        refused = 0

        async def machine(self) -> SlurmNodes:
            return SlurmNodes(nodes_of(node_rows(NODES), {}), {"gpu": 0})

        async def jobs(self, machine: SlurmNodes) -> SlurmJobs:
            return SlurmJobs([], {"g1"})

        async def manages_memory(self, machine: SlurmNodes) -> bool:
            return True

        async def load(self) -> None:
            return None

    met, restored = (SlurmSource(FollowOptions(), cast("SlurmClient", Client())) for _ in range(2))
    asyncio.run(met.meet())
    restored.restore(json.loads(json.dumps(met.snapshot())))
    seen = restored.mirror
    at = seen.now + 60
    job = replace(
        SEEN, key=LifeKey(7, -1, at), eligible=at, start=at, state="running", partition="gpu", nodes=1, gpus=1
    )
    events = look(seen, at + 60, replace(job, node_list="g1"))
    more = nodes_of(node_rows(f"{NODES}g3|gpu|1|idle|0/8/0/8|4000|0|gpu:v100:4|gpu:v100:0|\n"), {})
    seen.capacity.see(more)
    events += look(seen, at + 90, replace(job, node_list="g1"), replace(job, key=LifeKey(8, -1, at), node_list="g3"))
    got = [event.gpu_types for event in events if isinstance(event, JobStarted)]
    assert got == [(GpuType(name="a100", gpus=1),), (GpuType(name="v100", gpus=1),)]


def test_what_a_job_got_is_stored() -> None:
    seen = pictured(**RUNS, **{"tres-alloc": "gres/gpu=6,gres/gpu:v100=4,gres/gpu:a100=2"})
    assert seen.got == TYPES
    assert JobObservation.of_plain(seen.plain()) == seen


def test_the_nodes_of_a_job_on_several_tell_no_type() -> None:
    seen = gpu_mirror()
    waits, runs = pictured(**{"tres-alloc": "gres/gpu=2"}), pictured(**RUNS, **{"tres-alloc": "gres/gpu=2"})
    look(seen, 60, waits)
    events = look(seen, 90, replace(runs, nodes=2, node_list="g[1-2]"))
    assert [event.gpu_types for event in events if isinstance(event, JobStarted)] == [None]


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        ("cpu=1,gres/gpu=3,gres/gpu:a100=3", "larger than its pool"),
        ("cpu=1,gres/gpu=1,gres/gpu:h100=1", "larger than its pool"),
        ("cpu=1,gres/gpu=3,gres/gpu:v100=3", None),
        ("cpu=1,gres/gpu=6", None),
        ("cpu=1,gres/gpu=7", "larger than its pool"),
    ],
)
def test_a_job_for_which_no_type_suffices_is_left_out_as_too_large(resources: str, reason: str | None) -> None:
    seen = gpu_mirror()
    events = look(seen, 60, pictured(**{"tres-alloc": resources}))
    assert any(isinstance(event, JobSubmitted) for event in events) is (reason is None)
    assert dict(seen.left_out) == ({} if reason is None else {reason: 1})


def test_gpus_of_a_node_that_takes_no_jobs_are_gone_but_for_those_in_use() -> None:
    seen = gpu_mirror()
    seen.capacity.see(nodes_of(node_rows(NODES.replace("mixed", "mixed+drain").replace("idle", "down")), {}))
    (change,) = look(seen, 60)
    assert isinstance(change, CapacityChanged)
    assert (change.processors, change.memory, change.gpus) == (2, 1000, 1)
    assert change.gpu_types == (GpuType(name="a100", gpus=1), GpuType(name="v100", gpus=0))
    state = seen.capacity.snapshot(), seen.capacity.snapshot(seen=True)
    seen.capacity.see(nodes_of(node_rows(NODES), {}))
    (change,) = look(seen, 70)
    assert isinstance(change, CapacityChanged)
    assert (change.gpus, change.gpu_types) == (6, TYPES)
    seen.capacity.restore(*state)
    assert (seen.capacity.snapshot(), seen.capacity.snapshot(seen=True)) == state


def test_accounting_says_what_a_job_asked_for_and_what_it_got() -> None:
    fields = row("7", "COMPLETED", "1795541140", "1795541140", "1795541170", "1795541200", "30")
    values = dict(zip(sacct.FIELDS, fields, strict=True))
    values |= {"ReqTRES": "cpu=1,gres/gpu=1", "AllocTRES": "cpu=1,gres/gpu=1,gres/gpu:v100=1"}
    (seen,), refused = observations_of_rows([list(values.values())], "sacct")
    assert (seen.gpu_type, seen.got, refused) == ("", (GpuType(name="v100", gpus=1),), 0)


def explained(
    *, gpus: int, kind: str | None, types: tuple[GpuType, ...] | None = TYPES, holds: tuple[GpuType, ...] = ()
) -> str:
    """Return why a job waits beside another one, which holds GPUs."""
    pool = Pool(name="gpu", processors=8, gpus=6, gpu_types=types)
    opened = ClusterOpened(time=0, cluster="mine", processors=8, mode="recorded", pools=(pool,))
    stage = Explaining(opened)
    held = sum(each.gpus for each in holds)
    first = JobSubmitted(time=0, job_number=6, requested_processors=1, requested_time=60, pool=0, gpus=held)
    job = first.replaced(job_number=7, gpus=gpus, gpu_type=kind)
    begun = JobStarted(time=0, job_number=6, processors=1, limit=60, gpu_types=holds)
    events: list[Event] = [first, begun, job]
    for at, event in enumerate(events, 1):
        stage.handle(Envelope(run="r", sequence=at, event=event))
    why = stage.explain(7, "r", 3)
    assert why is not None
    return brief_of(why)


def test_why_names_the_type_for_which_a_job_waits() -> None:
    a100 = (GpuType(name="a100", gpus=1),)
    most = (GpuType(name="a100", gpus=1), GpuType(name="v100", gpus=4))
    assert explained(gpus=2, kind="a100", holds=a100) == "It needs 2 a100 GPUs, and 1 is free."
    assert explained(gpus=4, kind="v100", holds=a100).startswith("It fits")
    assert explained(gpus=2, kind=None, holds=most) == "It needs 2 GPUs of any type, and 1 is free."
    assert explained(gpus=2, kind="a100+v100", holds=most) == "It needs 2 GPUs of any type, and 1 is free."
    assert explained(gpus=6, kind=None, types=None, holds=a100) == "It needs 6 GPUs, and 5 are free."


def test_the_queue_names_the_type_for_which_a_job_waits() -> None:
    row = WaitingRow(
        job_id="7",
        job_number=7,
        user="eve",
        partition="gpu",
        processors=1,
        requested_time=60,
        since=0,
        place=0,
        waits_for="gpus",
        gpu_type="a100",
        starts=None,
        why="It needs 2 a100 GPUs, and 1 is free.",
    )
    answer = QueueAnswer(
        cluster="mine", run="r", sequence=1, time=60, unix_start=0, waiting=(row,), running=(), log_age=None
    )
    assert any("a100" in line.split() for line in queue_lines(answer, 80))
