"""A level that changes over time, such as busy processors, and what it adds up to on each day."""

from typing import Any

from shadowtime.shared.formatting import DAY

MAX_DAYS = 1_100
"""Days that are remembered one by one, three years; of a longer twin the last ones."""


class DayAreas:
    """Adds up a level over the seconds of each day; O(1) for a change, and for each day that passes.

    Examples
    --------
    >>> busy = DayAreas()
    >>> busy.add(DAY - 10, 3)
    >>> busy.add(DAY + 5, -2)
    >>> busy.upto(DAY + 6)
    >>> busy.days
    {0: 30, 1: 16}
    """

    def __init__(self) -> None:
        self.level = 0
        self.until: int | None = None
        self.days: dict[int, int] = {}

    def add(self, time: int, change: int) -> None:
        """Change the level at a second by so much."""
        self.upto(time)
        self.level += change

    def upto(self, time: int) -> None:
        """Go on to a second; one that has passed changes nothing."""
        if self.until is None:
            self.until = time
        at = max(self.until, (time // DAY - MAX_DAYS) * DAY)
        while at < time:
            day = at // DAY
            then = min(time, (day + 1) * DAY)
            self.days[day] = self.days.get(day, 0) + self.level * (then - at)
            at = then
            if len(self.days) > MAX_DAYS:
                del self.days[next(iter(self.days))]
        self.until = max(self.until, time)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state."""
        return {"level": self.level, "until": self.until, "days": list(self.days.items())}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        self.level, self.until = state["level"], state["until"]
        self.days = dict(map(tuple, state["days"]))
