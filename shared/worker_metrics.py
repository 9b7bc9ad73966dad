"""Health figures of a worker, for scraping."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class WorkerMetrics:
    """One set per worker process; every name begins with `shadowtime_worker_`."""

    def __init__(self, stage: str) -> None:
        self.registry = CollectorRegistry()
        self.events = self._counter("events", "Events handled.", stage)
        self.duplicates = self._counter("duplicates", "Events that had been handled before.", stage)
        self.dead_letters = self._counter("dead_letters", "Messages that could not be used.", stage)
        self.fenced = self._counter("fenced", "Transactions refused because another worker owned the run.", stage)
        self.retries = self._counter("retries", "Batches repeated because Kafka or Redis failed.", stage)
        self.lag = self._gauge("lag", "Messages waiting in the input topic.", stage)
        self.batch_seconds = Histogram(
            "shadowtime_worker_batch_seconds",
            "Time from taking a batch to its delivery.",
            ["stage"],
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5),
            registry=self.registry,
        ).labels(stage)

    def _counter(self, name: str, meaning: str, stage: str) -> Counter:
        return Counter(f"shadowtime_worker_{name}", meaning, ["stage"], registry=self.registry).labels(stage)

    def _gauge(self, name: str, meaning: str, stage: str) -> Gauge:
        return Gauge(f"shadowtime_worker_{name}", meaning, ["stage"], registry=self.registry).labels(stage)
