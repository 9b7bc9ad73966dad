"""Rows of a log, written to a file."""

import gzip
from pathlib import Path

MIB = 1 << 20


def written(path: Path, *pieces: bytes) -> Path:
    with gzip.open(path, "wb", 1) as file:
        for piece in pieces:
            file.write(piece)
    return path
