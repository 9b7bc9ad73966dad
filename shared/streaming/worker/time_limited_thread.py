"""A thread beside the event loop for work of any length, so that heartbeats and pages continue meanwhile."""

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from shadowtime.shared.errors import WorkCancelled

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

GRACE_SECONDS = 5.0
"""Seconds within which interrupted work must end. Compiled code is interrupted only when it returns."""

MOMENT = 0.001


class TimeLimitExceeded(WorkCancelled):
    """Work took too long and was ended."""


class TimeLimitedThread:
    """Runs one piece of work at a time.

    Parameters
    ----------
    seconds
        The limit of the work's processor time, which does not pass while the machine is stopped. Beyond it,
        `TimeLimitExceeded` is raised in the work. Work that does not end within `GRACE_SECONDS` is abandoned; the next
        work has a new thread.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()
        self._worker: int | None = None
        self._processor_time = 0.0
        self._ended = False
        self._began: float | None = None
        self._executor = self._new()

    def _new(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, thread_name_prefix=self._name)

    @property
    def busy_seconds(self) -> float:
        """Seconds that the work under way has taken so far; 0 if there is none."""
        return 0.0 if self._began is None else asyncio.get_running_loop().time() - self._began

    async def run(
        self, work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return the result of `work`, or raise its error. Earlier work is finished first.

        Raise `TimeLimitExceeded` if the work took too long. The objects that it worked on must not be used afterwards.
        """
        async with self._turn:
            return await self._run(lambda: work(*arguments, **named))

    async def _run(self, work: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        future = loop.run_in_executor(self._executor, self._watched, work)
        try:
            left = self._seconds
            while not (await asyncio.wait({future}, timeout=max(left, MOMENT)))[0]:
                with self._lock:
                    left = self._left()
                    if left <= 0:
                        self._interrupt()

                if left <= 0:
                    await asyncio.wait({future}, timeout=GRACE_SECONDS)
                    break

            if not future.done():
                future.add_done_callback(lambda left: None if left.cancelled() else left.exception())
                self._executor.shutdown(wait=False)
                self._executor = self._new()
                raise TimeLimitExceeded

            return future.result()
        finally:
            self._began = None

    def close(self) -> None:
        """Let the thread end, once its work has."""
        self._executor.shutdown(wait=False)

    def begin(self) -> None:
        """Restart the time limit, from within the work, for the next part of it.

        Raise `TimeLimitExceeded` if the part before it took too long, and ended just when its time was over.
        """
        with self._lock:
            if self._worker == threading.get_ident() and not self._ended:
                self._processor_time = time.thread_time()
                return
        raise TimeLimitExceeded  # the exception is on its way, or the work swallowed it

    def _watched(self, work: Callable[[], Result]) -> Result:
        with self._lock:
            self._worker = threading.get_ident()
            self._processor_time = time.thread_time()
            self._ended = False

        try:
            return work()
        finally:
            with self._lock:
                if self._worker == threading.get_ident():  # abandoned work must not touch the state of the next
                    self._worker = None

    def _left(self) -> float:
        """Return the processor time that the work under way still has, in seconds."""
        if self._worker is None:
            return self._seconds
        used = time.clock_gettime(time.pthread_getcpuclockid(self._worker)) - self._processor_time
        return self._seconds - used

    def _interrupt(self) -> None:
        """Raise `TimeLimitExceeded` in the thread."""
        self._ended = True
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(self._worker or 0), ctypes.py_object(TimeLimitExceeded)
        )
