"""All sources of events by name, as `--mode` has them."""

from shadowtime.replayer.machine import Machine
from shadowtime.replayer.recorded import Recorded
from shadowtime.replayer.source import Archived
from shadowtime.shared.plug_ins import Classes

SOURCES: Classes[Archived] = Classes("source", (Machine, Recorded), "sources", Archived)
