"""A worker is healthy once it has begun, while it reads the partitions that it owns, and says why it is not."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker import health as worker_health
from shadowtime.shared.streaming.worker import loop as worker_loop
from shadowtime.shared.streaming.worker.context import WorkerMetrics
from shadowtime.shared.streaming.worker.health import FAILED_TURNS, OLD_SECONDS, WorkerHealth
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
    worker = SimpleNamespace(quarantined={}, altered={}, replaced_logs={}, thread=idle, untaken=0, unsupported=None)
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


def test_a_worker_whose_records_wait_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(worker_health.time, "monotonic", lambda: now)
    loop = loop_with(Consumer(p0=1))
    loop.last_progress = now
    health = WorkerHealth(loop)
    loop.turns.put(b"run", cast("Any", SimpleNamespace(time=now)), 1)
    now = loop.last_progress = now + OLD_SECONDS
    assert (health.report()[0], health.report()[1]["oldest_waiting_seconds"]) == (True, OLD_SECONDS)
    now += 1
    healthy, told = health.report()
    assert (healthy, told["reason"]) == (False, "a message has waited for 301 s for its turn")


def test_a_worker_that_cannot_read_the_codec_of_its_topic_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_health.time, "monotonic", lambda: 100.0)
    loop = loop_with(Consumer(p0=1))
    loop.last_progress = 100.0
    cast("Any", loop.worker).unsupported = "record 3 cannot be read: its codec, lz4, is not supported"
    healthy, told = WorkerHealth(loop).report()
    assert not healthy
    assert told["reason"] == (
        "topic jobs: record 3 cannot be read: its codec, lz4, is not supported; "
        "set compression.type=producer on the topic: shadowtime topics"
    )


def test_a_worker_whose_turns_fail_is_not_healthy_and_makes_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn ends, so that it had seemed to make progress."""
    monkeypatch.setattr(worker_loop, "FAILED_SECONDS", 0.0)

    class Failing:
        def __init__(self) -> None:
            self.works = False
            self.quarantined: dict[str, str] = {}
            self.altered, self.replaced_logs = self.quarantined, self.quarantined
            self.thread, self.untaken = SimpleNamespace(busy_seconds=0.0), 0
            self.unsupported = None

        async def handle(self, received: object, seconds: float) -> dict[str, float]:
            if not self.works:
                raise ValueError("no matter what")
            return {}

        async def commit_all(self) -> dict[str, float]:
            return {}

        async def give_up(self) -> list[object]:
            return []

        def take_done(self) -> list[object]:
            return []

        def is_current(self, received: object) -> bool:
            return False

    async def work() -> None:
        loop = loop_with(Consumer(p0=1))
        worker = Failing()
        loop.worker = cast("Any", worker)
        health = WorkerHealth(loop)
        one = cast("Any", SimpleNamespace(record=SimpleNamespace(partition=0), epoch=1))
        for _ in range(FAILED_TURNS):
            assert health.report()[0]
            await loop.handle(loop.worker, [one])
        await loop.handle(loop.worker)
        assert health.report()[1]["reason"].startswith("its last 3 turns failed: ValueError: no matter what (test_")
        worker.works = True
        await loop.handle(loop.worker, [one])
        assert health.report()[0]

    asyncio.run(work())


def test_a_worker_that_is_ended_says_where_it_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def outer() -> None:
        await inner()

    async def inner() -> None:
        await asyncio.Event().wait()

    async def ended() -> None:
        loop = loop_with(Consumer(p0=9))
        loop.task = asyncio.create_task(outer())
        loop.busy, loop.last_progress = True, worker_health.time.monotonic() - loop.settings.watchdog_seconds - 1
        await WorkerHealth(loop).watch_progress()

    def end(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(worker_health.os, "_exit", end)
    with pytest.raises(SystemExit):
        asyncio.run(ended())
    assert re.search(
        r"restarting; it waits in outer \(test_worker_health.py:\d+\) > inner .* > wait \(locks", caplog.text
    )
