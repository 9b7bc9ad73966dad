"""A worker knows what it may use, and holds no more runs than fit."""

import asyncio
import mmap
import time
from pathlib import Path
from typing import Any, cast

import pytest

from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker import stage_worker
from shadowtime.shared.streaming.worker.context import WorkerContext
from shadowtime.shared.streaming.worker.run_cache import memory_limit, memory_used
from tests.support.memory_stream import hand_over
from tests.unit.shared.streaming.fragile_stage import ALONE, HONEST, STAGE, Bench, MemoryStore, log_of, told

MACHINE = memory_limit("")


def test_memory_that_is_used_counts() -> None:
    before = memory_used()
    with mmap.mmap(-1, 64_000_000) as block:  # the allocator of Python may have such a block left
        for at in range(0, len(block), mmap.PAGESIZE):
            block[at] = 1
        assert 60_000_000 < memory_used() - before < 80_000_000


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/a/b", {"a/memory.max": "5000", "a/b/memory.max": "max"}, 5000),
        ("0::/a/b", {"a/memory.max": "5000", "a/b/memory.max": "4000"}, 4000),
        ("0::/a/b", {"memory.max": "3000"}, 3000),
        ("0::/", {"memory.max": "3000"}, 3000),
        ("3:cpu,memory:/a\n1:pids:/b", {"memory/a/memory.limit_in_bytes": "7000", "b/memory.max": "1"}, 7000),
        ("3:memory:/docker/x", {"memory/memory.limit_in_bytes": "7000"}, 7000),
        ("1:pids:/b", {"b/memory.max": "1"}, MACHINE),
        ("0::/a", {"a/memory.max": str(2**62)}, MACHINE),
    ],
)
def test_the_smallest_limit_around_a_process_counts(
    tmp_path: Path, groups: str, files: dict[str, str], limit: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert memory_limit(groups, tmp_path) == limit


def test_runs_are_evicted_while_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 runs of 27 MB each, counted by their snapshots of 1.4 kB, ended a worker of 512 MB again and again."""
    monkeypatch.setattr(stage_worker, "RELIEF_SECONDS", 0.0)
    used = {"bytes": 0}
    monkeypatch.setattr(stage_worker, "memory_used", lambda: used["bytes"])
    names = [f"run-{number}" for number in range(20)]
    bench = Bench(log_of(*((name, told(name, HONEST)) for name in names)))

    async def work() -> None:
        await hand_over(bench.worker, bench.log[:20])
        assert all(bench.worker.holds(name.encode()) for name in names)
        used["bytes"] = MACHINE
        await hand_over(bench.worker, bench.log[20:40])
        assert not any(bench.worker.holds(name.encode()) for name in names)
        used["bytes"] = 0
        await hand_over(bench.worker, bench.log[40:])

    asyncio.run(work())
    assert all(bench.counts(name) == ALONE for name in names)


@pytest.mark.parametrize(("megabytes", "share"), [(0, MACHINE), (512, 512_000_000), (10**9, MACHINE)])
def test_a_worker_may_be_given_less_than_the_machine_has(megabytes: int, share: int) -> None:
    settings = Settings(memory_mb=megabytes)
    context = WorkerContext(STAGE, MemoryStore(), cast("Any", None), settings, cast("Any", None), 1, time.monotonic)
    assert context.memory_for_runs == pytest.approx(0.6 * min(share, memory_limit()))
