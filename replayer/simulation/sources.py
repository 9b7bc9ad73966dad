"""All event sources by name, for `--mode`."""

from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.replayer.simulation.source import ReplaySource
from shadowtime.shared.plugins import Classes

SOURCES: Classes[ReplaySource] = Classes("source", (Machine, Recorded), "sources", ReplaySource)
