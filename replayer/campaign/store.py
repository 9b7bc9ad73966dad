"""The folder of a campaign: a Parquet file for each finished cell, and the table of all cells."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shadowtime.replayer.campaign.cell_run import CellResult, Figures
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.comparison import JobTimes
from shadowtime.shared.errors import OutputError
from shadowtime.shared.output import result_file

MEASURED = ("elapsed_seconds", "cpu_seconds", "cpu_milliseconds_per_job")
"""Figures of a clock: each cell has its own, the table of all has none, so that it is the same whoever makes it."""

PROOF = b"sha256"
"""Key of the file's metadata under which it says what is in it, and of which cell."""


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

    def keep(self, cell: Cell, outcome: CellResult) -> None:
        """Write what came of a cell; the row last, which says that the cell is done."""
        if outcome.jobs is not None:
            self._write_of(cell, self._jobs(cell), {name: getattr(outcome.jobs, name) for name in JobTimes.FIELDS})
        self._write_of(cell, self._row(cell), {key: [value] for key, value in outcome.row.items()})

    def row(self, cell: Cell) -> Figures | None:
        """Return the row of a cell that is done; None of one that is not, or of which a file is damaged."""
        table = self._read_of(cell, self._row(cell))
        if table is None or (cell.keeps_jobs and self._read_of(cell, self._jobs(cell)) is None):
            return None
        (row,) = table.to_pylist()
        figures: Figures = row
        return figures

    def jobs(self, cell: Cell) -> JobTimes:
        """Return when the jobs of a cell ran that keeps them.

        Raises
        ------
        OutputError
            If their file was damaged since the row was read.
        """
        if (table := self._read_of(cell, self._jobs(cell))) is None:
            raise OutputError(f"{self._jobs(cell)}: is damaged; the same command makes it again")
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
        self._write(path, pa.table({key: [row.get(key) for row in whole] for key in keys}))
        return path

    def _row(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.digest}.parquet"

    def _jobs(self, cell: Cell) -> Path:
        return self.folder / "jobs" / f"{cell.digest}.parquet"

    def _write_of(self, cell: Cell, path: Path, columns: Mapping[str, Any]) -> None:
        table = pa.table(dict(columns))
        self._write(path, table.replace_schema_metadata({PROOF: _proof(cell, table)}))

    @staticmethod
    def _write(path: Path, table: pa.Table) -> None:
        with result_file(path) as file:
            pq.write_table(table, file)

    @staticmethod
    def _read_of(cell: Cell, path: Path) -> pa.Table | None:
        """Return what a file has of a cell; None if it is not there, damaged, or another cell's."""
        try:
            with path.open("rb") as file:  # by its path it would be read as one of a data set
                table = pq.read_table(file)
            return table if (table.schema.metadata or {}).get(PROOF) == _proof(cell, table) else None
        except (OSError, MemoryError, ValueError, pa.ArrowException):  # a flipped bit may ask for any size
            return None


def _proof(cell: Cell, table: pa.Table) -> bytes:
    """Return the SHA-256 of a cell and of all that a table says of it: Parquet alone does not see a flipped bit."""
    return sha256(f"{cell.digest} {table.to_pydict()!r}".encode()).hexdigest().encode()
