"""Executors that replay cells on the cores of this machine or on the workers of a Dask scheduler."""

import logging
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from operator import attrgetter

from shadowtime.replayer.campaign.cell_run import CellResult, carry_out_cell
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.io import in_processes
from shadowtime.shared.errors import ReplayError, SettingsError, reason_of


def on_cores(cells: Sequence[Cell], processes: int) -> Generator[tuple[Cell, CellResult], None, None]:
    """Replay cells, and yield each cell with its result as soon as it is done.

    Raises
    ------
    ReplayError
        If a process dies. The error names the cell.
    ShadowtimeError
        If a cell cannot be replayed.
    """
    return in_processes(carry_out_cell, cells, processes, attrgetter("name"))


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
