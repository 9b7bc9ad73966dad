"""Tables of numbers as text in a snapshot."""

import zlib
from base64 import b64decode, b64encode
from typing import Any, Final

import numpy as np

PACKED: Final = "zlib:"
"""How a packed table begins in a snapshot."""


def packed(table: bytes) -> str:
    """Return a table, mostly of zeros, as text.

    >>> unpacked(packed(bytes(1000))) == bytes(1000), len(packed(bytes(1000)))
    (True, 33)
    """
    return PACKED + b64encode(zlib.compress(table, 1)).decode()


def unpacked(text: str) -> bytes:
    """Return the table in a text that `packed` gave; raises `ValueError` for any other text."""
    if not text.startswith(PACKED):
        raise ValueError(f"a table of jobs cannot be unpacked: it does not begin with {PACKED!r}")
    try:
        return zlib.decompress(b64decode(text.removeprefix(PACKED)))
    except zlib.error as error:
        raise ValueError(f"a table of jobs cannot be unpacked: its buffer is damaged ({error})") from None


def packed_numbers(table: Any) -> list[Any]:
    """Return an array of whole numbers, or of others, as plain values: shape, type and packed bytes.

    >>> unpacked_numbers(packed_numbers(np.array([[1, 2], [3, 4]]))).tolist()
    [[1, 2], [3, 4]]
    """
    kind = "<i8" if table.dtype.kind == "i" else "<f8"
    return [list(table.shape), kind, packed(np.ascontiguousarray(table, dtype=kind).tobytes())]


def unpacked_numbers(state: Any) -> Any:
    """Return the array that `packed_numbers` gave, one of its own that may be written to."""
    shape, kind, text = state
    return np.frombuffer(unpacked(text), kind).reshape(shape).astype(np.int64 if kind == "<i8" else np.float64)
