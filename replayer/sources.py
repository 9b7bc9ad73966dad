"""All sources of events by name, as `--mode` has them."""

from shadowtime.replayer.machine import Machine
from shadowtime.replayer.recorded import Recorded
from shadowtime.replayer.source import Source

SOURCES: dict[str, type[Source]] = {each.name: each for each in (Machine, Recorded)}
