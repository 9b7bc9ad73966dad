"""Event sources, a simulated machine and a recorded log, and the embedded pipeline."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.simulation.compiled import CompiledReplay, compiled_replay
    from shadowtime.replayer.simulation.embedded import EmbeddedReplay, Observer
    from shadowtime.replayer.simulation.machine import Machine
    from shadowtime.replayer.simulation.recorded import Recorded
    from shadowtime.replayer.simulation.source import DEFAULT_TRAITS, JobTraits, ReplaySource, named_errors, submission
    from shadowtime.replayer.simulation.sources import SOURCES

__getattr__ = lazy_exports(__name__)
