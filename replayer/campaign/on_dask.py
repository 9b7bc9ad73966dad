"""Cells on Dask: workers of this machine, or those of a scheduler that runs somewhere."""

import logging
from collections.abc import Generator, Sequence
from contextlib import ExitStack

from distributed import Client, KilledWorker, LocalCluster, as_completed

from shadowtime.replayer.campaign.cell_run import Outcome, carry_out_cell
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.shared.errors import ReplayError, SettingsError, reason_of

CONNECT_SECONDS = 10


def on_dask(cells: Sequence[Cell], processes: int, address: str | None) -> Generator[tuple[Cell, Outcome], None, None]:
    """Carry out cells, and yield each with what came of it as it is done.

    Parameters
    ----------
    processes
        Workers of this machine, where no scheduler is named.
    address
        A scheduler's, as `tcp://host:8786`. Its workers have Shadowtime installed, and each finds the logs under the
        same path.

    Raises
    ------
    SettingsError
        If no scheduler answers.
    ReplayError
        If workers die of a cell; names it.
    ShadowtimeError
        If a cell cannot be carried out.
    """
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
                outcome: Outcome = future.result()
            except KilledWorker:
                raise ReplayError(f"{cell.name}: its worker died: killed, or out of memory") from None
            yield cell, outcome
