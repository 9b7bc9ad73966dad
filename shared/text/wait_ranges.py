"""Ranges of processors in words: those that were found in the waits, beside the site's own."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from shadowtime.shared.messages import WaitRanges

HEADINGS = ("queue", "ranges found", "waits", "site's own", "waits")


class RangeRow(NamedTuple):
    """A row of a table of ranges, in the order of `HEADINGS`; the two halves of a row have no relation."""

    queue: str
    clustered: str
    clustered_waits: str
    own: str
    own_waits: str


def spans(ends: Sequence[int]) -> list[str]:
    """Return the ranges with these upper ends in words; the last range has no upper end.

    >>> spans([1, 16]), spans([])
    (['1', '2 to 16', '17 or more'], ['all'])
    """
    if not ends:
        return ["all"]
    lows = [1, *(end + 1 for end in ends)]
    closed = [f"{low:,}" if low == end else f"{low:,} to {end:,}" for low, end in zip(lows, ends, strict=False)]
    return [*closed, f"{lows[-1]:,} or more"]


def range_rows(ranges: Iterable[WaitRanges]) -> list[RangeRow]:
    """Return the rows of a table of ranges, the cluster first, then its queues by number.

    >>> ranges = [WaitRanges(grouping="static", ends=(4,), waits=(7, 9)), WaitRanges(grouping="nodes", waits=(16,))]
    >>> for row in range_rows(ranges):
    ...     print(*row, sep="|")
    all|all|16|1 to 4|7
    |||5 or more|9
    """
    scopes: dict[int | None, dict[str, list[tuple[str, str]]]] = {}
    for item in ranges:
        named = zip(spans(item.ends), map("{:,}".format, item.waits), strict=True)
        scopes.setdefault(item.queue, {})[item.grouping] = list(named)
    rows = []
    for queue, halves in sorted(scopes.items(), key=lambda scope: -1 if scope[0] is None else scope[0]):
        name = "all" if queue is None else str(queue)
        pairs = zip_longest(halves.get("nodes", ()), halves.get("static", ()), fillvalue=("", ""))
        rows += [RangeRow("" if place else name, *left, *right) for place, (left, right) in enumerate(pairs)]
    return rows
