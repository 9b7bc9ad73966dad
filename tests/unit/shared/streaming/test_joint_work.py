"""Slices that wait at the same time are worked out in one go; what one of them does is its own."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from shadowtime.shared.messages.envelope import ClusterOpened, Envelope
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.stage import Stage, StageRun
from shadowtime.shared.streaming.worker import batched_compute as joint_work
from shadowtime.shared.streaming.worker.batched_compute import ComputeBatcher
from shadowtime.shared.streaming.worker.slices import Slice, Work
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread
from tests.support.memory_stream import Message
from tests.unit.shared.streaming.fragile_stage import Panic


class Counted(TimeLimitedThread):
    goes = 0

    async def run(self, work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self.goes += 1
        return await super().run(work, *arguments, **named)


def opening(works: Callable[[ClusterOpened], object]) -> tuple[StageRun, list[Work], Slice]:
    """Return a run whose stage does as told at its first event, that event, and a slice that is empty."""

    def handler(opened: ClusterOpened) -> StageHandler:
        works(opened)
        return StageHandler(opened)

    envelope = Envelope(run="x", sequence=0, event=ClusterOpened(time=0, cluster="x", processors=4))
    return StageRun(Stage("test", "jobs", "out", handler)), [(Message(envelope.to_bytes(), 0), envelope)], Slice(-1)


def nothing(_: ClusterOpened) -> None:
    """Take no time."""


def busy(seconds: float) -> Callable[[ClusterOpened], None]:
    def work(_: ClusterOpened) -> None:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    return work


def for_ever(_: ClusterOpened) -> None:
    while True:
        pass


def failing(_: ClusterOpened) -> None:
    raise ZeroDivisionError


async def all_of(joint: ComputeBatcher, *works: Callable[[ClusterOpened], object]) -> list[tuple[bool, int]]:
    """Return of slices that wait at the same time whether each took too long, and how many events it has done."""

    async def one(work: Callable[[ClusterOpened], object]) -> tuple[bool, int]:
        state, events, done = opening(work)
        async with joint.compute(state, events, done) as overrun:
            return overrun, len(done.outputs)

    return list(await asyncio.gather(*map(one, works)))


@pytest.fixture
def thread() -> Counted:
    return Counted("test", 0.2)


def together(thread: Counted, *works: Callable[[ClusterOpened], object]) -> list[tuple[bool, int]]:
    async def all_work() -> list[tuple[bool, int]]:
        try:
            return await all_of(ComputeBatcher(thread, 1_000_000, time.monotonic), *works)
        finally:
            thread.close()

    return asyncio.run(all_work())


def test_what_waits_at_the_same_time_is_handed_over_once(thread: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_work, "TOGETHER_SECONDS", 60.0)  # on a busy machine even nothing takes long
    assert together(thread, *[nothing] * 50) == [(False, 1)] * 50
    assert thread.goes == 1


def test_what_takes_long_is_handed_over_by_itself(thread: Counted) -> None:
    """Others are settled meanwhile."""
    assert together(thread, nothing, busy(0.03), busy(0.03), nothing) == [(False, 1)] * 4
    assert thread.goes == 3


def test_each_has_the_whole_time_and_only_the_one_that_overruns_is_ended(thread: Counted) -> None:
    together_for = [busy(0.12)] * 4
    assert together(thread, *together_for, for_ever, nothing, busy(0.12)) == (
        [(False, 1)] * 4 + [(True, 0)] + [(False, 1)] * 2
    )


def test_the_time_of_one_that_came_to_its_end_does_not_count_for_the_next(
    thread: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one go of the thread, too."""
    monkeypatch.setattr(joint_work, "TOGETHER_SECONDS", 60.0)
    assert together(thread, *[busy(0.12)] * 4) == [(False, 1)] * 4
    assert thread.goes == 1


def test_one_that_fails_is_settled_before_the_next_is_worked_out(thread: Counted) -> None:
    """Its undoing may take much memory."""
    order = []

    async def work() -> None:
        joint = ComputeBatcher(thread, 1_000_000, time.monotonic)

        async def one(name: str, works: Callable[[ClusterOpened], object]) -> None:
            def noted(opened: ClusterOpened) -> None:
                order.append(f"{name} worked out")
                works(opened)

            state, events, done = opening(noted)
            async with joint.compute(state, events, done):
                await asyncio.sleep(0.02)
                order.append(f"{name} settled")

        await asyncio.gather(one("first", failing), one("second", nothing))
        thread.close()

    asyncio.run(work())
    assert order == ["first worked out", "first settled", "second worked out", "second settled"]


def test_an_error_of_the_thread_is_told_to_who_waits(thread: Counted) -> None:
    async def work() -> None:
        thread.close()
        with pytest.raises(RuntimeError):
            await all_of(ComputeBatcher(thread, 1_000_000, time.monotonic), nothing, nothing)

    asyncio.run(asyncio.wait_for(work(), 20))


def test_others_are_settled_while_one_takes_long(thread: Counted) -> None:
    times: dict[str, float] = {}

    async def work() -> None:
        joint = ComputeBatcher(thread, 1_000_000, time.monotonic)

        async def one(name: str, works: Callable[[ClusterOpened], object]) -> None:
            async with joint.compute(*opening(works)):
                times[name] = time.monotonic()

        began = time.monotonic()
        await asyncio.gather(one("quick", nothing), one("slow", lambda _: time.sleep(1.0)))
        thread.close()
        assert times["quick"] - began < 0.5
        assert times["slow"] - began > 0.9

    asyncio.run(work())


def panicking(_: ClusterOpened) -> None:
    raise Panic


def test_whatever_one_raises_the_others_go_on(thread: Counted) -> None:
    assert together(thread, nothing, panicking, nothing) == [(False, 1)] * 3


def test_who_is_ended_while_work_is_under_way_is_told(thread: Counted) -> None:
    async def work() -> None:
        joint = ComputeBatcher(thread, 1_000_000, time.monotonic)
        waiting = [asyncio.create_task(all_of(joint, busy(0.1))) for _ in range(2)]
        await asyncio.sleep(0.02)
        (going,) = (each for each in asyncio.all_tasks() if "coro=<ComputeBatcher." in repr(each))
        going.cancel()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [asyncio.CancelledError] * 2
        assert await all_of(joint, nothing) == [(False, 1)]
        thread.close()

    asyncio.run(asyncio.wait_for(work(), 20))
