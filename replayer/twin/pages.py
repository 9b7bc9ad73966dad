"""What a process with shadows says of itself: `/health`, and figures at `/metrics`."""

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from shadowtime.replayer.following.follower import Follower
from shadowtime.replayer.twin.figures import figures
from shadowtime.replayer.twin.shadow import Shadow
from shadowtime.shared import twin_metric_names as names


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
        families: dict[str, GaugeMetricFamily] = {}
        for each in self._followers:
            if isinstance(shadow := each.source, Shadow) and shadow.met:
                for metric, labels, value in figures(shadow.paired.compared()):
                    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
                    families.setdefault(metric.name, family).add_metric([each.run, *labels], value)
        yield from families.values()


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
