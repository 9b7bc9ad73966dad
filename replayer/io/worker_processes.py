"""Parallel work in several processes, one item at a time in each."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import Array, c_int64
from threading import Thread
from typing import TypeVar

from shadowtime.shared.errors import ReplayError
from shadowtime.shared.kernels import uninterrupted

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

POLL_SECONDS = 0.1
"""Maximum seconds between two calls of `tick` while processes work."""

CONTEXT = multiprocessing.get_context("forkserver")


class Counters:
    """Numbers that processes write and their parent reads: how far each item is."""

    def __init__(self, items: int) -> None:
        self.shared: Array[c_int64] = CONTEXT.RawArray(c_int64, items)

    def __getitem__(self, place: int) -> int:
        return self.shared[place]


_written = Counters(0)


def count(place: int, number: int) -> None:
    """Report to the parent how far the item at this place is. Call it only within `in_processes` with `counters`."""
    _written.shared[place] = number


def in_processes(
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    processes: int,
    named: Callable[[Item], str],
    tick: Callable[[], None] | None = None,
    counters: Counters | None = None,
) -> Generator[tuple[Item, Outcome], None, None]:
    """Do the work on each item, in at most `processes` processes. Yield each item with its outcome once it is done.

    Each process has its own executor. Therefore an error can name the item of a process that dies. `named` returns the
    name of an item for errors. While the generator waits, it calls `tick` at least ten times a second; `tick` may raise
    to end all work. The work may `count` in `counters`.

    Raises
    ------
    ReplayError
        If a process dies. The error names the item.
    Exception
        What the work or `tick` raises.
    """
    CONTEXT.set_forkserver_preload([work.__module__])
    waiting = iter(items)
    executors = [
        ProcessPoolExecutor(1, CONTEXT, _begin, (_written.shared if counters is None else counters.shared,))
        for _ in range(min(processes, len(items)))
    ]
    busy: dict[Future[Outcome], tuple[ProcessPoolExecutor, Item]] = {}

    def give(executor: ProcessPoolExecutor) -> None:
        for item in waiting:
            with _naming(named(item)), uninterrupted():  # a half-started process is known to nobody, and not killed
                busy[executor.submit(work, item)] = executor, item
            return

    try:
        for executor in executors:
            give(executor)
        while busy:
            done = wait(busy, None if tick is None else POLL_SECONDS, FIRST_COMPLETED).done
            if tick is not None:
                tick()
            for future in done:
                executor, item = busy.pop(future)
                with _naming(named(item)):
                    outcome = future.result()
                give(executor)
                yield item, outcome
    finally:
        for process in multiprocessing.active_children() if busy else ():
            process.kill()
        for executor in executors:
            executor.shutdown(cancel_futures=True)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Raise `ReplayError` with the name of the item if its process dies."""
    try:
        yield
    except BrokenProcessPool:
        raise ReplayError(f"{name}: the process ended abnormally: killed, or out of memory") from None


def _begin(shared: "Array[c_int64]") -> None:
    """Leave Ctrl-C to the parent process, and exit when the parent exits."""
    _written.shared = shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
