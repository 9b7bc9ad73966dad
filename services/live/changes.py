"""What has changed between two states of the page: all that a visitor who saw the first needs to see the second."""

from collections.abc import Mapping
from typing import Any

ROWS = frozenset({"queue", "running", "decisions", "blocks", "history"})
"""Parts that are rows by key. One that is new comes after those that stay, in the order of the part."""


def changes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to send: the parts that are others now, of rows those; everything to whom has seen nothing.

    What is None has gone. None where nothing has changed. O(size of the states).

    >>> before = {"time": 1, "busy": 4, "queue": {7: ["a"], 8: ["b"]}}
    >>> changes(before, {"time": 2, "busy": 4, "queue": {8: ["b"], 9: ["c"]}})
    {'time': 2, 'queue': {'set': [[9, ['c']]], 'drop': [7]}}
    >>> changes(before, before) is None
    True
    """
    if before is None:
        before = {}
    found: dict[str, Any] = {name: None for name in before if name not in after}
    for name, part in after.items():
        if name in ROWS:
            seen = before.get(name, {})
            rows = [[key, row] for key, row in part.items() if seen.get(key) != row]
            gone = [key for key in seen if key not in part]
            if rows or gone or name not in before:
                found[name] = {"set": rows, "drop": gone}
        elif name not in before or before[name] != part:
            found[name] = part
    return found or None
