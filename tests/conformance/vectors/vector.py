"""The worked numeric examples of the papers, each computed independently of any implementation."""

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("vectors.json")


@cache
def vectors() -> dict[str, Any]:
    """Return all examples by key."""
    read: dict[str, Any] = json.loads(FILE.read_text())
    return read


def vector(key: str) -> Any:
    """Return one example; a test that calls this with the literal key covers it.

    >>> vector("p0_geometric_mean_wait")["waits"]
    [0, 5, 10, 60, 3600]
    """
    return vectors()[key]
