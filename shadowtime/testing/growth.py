"""What of a state grew, in a sentence."""

from collections.abc import Iterator
from typing import Any

import orjson


def bytes_of(state: Any) -> int:
    """Return the size of a state as JSON."""
    return len(orjson.dumps(state, option=orjson.OPT_SERIALIZE_NUMPY))


def what_grew(before: Any, after: Any) -> str:
    """Return which part of a state grew most.

    >>> what_grew({"shares": [[1, 0.5]], "count": 1}, {"shares": [[1, 0.5], [2, 0.25]], "count": 2})
    "['shares'] grew from 1 to 2 entries"
    >>> what_grew([[1], "ab"], [[1], "abcd"])
    '[1] grew from 4 to 6 bytes'
    """
    plain = [orjson.loads(orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY)) for each in (before, after)]
    return max(_grown("", *plain))[1]


def _grown(place: str, before: Any, after: Any) -> Iterator[tuple[int, str]]:
    """Yield by how many bytes each part grew that has no smaller part to blame, and the sentence of it."""
    more, where = bytes_of(after) - bytes_of(before), place or "the whole"
    if type(before) is type(after) and isinstance(after, dict | list):
        if len(before) == len(after):
            keys = after if isinstance(after, dict) else range(len(after))
            if after and all(isinstance(after, list) or key in before for key in keys):
                for key in keys:
                    yield from _grown(f"{place}[{key!r}]", before[key], after[key])
                return
        yield more, f"{where} grew from {len(before):,} to {len(after):,} entries"
    else:
        yield more, f"{where} grew from {bytes_of(before):,} to {bytes_of(after):,} bytes"
