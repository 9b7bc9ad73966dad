"""A table, mostly of zeros, as text in a snapshot."""

import zlib
from base64 import b64decode, b64encode
from typing import Final

PACKED: Final = "zlib:"
"""How a packed table begins in a snapshot."""


def packed(table: bytes) -> str:
    """Return a table, mostly of zeros, as text.

    >>> unpacked(packed(bytes(1000))) == bytes(1000), len(packed(bytes(1000)))
    (True, 33)
    """
    return PACKED + b64encode(zlib.compress(table, 1)).decode()


def unpacked(text: str) -> bytes:
    """Return the table in a text that `packed` gave, or one from before there was that."""
    raw = b64decode(text.removeprefix(PACKED))
    try:
        return zlib.decompress(raw) if text.startswith(PACKED) else raw
    except zlib.error as error:
        raise ValueError(f"a table of jobs cannot be unpacked: its buffer is damaged ({error})") from None
