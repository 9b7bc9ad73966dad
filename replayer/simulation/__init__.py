"""Sources of events: a simulated machine that obeys, a log as it happened, and the embedded pipeline."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.simulation.embedded import EmbeddedReplay, Observer
    from shadowtime.replayer.simulation.machine import Machine
    from shadowtime.replayer.simulation.recorded import Recorded
    from shadowtime.replayer.simulation.source import DEFAULT_TRAITS, Archived, JobTraits, faults_named, submission
    from shadowtime.replayer.simulation.sources import SOURCES

__all__ = [
    "DEFAULT_TRAITS",
    "SOURCES",
    "Archived",
    "EmbeddedReplay",
    "JobTraits",
    "Machine",
    "Observer",
    "Recorded",
    "faults_named",
    "submission",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "embedded": (
            "EmbeddedReplay",
            "Observer",
        ),
        "machine": ("Machine",),
        "recorded": ("Recorded",),
        "source": (
            "Archived",
            "DEFAULT_TRAITS",
            "JobTraits",
            "faults_named",
            "submission",
        ),
        "sources": ("SOURCES",),
    },
)
