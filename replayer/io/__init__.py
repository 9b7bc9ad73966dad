"""External interfaces of a replay: Kafka, clocks, Ctrl-C."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.io.interruption import Interruption
    from shadowtime.replayer.io.streamed import StreamedReplay
    from shadowtime.replayer.io.timing import CLOCKS, MIN_FACTOR, Pace, Stopwatch
    from shadowtime.replayer.io.worker_processes import Counters, count, in_processes

__getattr__ = lazy_exports(__name__)
