"""The context of a stage worker: its settings, store, stream and metrics."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from shadowtime.shared import metric_names as names
from shadowtime.shared.metric_names import Metric
from shadowtime.shared.stages import Stage
from shadowtime.shared.streaming.protocols import StateStore, Stream
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.run_cache import memory_limit

# Health figures of a worker, for scraping.

disable_created_metrics()  # type: ignore[no-untyped-call]  # nobody needs the times at which counters began

MEGABYTE = 1_000_000

SHARE = 0.6
"""The share of its memory limit that a worker may use while it caches runs. Above it, all runs are evicted."""

EDGES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200)
"""Upper edges of the buckets of times, in seconds: from a single event to a stage that was down for hours."""


class WorkerMetrics:
    """The metrics of one worker process."""

    def __init__(self, stage: str) -> None:
        self.registry = CollectorRegistry()
        self._stage = stage
        self.events = self._counter(names.WORKER_EVENTS)
        self.duplicates = self._counter(names.WORKER_DUPLICATES)
        self.dead_letters = self._counter(names.WORKER_DEAD_LETTERS)
        self.left_aside = self._counter(names.WORKER_LEFT_ASIDE)
        self.quarantined = self._gauge(names.WORKER_QUARANTINED)
        self.altered = self._counter(names.WORKER_ALTERED)
        self.replaced_logs = self._counter(names.WORKER_REPLACED_LOGS)
        self.fenced = self._counter(names.WORKER_FENCED)
        self.retries = self._counter(names.WORKER_RETRIES)
        self.lag = self._gauge(names.WORKER_LAG)
        self.started = self._gauge(names.WORKER_START)
        self.batch_seconds = self._histogram(names.WORKER_BATCH)
        self.latency = self._histogram(names.WORKER_LATENCY)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.meaning, metric.labels, registry=self.registry).labels(self._stage)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.meaning, metric.labels, registry=self.registry).labels(self._stage)

    def _histogram(self, metric: Metric) -> Histogram:
        return Histogram(metric.name, metric.meaning, metric.labels, buckets=EDGES, registry=self.registry).labels(
            self._stage
        )


@dataclass(frozen=True)
class WorkerContext:
    """The stage of a worker, its store, stream, settings and metrics, and its clock.

    Parameters
    ----------
    partitions
        The number of partitions of each topic.
    clock
        Returns seconds; only differences count.
    sleep
        Pauses the caller for a number of seconds.
    """

    stage: Stage
    store: StateStore
    stream: Stream
    settings: Settings
    metrics: WorkerMetrics
    partitions: int
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @cached_property
    def memory_for_runs(self) -> float:
        """Bytes of memory above which the worker evicts all runs. No single run may need more."""
        return SHARE * min(memory_limit(), self.settings.memory_mb * MEGABYTE or math.inf)
