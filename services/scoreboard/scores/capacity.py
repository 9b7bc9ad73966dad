"""The capacity of the machine over time, the denominator of utilization."""

from typing import Any

from shadowtime.shared.bounds import restored, storable


class Capacity:
    """Processor-seconds of the machine since the first submission. The machine's size may change.

    >>> capacity = Capacity()
    >>> capacity.begin(100, 8)
    >>> capacity.change(110, 4)
    >>> capacity.until(120)
    120
    """

    def __init__(self) -> None:
        self.processor_seconds = 0
        self.processors = 0
        self.since: int | None = None

    def begin(self, time: int, processors: int) -> None:
        """Count from `time` on; only the first call has an effect."""
        if self.since is None:
            self.since, self.processors = time, processors

    def change(self, time: int, processors: int) -> None:
        """Record a new size from `time` on."""
        if self.since is not None:
            self.processor_seconds = self.until(time)
            self.since, self.processors = time, processors

    def until(self, time: int) -> int:
        """Return the processor-seconds up to `time`, which may precede the last change, but no earlier change."""
        return self.processor_seconds + (0 if self.since is None else self.processors * (time - self.since))

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return storable(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(restored(state))
