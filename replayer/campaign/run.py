"""The steps of a campaign: find its logs, replay the unfinished cells, store, write and print the results."""

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from shadowtime.replayer.campaign.cell_run import CellResult, Figures, carry_out_cell
from shadowtime.replayer.campaign.file import Campaign
from shadowtime.replayer.campaign.grid import Cell, grid_of
from shadowtime.replayer.campaign.logs import find_logs, report_log
from shadowtime.replayer.campaign.tables import LogTable, as_latex, print_tables, tables_of
from shadowtime.replayer.io import CLOCKS, in_processes
from shadowtime.replayer.logs import write_columns
from shadowtime.shared.cli import messages, say
from shadowtime.shared.cores import usable_cores
from shadowtime.shared.errors import ReplayError, SettingsError, reason_of
from shadowtime.shared.formatting import duration
from shadowtime.shared.output import require_places, result_file
from shadowtime.shared.quoting import quote

# Progress and remaining time of a campaign: a progress bar on a terminal, else a line now and then.

Item = TypeVar("Item")
EVERY = 30.0
"""Minimum seconds between two progress lines if the output is not a terminal."""


def with_cell_progress(results: Iterator[Item], total: int) -> Iterator[Item]:
    """Yield the results unchanged, and show on the standard error how many of `total` are done."""
    if not messages.is_terminal:
        yield from _in_lines(results, total)
        return
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        yield from progress.track(results, total=total)


def _in_lines(results: Iterator[Item], total: int) -> Iterator[Item]:
    began = reported = CLOCKS.now()[0]
    for done, result in enumerate(results, 1):
        yield result
        now = CLOCKS.now()[0]
        if now - reported >= EVERY and done < total:
            reported = now
            say(f"{done:,} of {total:,} cells, about {duration((now - began) / done * (total - done))} left")


if TYPE_CHECKING:
    from shadowtime.replayer.campaign.store import Store

HERE = "here"
"""Place of execution that means this process. Callers from Python use it."""

CarryOut = Callable[[Sequence[Cell]], Generator[tuple[Cell, CellResult], None, None]]


@dataclass(frozen=True)
class How:
    """Options of a campaign run: its file, the folder of its logs, the place of execution and the output files.

    `out` is the folder of the results. `on` and `workers` are the place of execution and its number of processes.
    `first` limits the jobs of each log. `shared` is the folder of the finished cells, if several campaigns share them.
    `kept` says whether the results stay after the call. None means the default, or no such file.
    """

    file: Path
    logs: Path
    out: Path | None
    workers: int | None
    on: str
    first: int | None
    report: Path | None
    csv: Path | None
    latex: Path | None
    shared: Path | None = None
    kept: bool = True


class Replayed(NamedTuple):
    """A campaign whose cells are all replayed."""

    campaign: Campaign
    cells: Sequence[Cell]
    rows: Sequence[Figures]
    """The figures of the cells."""

    store: "Store"
    seconds: float
    """Sum of the elapsed seconds of the replays, each on one processor."""

    @property
    def tables(self) -> list[LogTable]:
        """A table for each log."""
        return tables_of(self.campaign, self.cells, self.rows)


def run_campaign(campaign: Campaign, how: How) -> None:
    """Replay the unfinished cells of a campaign, write the files that `how` names, and print its tables.

    Raise `ShadowtimeError` if a log is missing, a cell cannot be replayed, or a file cannot be written.
    """
    done = replayed(campaign, how, report_logs=True)
    write_files(done, how)
    print_tables(done.campaign, done.tables)


def replayed(campaign: Campaign, how: How, *, report_logs: bool = False) -> Replayed:
    """Replay the unfinished cells of a campaign, and return all cells with their figures.

    With `report_logs`, first report the jobs that are left out of each log, unless all cells are finished.

    Raise `ShadowtimeError` if a log is missing, a cell cannot be replayed, or a file cannot be written.
    """
    if how.first is not None:
        if campaign.paper:
            say(f"{campaign.name}: --first: the paper's figures are left out, because they are of whole logs")
        campaign = campaign.model_copy(update={key: {} for key in ("paper", "bold", "labels", "reasons", "notes")})
    logs = find_logs(campaign, how.logs, how.first)
    require_places((how.report, how.csv, how.latex), (how.file, *(log.path for log in logs)))
    cells = grid_of(campaign, logs)
    from shadowtime.replayer.campaign.store import MEASURED, Store  # imported late, to report missing logs first

    carry_out_all = _place(how)
    store = Store(how.out or Path(f"{campaign.name}-results"), how.shared)
    rows = {cell: row for cell in cells if (row := store.row(cell)) is not None}
    left = [cell for cell in cells if cell not in rows]
    place = f"; results in {store.folder}" if how.kept else ""
    say(f"{campaign.name}: {len(cells):,} cells, {len(rows):,} of them done before{place}")
    for log in logs if left and report_logs else ():
        report_log(log)
    if left:
        with closing(carry_out_all(left)) as results:  # on an error, closing ends all processes
            for cell, outcome in with_cell_progress(results, len(left)):
                store.keep(cell, outcome)
                rows[cell] = outcome.row

    in_order: list[Figures] = [rows[cell] for cell in cells]
    table = store.write_table(cells, in_order)
    spent = sum(row[MEASURED[0]] for row in in_order)
    place = f"; rows in {table}" if how.kept else ""
    say(f"{campaign.name}: all done, {duration(spent)} of replays{place}")
    return Replayed(campaign, cells, in_order, store, spent)


def _place(how: How) -> CarryOut:
    """Return the function that replays cells, on the cores of this machine or on Dask."""
    if how.on == HERE:
        return lambda cells: ((cell, carry_out_cell(cell)) for cell in cells)
    place, _, address = how.on.partition("=")
    processes = how.workers or usable_cores()
    if how.on == "cores":
        return lambda cells: in_processes(carry_out_cell, cells, processes, attrgetter("name"))
    if place != "dask":
        raise SettingsError(f"--on {quote(how.on)}: expected cores, dask or dask=ADDRESS")
    return lambda cells: on_dask(cells, processes, address or None)


# Cells on Dask: on local workers, or on the workers of a running scheduler.

CONNECT_SECONDS = 10


def on_dask(
    cells: Sequence[Cell], processes: int, address: str | None
) -> Generator[tuple[Cell, CellResult], None, None]:
    """Replay cells, and yield each cell with its result as soon as it is done.

    Parameters
    ----------
    processes
        Maximum number of local workers, if no scheduler is named.
    address
        Address of a Dask scheduler, such as `tcp://host:8786`; None for local workers. The workers of the scheduler
        need Shadowtime installed, and the logs under the same paths.

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
                raise SettingsError(
                    f"--on dask={address}: no scheduler answers ({reason_of(error)}); start it, or correct its address"
                ) from None

        futures = {client.submit(carry_out_cell, cell, key=f"cell-{cell.digest}"): cell for cell in cells}
        for future in as_completed(list(futures)):
            cell = futures.pop(future)
            try:
                outcome: CellResult = future.result()
            except KilledWorker:
                raise ReplayError(
                    f"{cell.name}: the worker ended abnormally, killed or out of memory; give each worker more memory"
                ) from None

            yield cell, outcome


def write_files(done: Replayed, how: How) -> None:
    """Write the files that `how` names."""
    if how.csv is not None:
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(done.store.folder / "table.parquet")
        with result_file(how.csv) as file:
            write_columns(file, how.csv, table.to_pydict())

    if how.latex is not None:
        with result_file(how.latex) as file:
            file.write(as_latex(done.campaign, done.tables).encode())
    if how.report is not None:
        from shadowtime.replayer.campaign.page import page

        with result_file(how.report) as file:
            file.write(page(done.campaign, done.cells, done.rows, done.tables, done.store).encode())
