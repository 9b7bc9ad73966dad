"""The capacity of the machine over time, the denominator of utilization."""

from typing import Any

from shadowtime.shared.bounds import MAX_TIME, restored, storable

MOST_SIZES = 1_000
"""Maximum number of sizes that are kept after the last end of a job. The earliest ones are summed up."""


class Capacity:
    """Processor-seconds of the machine since the first submission. The machine's size may change.

    >>> capacity = Capacity()
    >>> capacity.begin(100, 8)
    >>> capacity.change(110, 4)
    >>> capacity.until(105), capacity.until(120)
    (40, 120)
    """

    def __init__(self) -> None:
        self.processor_seconds = 0
        """Processor-seconds before the first of `sizes`."""
        self.sizes: list[tuple[int, int]] = []
        """Pairs of a time, and the number of processors from this time on."""

    def begin(self, time: int, processors: int) -> None:
        """Count from `time` on; only the first call has an effect."""
        if not self.sizes:
            self.sizes.append((time, processors))

    def change(self, time: int, processors: int, earliest: int = -MAX_TIME) -> None:
        """Record a new size from `time` on. Before `begin`, a call has no effect.

        The caller promises to call `until` only with times from `earliest` on.
        """
        if self.sizes:
            self.sizes.append((time, processors))
        while len(self.sizes) > 1 and (self.sizes[1][0] <= earliest or len(self.sizes) > MOST_SIZES):
            self.processor_seconds += _between(*self.sizes[:2])
            del self.sizes[0]

    def until(self, time: int) -> int:
        """Return the processor-seconds from `begin` up to `time`. O(sizes)."""
        known = [size for size in self.sizes if size[0] <= time] or self.sizes[:1]
        return self.processor_seconds + sum(map(_between, known, [*known[1:], (time, 0)]))

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return storable(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(restored(state))
        self.sizes = [(time, processors) for time, processors in state["sizes"]]


def _between(size: tuple[int, int], later: tuple[int, int]) -> int:
    (begin, processors), (end, _) = size, later
    return processors * (end - begin)
