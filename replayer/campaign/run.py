"""A campaign, step by step: find its logs, carry out what is not done, write and tell what came of it."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shadowtime.replayer.campaign.cell_run import Figures, Outcome
from shadowtime.replayer.campaign.file import Campaign
from shadowtime.replayer.campaign.grid import Cell, grid_of
from shadowtime.replayer.campaign.logs import find_logs
from shadowtime.replayer.campaign.pool import on_cores
from shadowtime.replayer.campaign.progress import with_progress
from shadowtime.replayer.campaign.shown import as_latex, print_tables
from shadowtime.replayer.campaign.tables import tables_of
from shadowtime.replayer.output import require_places, result_file
from shadowtime.shared.command_line import say
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.formatting import duration
from shadowtime.shared.wording import quoted

if TYPE_CHECKING:
    from shadowtime.replayer.campaign.store import Store

CarryOut = Callable[[Sequence[Cell]], Generator[tuple[Cell, Outcome], None, None]]


@dataclass(frozen=True)
class How:
    """Where a campaign is told and finds its logs, on what it is carried out, and where its results go."""

    file: Path
    logs: Path
    out: Path | None
    jobs: int | None
    on: str
    first: int | None
    report: Path | None
    csv: Path | None
    latex: Path | None


def run_campaign(campaign: Campaign, how: How) -> None:
    """Carry out what is not done of a campaign, and print its tables.

    Raises
    ------
    ShadowtimeError
        If a log is missing, a cell cannot be carried out, or a file cannot be written.
    """
    if how.first is not None:  # the paper's figures are of whole logs
        campaign = campaign.model_copy(update={"paper": {}})
    logs = find_logs(campaign, how.logs, how.first)
    require_places((how.report, how.csv, how.latex), (how.file, *(log.path for log in logs)))
    cells = grid_of(campaign, logs)
    from shadowtime.replayer.campaign.store import MEASURED, Store  # behind it: a missing log is told before an extra

    carry_out_all = _place(how)
    store = Store(how.out or Path(f"{campaign.name}-results"))
    rows = {cell: row for cell in cells if (row := store.row(cell)) is not None}
    left = [cell for cell in cells if cell not in rows]
    say(f"{campaign.name}: {len(cells):,} cells, {len(rows):,} of them done before; results in {store.folder}")
    if left:
        with closing(carry_out_all(left)) as results:  # whatever goes wrong, no process is left at work
            for cell, outcome in with_progress(results, len(left)):
                store.keep(cell, outcome)
                rows[cell] = outcome.row
    in_order: list[Figures] = [rows[cell] for cell in cells]
    table = store.write_table(cells, in_order)
    spent = sum(row[MEASURED[0]] for row in in_order)
    say(f"{campaign.name}: all done, {duration(spent)} of replays; rows in {table}")
    _tell(campaign, cells, in_order, store, how)


def _place(how: How) -> CarryOut:
    """Return what carries out cells: on the cores of this machine, or on Dask."""
    place, _, address = how.on.partition("=")
    processes = how.jobs or os.cpu_count() or 1
    if how.on == "cores":
        return lambda cells: on_cores(cells, processes)
    if place != "dask":
        raise SettingsError(f"--on {quoted(how.on)}: expected cores, dask or dask=ADDRESS")
    from shadowtime.replayer.campaign.on_dask import on_dask

    return lambda cells: on_dask(cells, processes, address or None)


def _tell(campaign: Campaign, cells: Sequence[Cell], rows: Sequence[Figures], store: "Store", how: How) -> None:
    tables = tables_of(campaign, cells, rows)
    if how.csv is not None:
        import pyarrow.csv
        import pyarrow.parquet

        with result_file(how.csv) as file:
            pyarrow.csv.write_csv(pyarrow.parquet.read_table(store.folder / "table.parquet"), file)
    if how.latex is not None:
        with result_file(how.latex) as file:
            file.write(as_latex(campaign, tables).encode())
    if how.report is not None:
        from shadowtime.replayer.campaign.page import page

        with result_file(how.report) as file:
            file.write(page(campaign, cells, rows, tables, store).encode())
    print_tables(campaign, tables)
