"""Tables as files: Parquet if the name ends in `.parquet`, else comma-separated values."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from shadowtime.shared.output import csv_text

PARQUET = ".parquet"

Columns = Mapping[str, Sequence[Any]]


def require_parquet(*paths: Path | None) -> None:
    """Raise `ModuleNotFoundError` if one of these files is Parquet and the extra `frames` is not installed."""
    if any(path is not None and path.name.endswith(PARQUET) for path in paths):
        import pyarrow  # noqa: F401


def write_columns(file: BinaryIO, path: Path, columns: Columns) -> None:
    """Write columns of equal length in the format of `path`. A column with only None is a column of missing numbers."""
    if not path.name.endswith(PARQUET):
        file.write(csv_text(columns, zip(*columns.values(), strict=True)).encode())
        return

    import pyarrow  # here: the import takes a third of a second
    from pyarrow import parquet

    arrays = {
        name: pyarrow.array(values, None if any(value is not None for value in values) else pyarrow.float64())
        for name, values in columns.items()
    }
    contents = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(arrays), contents)
    file.write(contents.getvalue().to_pybytes())
