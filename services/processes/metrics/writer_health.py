"""Health metrics of the process that feeds VictoriaMetrics and Grafana Live. Prometheus scrapes them."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from shadowtime.shared import metric_names as names


class MetricsHealth:
    """The health metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.written = self._counter(names.WRITTEN)
        self.refused = self._counter(names.REFUSED)
        self.retries = self._counter(names.WRITE_RETRIES)
        self.lag = Gauge(names.WRITER_LAG.name, names.WRITER_LAG.meaning, registry=self.registry)
        self.pushed = self._counter(names.LIVE_PUSHED)
        self.dropped = self._counter(names.LIVE_DROPPED)

    def _counter(self, metric: names.Metric) -> Counter:
        return Counter(metric.name, metric.meaning, registry=self.registry)
