"""Work beside the event loop: the loop goes on, and what takes too long ends."""

import asyncio
import ctypes
import threading
import time

import pytest

from shadowtime.shared.kernels.decorator import kernel
from shadowtime.shared.streaming.worker import time_limited_thread as work_thread
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread, TimeLimitExceeded


def for_ever() -> None:
    while True:
        pass


def busy(seconds: float) -> str:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return "done"


@kernel
def counted(most: int) -> int:
    total = 0
    for number in range(most):
        total = total % 1_000_003 * 31 + number  # each step waits for the one before
    return total


def test_the_loop_goes_on_meanwhile() -> None:
    async def work() -> int:
        thread = TimeLimitedThread("test", 60.0)
        task = asyncio.create_task(thread.run(busy, 0.5))
        beats = 0
        while not task.done():
            await asyncio.sleep(0.02)
            beats += 1
        assert task.result() == "done"
        assert thread.busy_seconds == 0
        thread.close()
        return beats

    assert asyncio.run(work()) > 5


def test_what_takes_too_long_is_ended_and_the_next_work_is_done() -> None:
    async def work() -> None:
        thread = TimeLimitedThread("test", 0.2)
        for _ in range(3):
            with pytest.raises(TimeLimitExceeded):
                await thread.run(for_ever)
            assert await thread.run(busy, 0.01) == "done"
        thread.close()

    asyncio.run(work())


def test_work_that_hears_nothing_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code has no ear for exceptions: the next work has a thread of its own."""
    counted(1)
    monkeypatch.setattr(work_thread, "GRACE_SECONDS", 0.1)

    async def work() -> None:
        thread = TimeLimitedThread("test", 0.2)
        with pytest.raises(TimeLimitExceeded):
            await thread.run(counted, 2_000_000_000)
        assert await thread.run(busy, 0.01) == "done"
        thread.close()

    asyncio.run(work())


def test_standing_still_does_not_count() -> None:
    async def work() -> None:
        thread = TimeLimitedThread("test", 0.2)
        await thread.run(time.sleep, 0.7)
        thread.close()

    asyncio.run(work())


def test_errors_are_those_of_the_work() -> None:
    async def work() -> None:
        thread = TimeLimitedThread("test", 1.0)
        with pytest.raises(ZeroDivisionError):
            await thread.run(lambda: 1 // 0)
        thread.close()

    asyncio.run(work())


def test_a_part_that_begins_has_the_whole_time() -> None:
    async def work() -> None:
        thread = TimeLimitedThread("test", 0.2)

        def parts(seconds: float) -> str:
            for _ in range(3):
                thread.begin()
                busy(seconds)
            return "done"

        assert await thread.run(parts, 0.1) == "done"
        with pytest.raises(TimeLimitExceeded):
            await thread.run(parts, 0.5)
        thread.close()

    asyncio.run(work())


def test_a_part_is_not_ended_for_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was ended just as it came to its end hears it before the next part begins."""
    received: list[str] = []

    async def work() -> None:
        thread, ended = TimeLimitedThread("test", 0.2), threading.Event()

        def parts() -> None:
            while not ended.is_set():  # the error is on its way then
                pass
            thread.begin()
            received.append("the next part has begun")

        with monkeypatch.context() as patch:
            patch.setattr(ctypes.pythonapi, "PyThreadState_SetAsyncExc", lambda *_: ended.set())
            with pytest.raises(TimeLimitExceeded):
                await thread.run(parts)
        assert not received
        assert await thread.run(busy, 0.01) == "done"
        thread.close()

    asyncio.run(work())
