"""Replays of sacct's files on machines whose nodes have GPUs of several types."""

from pathlib import Path

import pytest

from shadowtime.replayer.api.api import read_log
from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.replayer.simulation.source import ReplaySource
from shadowtime.shared.accounting.machine_parts import read_parts
from shadowtime.shared.errors import TraceError
from shadowtime.shared.messages.envelope import ClusterOpened, JobStarted, JobSubmitted
from shadowtime.shared.messages.gpu_types import GpuType
from shadowtime.testing.chain import Chain

NODES = """NodeName=g1 CPUTot=8 RealMemory=4000 Gres=gpu:A100:2(S:0-1) Partitions=gpu
NodeName=g2 CPUTot=8 RealMemory=4000 Gres=gpu:v100:4 Partitions=gpu
NodeName=h1 CPUTot=8 RealMemory=4000 Gres=gpu:v100:4 Partitions=other
"""
HEAD = (
    "JobIDRaw|State|Submit|Eligible|Start|End|TimelimitRaw|AllocCPUS|NNodes|ReqTRES|AllocTRES|NodeList|User|Partition"
)
ROWS = (
    (1, 100, 110, 210, "gres/gpu=2,gres/gpu:a100=2", "gres/gpu=2,gres/gpu:a100=2", "g1", "gpu"),
    (2, 101, 210, 290, "gres/gpu=1,gres/gpu:a100=1", "gres/gpu=1,gres/gpu:a100=1", "g1", "gpu"),
    (3, 102, 102, 202, "gres/gpu=4", "gres/gpu=4,gres/gpu:v100=4", "g2", "gpu"),
    (4, 103, 203, 210, "gres/gpu=1", "gres/gpu=1", "g2", "gpu"),
    (5, 104, 104, 210, "gres/gpu=1,gres/gpu:v100=1", "gres/gpu=1,gres/gpu:v100=1", "h1", "other"),
    (6, 105, 300, 310, "gres/gpu=3,gres/gpu:a100=3", "gres/gpu=3,gres/gpu:a100=3", "g1", "gpu"),
    (7, 106, 300, 310, "gres/gpu=1,gres/gpu:h100=1", "gres/gpu=1,gres/gpu:h100=1", "g1", "gpu"),
)


def a100(gpus: int) -> GpuType:
    return GpuType(name="a100", gpus=gpus)


def v100(gpus: int) -> GpuType:
    return GpuType(name="v100", gpus=gpus)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    lines = [
        f"{job}|COMPLETED|{T + submit}|{T + submit}|{T + start}|{T + end}|10|1|1|{asked}|{got}|{node}|eve|{part}"
        for job, submit, start, end, asked, got, node, part in ROWS
    ]
    (tmp_path / "sacct").write_text("\n".join([HEAD, *lines, ""]))
    (tmp_path / "nodes").write_text(NODES)
    return tmp_path / "sacct", tmp_path / "nodes"


T = 1_795_000_000


def events(jobs: Workload, source: ReplaySource, mode: str) -> Chain:
    chain = Chain(
        ClusterOpened(
            time=0,
            cluster="c",
            processors=jobs.processors,
            pools=jobs.pools,
            policy="easy",
            mode=mode,  # type: ignore[arg-type]
        )
    )
    for _ in chain.play(source):
        pass
    return chain


def test_jobs_ask_for_their_types_and_hold_what_they_got(files: tuple[Path, Path]) -> None:
    jobs = read_log(files[0], pools=files[1], recorded=True)
    assert jobs.pools is not None
    assert [pool.types for pool in jobs.pools] == [("a100", "v100"), ()]
    log = [envelope.event for envelope in events(jobs, Recorded(jobs), "recorded").read["scheduler"]]
    asked = {event.job_number: event.gpu_type for event in log if isinstance(event, JobSubmitted)}
    assert asked == {1: "a100", 2: "a100", 3: None, 4: None, 5: None}
    got = {event.job_number: event.gpu_types for event in log if isinstance(event, JobStarted)}
    assert got == {1: (a100(2),), 2: (a100(1),), 3: (v100(4),), 4: (v100(1),), 5: None}, (
        "the node of job 4 tells the type"
    )


def test_jobs_that_no_type_can_hold_are_left_out(files: tuple[Path, Path]) -> None:
    assert read_log(files[0], pools=files[1]).skipped == {"more GPUs of its type than its pool has": 2}


def test_a_closed_replay_does_not_give_v100_to_who_wants_a100(files: tuple[Path, Path]) -> None:
    jobs = read_log(files[0], pools=files[1])
    log = [envelope.event for envelope in events(jobs, Machine(jobs), "closed").read["scheduler"]]
    started = {event.job_number: (event.time, event.gpu_types) for event in log if isinstance(event, JobStarted)}
    assert started == {
        1: (0, (a100(2),)),
        2: (100, (a100(1),)),  # it waits for job 1, although all v100 are free
        3: (2, (v100(4),)),
        4: (100, (a100(1),)),  # the type of which most are free at its start
        5: (4, None),
    }


def test_a_file_of_pools_may_state_types(tmp_path: Path) -> None:
    path = tmp_path / "pools.toml"
    path.write_text('[[pool]]\nname = "gpu"\nprocessors = 8\ngpu_types = { a100 = 2, v100 = 4 }\n')
    (pool,) = read_parts(path).pools
    assert (pool.gpus, pool.gpu_types) == (6, (a100(2), v100(4)))
    path.write_text('[[pool]]\nname = "gpu"\nprocessors = 8\ngpus = 5\ngpu_types = { a100 = 2, v100 = 4 }\n')
    with pytest.raises(TraceError, match="pool 'gpu' has 5 gpus, but its gpu_types have 6 in all"):
        read_parts(path)


def test_a_file_of_pools_is_measured_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a file with characters of several bytes would be cut, and its last pools would be missing."""
    path = tmp_path / "pools.toml"
    size = path.write_bytes(f'[[pool]]\nname = "{"é" * 20}"\nprocessors = 8\n'.encode())
    monkeypatch.setattr("shadowtime.shared.accounting.machine_parts.MAX_SIZE", size - 1)
    with pytest.raises(TraceError, match=f"expected at most {size - 1} bytes"):
        read_parts(path)
    with pytest.raises(TraceError, match="expected at most"):
        read_parts(Path("/dev/zero"))  # it has no size
