"""What a worker of a stage works with."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shadowtime.shared.stage import Stage
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state_store import StateStore
from shadowtime.shared.streaming.stream import Stream
from shadowtime.shared.streaming.worker_metrics import WorkerMetrics


@dataclass(frozen=True)
class WorkerContext:
    """The stage, the world around it, and time.

    Parameters
    ----------
    partitions
        How many each topic has.
    clock
        Seconds, of which only differences count.
    """

    stage: Stage
    store: StateStore
    stream: Stream
    settings: Settings
    metrics: WorkerMetrics
    partitions: int
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
