"""The result folder of a campaign: a Parquet file for each finished cell, and the table of all cells."""

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

MEASURED = ("elapsed_seconds", "cpu_seconds", "cpu_milliseconds_per_job", "wait_bound_milliseconds_per_job")
"""Measured times. The table of all cells omits them, so that it is reproducible. The files of cells have them."""

PROOF = b"sha256"
"""Metadata key of the digest of a file's cell and contents."""


class Store:
    """The folder of a campaign's results. Files are written atomically: a file is complete or absent.

    Parameters
    ----------
    folder
        Created if it does not exist.
    shared
        The folder of the files of cells, if several campaigns share them; by default `folder`. Created, too.

    Raise `OutputError` if a folder cannot be created.
    """

    def __init__(self, folder: Path, shared: Path | None = None) -> None:
        self.folder = folder
        self._shared = shared or folder
        try:
            for part in (folder, self._shared / "cells", self._shared / "jobs"):
                part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{part}: cannot be created: {error.strerror}") from None

    def keep(self, cell: Cell, outcome: CellResult) -> None:
        """Write the result of a cell. The row is written last: it marks the cell as done."""
        if outcome.jobs is not None:
            self._write_of(cell, self._jobs(cell), {name: getattr(outcome.jobs, name) for name in JobTimes.FIELDS})
        self._write_of(cell, self._row(cell), {key: [value] for key, value in outcome.row.items()})

    def row(self, cell: Cell) -> Figures | None:
        """Return the row of a finished cell; None if the cell is not finished or one of its files is damaged."""
        table = self._read_of(cell, self._row(cell))
        if table is None or (cell.keeps_jobs and self._read_of(cell, self._jobs(cell)) is None):
            return None
        (row,) = table.to_pylist()
        figures: Figures = row
        return figures

    def jobs(self, cell: Cell) -> JobTimes:
        """Return the times and users of a cell's jobs. The cell must store its jobs (`keeps_jobs`).

        Raise `OutputError` if the file of the jobs is damaged or missing.
        """
        if (table := self._read_of(cell, self._jobs(cell))) is None:
            raise OutputError(f"{self._jobs(cell)}: missing or damaged; run the same command again to write it")
        return JobTimes(*(np.asarray(table[name], dtype=np.int64) for name in JobTimes.FIELDS))

    def write_table(self, cells: Sequence[Cell], rows: Sequence[Figures]) -> Path:
        """Write one table of all cells in order, with the log, row label and digest of each. Return its path."""
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
        return self._shared / "cells" / f"{cell.digest}.parquet"

    def _jobs(self, cell: Cell) -> Path:
        return self._shared / "jobs" / f"{cell.digest}.parquet"

    def _write_of(self, cell: Cell, path: Path, columns: Mapping[str, Any]) -> None:
        table = pa.table(dict(columns))
        self._write(path, table.replace_schema_metadata({PROOF: _proof(cell, table)}))

    @staticmethod
    def _write(path: Path, table: pa.Table) -> None:
        with result_file(path) as file:
            pq.write_table(table, file)

    @staticmethod
    def _read_of(cell: Cell, path: Path) -> pa.Table | None:
        """Return the table in a cell's file; None if the file is missing, damaged, or belongs to another cell."""
        try:
            with path.open("rb") as file:  # not by path: pyarrow would read it as a data set
                table = pq.read_table(file)
            return table if (table.schema.metadata or {}).get(PROOF) == _proof(cell, table) else None
        except (OSError, MemoryError, ValueError, pa.ArrowException):  # damaged files may request any amount
            return None


def _proof(cell: Cell, table: pa.Table) -> bytes:
    """Return the SHA-256 of a cell's digest and a table's contents. Parquet alone does not detect a flipped bit."""
    return sha256(f"{cell.digest} {table.to_pydict()!r}".encode()).hexdigest().encode()
