"""A source, installed as a plug-in, that tells a log with everything that real clusters do to jobs."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.replayer.simulation.source import DEFAULT_TRAITS, JobTraits
from shadowtime.shared.messages.envelope import CapacityChanged, Event, SchedulingPoint
from tests.support.strategies.logs import eventful


class Eventful(Recorded):
    """A log as it happened, in which a sixth of the jobs each is told late, cancelled, held, changed or suspended."""

    name = "eventful"

    def __init__(
        self, workload: Workload, capacity: Sequence[CapacityChanged] = (), traits: JobTraits = DEFAULT_TRAITS
    ) -> None:
        recorded = Recorded(workload, capacity, traits)
        events: list[Event] = []
        while instant := recorded.next_instant():
            events.extend(each for each in instant if not isinstance(each, SchedulingPoint))
        self.events = eventful(events, Random(7).randrange)
        self.at = 0

    def next_time(self) -> int | None:
        """Return the time of the next event."""
        return self.events[self.at].time if self.at < len(self.events) else None

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant."""
        first, time = self.at, self.next_time()
        while self.next_time() == time is not None:
            self.at += 1
        return self.events[first : self.at]

    def snapshot(self) -> Any:
        """Return how many events have been told."""
        return self.at

    def restore(self, state: Any) -> None:
        """Go to where `snapshot` was taken."""
        self.at = state


def install(folder: Path) -> Path:
    """Write what makes the source known to whoever has the folder in PYTHONPATH, and return it."""
    about = folder / "eventful-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: eventful\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[shadowtime.sources]\neventful = tests.support.eventful:Eventful\n")
    return folder
