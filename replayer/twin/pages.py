"""What a process with shadows says of itself: `/health`, and figures at `/metrics`."""

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from shadowtime.replayer.following.follower import Follower
from shadowtime.shared import metric_names as names


class Figures(Collector):
    """Reads the figures of shadows as they are asked for."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        self._followers = followers

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield each figure."""
        for metric, kind in ((names.SHADOW_EVENTS, CounterMetricFamily), (names.SHADOW_BEHIND, GaugeMetricFamily)):
            family = kind(metric.name, metric.meaning, labels=metric.labels)
            for each in self._followers:
                value = each.sequence + 1 if metric is names.SHADOW_EVENTS else each.source.load.behind
                family.add_metric([each.run], float(value))
            yield family


def registry_of(followers: Sequence[Follower]) -> CollectorRegistry:
    """Return what is scraped."""
    registry = CollectorRegistry()
    registry.register(Figures(followers))
    return registry


def health_of(followers: Sequence[Follower]) -> tuple[bool, dict[str, Any]]:
    """Return whether all is well, and more about it."""
    return True, {
        "healthy": True,
        "shadows": {
            each.run: {"sequence": each.sequence, "behind_seconds": each.source.load.behind} for each in followers
        },
    }
