"""Health metrics of the process that feeds VictoriaMetrics and Grafana Live. Prometheus scrapes them."""

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from shadowtime.shared import metric_names as names
from shadowtime.shared.streaming import silence_reason

AWAY_SECONDS = 60.0
"""Seconds of failed writes to VictoriaMetrics after which the process is not healthy."""


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
        self._failing_since: float | None = None
        self._failure = ""

    def answered(self) -> None:
        """Record that VictoriaMetrics accepted a request, or refused it for good."""
        self._failing_since = None

    def failed(self, reason: str) -> None:
        """Record that a request to VictoriaMetrics failed and is repeated."""
        self.retries.inc()
        self._failing_since = self._failing_since or time.monotonic()
        self._failure = reason

    def report(self, silence: float) -> tuple[bool, dict[str, Any]]:
        """Return whether the process is healthy, and the content of `/health`.

        `silence` is the number of seconds since Kafka last answered.
        """
        failing = 0.0 if self._failing_since is None else time.monotonic() - self._failing_since
        reason = silence_reason(silence)
        if failing > AWAY_SECONDS:
            reason = f"VictoriaMetrics has accepted nothing for {failing:.0f} s: {self._failure}"
        return reason is None, {"stage": "metrics", "healthy": reason is None, "reason": reason}

    def _counter(self, metric: names.Metric) -> Counter:
        return Counter(metric.name, metric.meaning, registry=self.registry)
