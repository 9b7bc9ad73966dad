"""What a follower says of itself: `/health`, and figures at `/metrics`."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from shadowtime.replayer.following.follower import Follower
from shadowtime.shared import metric_names as names

STALE = 600.0
"""Seconds by which the log may be behind the cluster before all is not well."""


class Figures(Collector):
    """Reads the figures of a follower as they are asked for."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield each figure."""
        load = self._follower.source.load
        told = {
            names.FOLLOW_EVENTS: self._follower.sequence + 1,
            names.FOLLOW_ANSWERS: load.answers,
            names.FOLLOW_FAILURES: load.failures,
            names.FOLLOW_SECONDS: load.seconds,
            names.FOLLOW_LATE: load.late,
            names.FOLLOW_GUESSED: load.guessed,
            names.FOLLOW_LEFT_OUT: load.left_out,
            names.FOLLOW_REFUSED: load.refused,
            names.FOLLOW_BEHIND: load.behind,
            names.FOLLOW_SHARE: load.share,
        }
        for metric, value in told.items():
            if value is not None:
                kind = CounterMetricFamily if metric.name.endswith("_total") else GaugeMetricFamily
                family = kind(metric.name, metric.meaning, labels=metric.labels)
                family.add_metric([self._follower.opened.cluster], float(value))
                yield family


def registry_of(follower: Follower) -> CollectorRegistry:
    """Return what is scraped."""
    registry = CollectorRegistry()
    registry.register(Figures(follower))
    return registry


def health_of(follower: Follower) -> tuple[bool, dict[str, Any]]:
    """Return whether all is well, and more about it."""
    load = follower.source.load
    well = load.behind < STALE
    return well, {
        "healthy": well,
        "source": follower.source.name,
        "run": follower.run,
        "sequence": follower.sequence,
        "behind_seconds": round(load.behind, 1),
        "failures": load.failures,
    }
