"""Cells on the cores of this machine: as many processes as asked for, each of which imports once."""

import multiprocessing
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread

from shadowtime.replayer.campaign.cell_run import Outcome, carry_out_cell
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.shared.errors import ReplayError


def on_cores(cells: Sequence[Cell], processes: int) -> Generator[tuple[Cell, Outcome], None, None]:
    """Carry out cells, and yield each with what came of it as it is done.

    Each process is an executor of its own, so that of one that dies it is known at which cell.

    Raises
    ------
    ReplayError
        If a process dies; names the cell.
    ShadowtimeError
        If a cell cannot be carried out.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([carry_out_cell.__module__])
    waiting = iter(cells)
    executors = [ProcessPoolExecutor(1, context, _begin) for _ in range(min(processes, len(cells)))]
    busy: dict[Future[Outcome], tuple[ProcessPoolExecutor, Cell]] = {}

    def give(executor: ProcessPoolExecutor) -> None:
        if (cell := next(waiting, None)) is not None:
            with _naming(cell):
                busy[executor.submit(carry_out_cell, cell)] = executor, cell

    try:
        for executor in executors:
            give(executor)
        while busy:
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                executor, cell = busy.pop(future)
                with _naming(cell):
                    outcome = future.result()
                give(executor)
                yield cell, outcome
    finally:
        for process in multiprocessing.active_children() if busy else ():
            process.kill()
        for executor in executors:
            executor.shutdown(cancel_futures=True)


@contextmanager
def _naming(cell: Cell) -> Iterator[None]:
    """Let a process that died name its cell."""
    try:
        yield
    except BrokenProcessPool:
        raise ReplayError(f"{cell.name}: its process died: killed, or out of memory") from None


def _begin() -> None:
    """Let Ctrl-C be the parent's business, and let no process outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
