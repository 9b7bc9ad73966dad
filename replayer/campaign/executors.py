"""Executors that replay cells on the cores of this machine or on the workers of a Dask scheduler."""

import logging
import multiprocessing
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from threading import Thread

from shadowtime.replayer.campaign.cell_run import CellResult, carry_out_cell
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.shared.errors import ReplayError, SettingsError, reason_of


def on_cores(cells: Sequence[Cell], processes: int) -> Generator[tuple[Cell, CellResult], None, None]:
    """Replay cells, and yield each cell with its result as soon as it is done.

    Each process has its own executor. So an error can name the cell of a process that dies.

    Raises
    ------
    ReplayError
        If a process dies. The error names the cell.
    ShadowtimeError
        If a cell cannot be replayed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([carry_out_cell.__module__])
    waiting = iter(cells)
    executors = [ProcessPoolExecutor(1, context, _begin) for _ in range(min(processes, len(cells)))]
    busy: dict[Future[CellResult], tuple[ProcessPoolExecutor, Cell]] = {}

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
    """Raise `ReplayError` with the name of the cell if its process dies."""
    try:
        yield
    except BrokenProcessPool:
        raise ReplayError(f"{cell.name}: the process ended abnormally: killed, or out of memory") from None


def _begin() -> None:
    """Leave Ctrl-C to the parent process, and exit when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# Cells on Dask: on local workers, or on the workers of a running scheduler.

CONNECT_SECONDS = 10


def on_dask(
    cells: Sequence[Cell], processes: int, address: str | None
) -> Generator[tuple[Cell, CellResult], None, None]:
    """Replay cells, and yield each cell with its result as soon as it is done.

    Parameters
    ----------
    processes
        Number of local workers, if no scheduler is named.
    address
        Address of a Dask scheduler, as `tcp://host:8786`; None for local workers. Its workers need Shadowtime
        installed and the logs under the same path.

    Raises
    ------
    SettingsError
        If no scheduler answers.
    ReplayError
        If a cell kills its workers. The error names the cell.
    ShadowtimeError
        If a cell cannot be replayed.
    """
    from distributed import Client, KilledWorker, LocalCluster, as_completed  # here, because it is an optional extra

    with ExitStack() as stack:
        if address is None:
            cluster = LocalCluster(
                n_workers=min(processes, len(cells)),
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        else:
            try:
                client = stack.enter_context(Client(address, timeout=CONNECT_SECONDS))
            except (OSError, ValueError) as error:
                raise SettingsError(f"--on dask={address}: no scheduler answers: {reason_of(error)}") from None

        futures = {client.submit(carry_out_cell, cell, key=f"cell-{cell.digest}"): cell for cell in cells}
        for future in as_completed(list(futures)):
            cell = futures.pop(future)
            try:
                outcome: CellResult = future.result()
            except KilledWorker:
                raise ReplayError(f"{cell.name}: the worker ended abnormally: killed, or out of memory") from None

            yield cell, outcome
