"""A worker is healthy once it has begun, while it reads the partitions that it owns, and says why it is not."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker import health as worker_health
from shadowtime.shared.streaming.worker.context import WorkerMetrics
from shadowtime.shared.streaming.worker.health import WorkerHealth
from shadowtime.shared.streaming.worker.loop import WorkerLoop

STAGE = STAGES[0]


class Consumer:
    """Owns partitions of the stage's topic; a partition that was read has a high-water mark."""

    def __init__(self, **marks: int | None) -> None:
        self.marks = {TopicPartition(STAGE.reads, int(name[1:])): mark for name, mark in marks.items()}

    def assignment(self) -> list[Any]:
        return list(self.marks)

    def highwater(self, place: Any) -> int | None:
        return self.marks[place]


def loop_with(consumer: Any) -> WorkerLoop:
    loop = WorkerLoop(cast("Any", SimpleNamespace(consumer=consumer)), STAGE, Settings(), WorkerMetrics(STAGE.name))
    idle = SimpleNamespace(busy_seconds=0.0)
    worker = SimpleNamespace(quarantined={}, altered={}, replaced_logs={}, thread=idle, untaken=0)
    loop.worker = cast("Any", worker)
    return loop


def test_a_worker_that_has_not_begun_is_starting_and_not_healthy() -> None:
    loop = WorkerLoop(cast("Any", None), STAGE, Settings(), WorkerMetrics(STAGE.name))
    healthy, told = WorkerHealth(loop).report()
    assert (healthy, told["healthy"], told["state"]) == (False, False, "starting")
    assert told["reason"] == "it is starting"


@pytest.mark.parametrize(
    ("marks", "reason"),
    [
        ({"p0": 0, "p3": 17}, None),
        ({"p0": 0, "p3": None, "p1": None}, "partitions 1, 3 are not read for 11 s"),
        ({}, "no partition for 11 s"),
    ],
)
def test_a_worker_that_does_not_serve_is_not_healthy_for_long(
    monkeypatch: pytest.MonkeyPatch, marks: dict[str, int | None], reason: str | None
) -> None:
    """Its lag is unknown then, so that it seemed to have nothing to do."""
    now = 100.0
    monkeypatch.setattr(worker_health.time, "monotonic", lambda: now)
    loop = loop_with(Consumer(**marks))
    loop.last_progress = now
    health = WorkerHealth(loop)
    assert health.report()[0]
    now = loop.last_progress = 111.0
    healthy, told = health.report()
    assert (healthy, told["reason"]) == (reason is None, reason)


def test_a_worker_without_progress_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(worker_health.time, "monotonic", lambda: now)
    loop = loop_with(Consumer(p0=1))
    loop.last_progress = now
    health = WorkerHealth(loop)
    now += loop.settings.watchdog_seconds / 2
    healthy, told = health.report()
    assert not healthy
    assert told["reason"] == f"no progress for {loop.settings.watchdog_seconds / 2:.0f} s"
