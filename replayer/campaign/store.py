"""What a campaign leaves in its folder: a Parquet file of each cell that is done, and the table of all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shadowtime.replayer.campaign.cell_run import Figures, Outcome
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.output import result_file
from shadowtime.replayer.run_record import JobTimes
from shadowtime.shared.errors import OutputError

MEASURED = ("elapsed_seconds", "cpu_seconds")
"""Figures of a clock: each cell has its own, the table of all has none, so that it is the same whoever makes it."""


class Store:
    """The folder of a campaign's results; each file in it is complete or not there.

    Parameters
    ----------
    folder
        Is made if it is not there.

    Raises
    ------
    OutputError
        If it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            for part in ("cells", "jobs"):
                (folder / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be made: {error.strerror}") from None

    def keep(self, cell: Cell, outcome: Outcome) -> None:
        """Write what came of a cell; the row last, which says that the cell is done."""
        if outcome.jobs is not None:
            self._write(self._jobs(cell), {name: getattr(outcome.jobs, name) for name in JobTimes.FIELDS})
        self._write(self._row(cell), {key: [value] for key, value in outcome.row.items()})

    def row(self, cell: Cell) -> Figures | None:
        """Return the row of a cell that is done; None of one that is not, or whose file is damaged."""
        try:
            (row,) = pq.read_table(self._row(cell)).to_pylist()
        except (FileNotFoundError, pa.ArrowInvalid, ValueError):
            return None
        found: Figures = row
        return None if cell.keeps_jobs and not self._jobs(cell).is_file() else found

    def jobs(self, cell: Cell) -> JobTimes:
        """Return when the jobs of a cell ran that keeps them."""
        table = pq.read_table(self._jobs(cell))
        return JobTimes(*(np.asarray(table[name], dtype=np.int64) for name in JobTimes.FIELDS))

    def write_table(self, cells: Sequence[Cell], rows: Sequence[Figures]) -> Path:
        """Write the rows of all cells in their order, each with its log, its row and its digest; return the file."""
        whole = [
            {"log": cell.log.label, "row": cell.label, "cell": cell.digest}
            | {key: value for key, value in row.items() if key not in MEASURED}
            for cell, row in zip(cells, rows, strict=True)
        ]
        path = self.folder / "table.parquet"
        keys = dict.fromkeys(key for row in whole for key in row)
        self._write(path, {key: [row.get(key) for row in whole] for key in keys})
        return path

    def _row(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.digest}.parquet"

    def _jobs(self, cell: Cell) -> Path:
        return self.folder / "jobs" / f"{cell.digest}.parquet"

    @staticmethod
    def _write(path: Path, columns: Mapping[str, Any]) -> None:
        with result_file(path) as file:
            pq.write_table(pa.table(dict(columns)), file)
