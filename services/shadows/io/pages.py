"""HTTP pages of a shadow process: `/health` and `/metrics`."""

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from shadowtime.services.follower import Follower
from shadowtime.services.shadows.comparison import ClassResult, Comparison, Pair
from shadowtime.services.shadows.io.source import ShadowSource
from shadowtime.services.shadows.machine import PATIENCE
from shadowtime.shared import metric_names as names
from shadowtime.shared.formatting import DAY
from shadowtime.shared.metric_names import Metric

# Figures of a comparison, for the metrics page of a shadow process.

HOUR = 3_600

LONG = DAY
"""Seconds of the cluster's time after which an exact shadow that waits for one job is unhealthy."""

Figure = tuple[Metric, tuple[str, ...], float]
"""A metric, its label values, and its value. The first label, `shadow` (the name of the run), is left out."""


def figures(compared: Comparison) -> Iterator[Figure]:
    """Yield the known figures of a comparison: of all jobs, of each class, of both machines.

    >>> from shadowtime.services.shadows.comparison.side_by_side import SideBySide
    >>> [(metric.name, labels, value) for metric, labels, value in figures(SideBySide().report(0))]
    [('shadowtime_twin_evidence', (), 1.0)]
    """
    for result in (compared.all, *compared.classes):
        if result is not None:
            yield from _of_jobs(result)
    yield from _both(names.TWIN_BUSY, (), compared.utilization)
    for which, waiting in (("real", compared.real_waiting), ("shadow", compared.shadow_waiting)):
        if waiting.longest is not None:
            yield names.TWIN_WAITING, (which,), float(waiting.longest)
    yield names.TWIN_EVIDENCE, (), compared.wait_real.evidence


def _of_jobs(result: ClassResult) -> Iterator[Figure]:
    shape = (result.shape,)
    yield names.TWIN_JOBS, shape, float(result.jobs)
    yield from _both(names.TWIN_WAIT, shape, result.wait)
    yield from _both(names.TWIN_LONGEST, shape, result.longest_wait)
    yield from _both(names.TWIN_SLOWDOWN, shape, result.slowdown)
    if result.wait_change is not None:
        for bound, value in result.wait_change.model_dump().items():
            if value is not None:
                yield names.TWIN_CHANGE, (*shape, bound), value

    yield names.TWIN_MOVED, (*shape, "sooner"), result.sooner.share
    yield names.TWIN_MOVED, (*shape, "later"), result.later.share


def _both(metric: Metric, labels: tuple[str, ...], both: Pair) -> Iterator[Figure]:
    for which, value in both.model_dump().items():
        if value is not None:
            yield metric, (*labels, which), value


class ShadowCollector(Collector):
    """Prometheus collector of the metrics of shadows. It reads them at each scrape."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        self._followers = followers

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield each metric with its values."""
        for metric, kind in ((names.SHADOW_EVENTS, CounterMetricFamily), (names.SHADOW_BEHIND, GaugeMetricFamily)):
            family = kind(metric.name, metric.meaning, labels=metric.labels)
            for follower in self._followers:
                value = follower.sequence + 1 if metric is names.SHADOW_EVENTS else follower.behind
                family.add_metric([follower.run], float(value))
            yield family

        families: dict[str, GaugeMetricFamily] = {}
        for follower in self._followers:
            if isinstance(shadow := follower.source, ShadowSource) and shadow.met:
                for metric, labels, value in figures(shadow.paired.compared()):
                    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
                    families.setdefault(metric.name, family).add_metric([follower.run, *labels], value)

        yield from families.values()


def health_of(followers: Sequence[Follower]) -> tuple[bool, dict[str, Any]]:
    """Return whether all shadows are healthy, and the content of the health page.

    A shadow that has failed, or has waited for one job for `LONG` seconds, is not healthy. The page has the reason.
    """
    shadows: dict[str, dict[str, Any]] = {}
    for follower in followers:
        shadows[follower.run] = {"sequence": follower.sequence, "behind_seconds": follower.behind}
        reason = follower.failure()
        if reason is None and isinstance(shadow := follower.source, ShadowSource):
            reason = waits(shadow)
        if reason is not None:
            shadows[follower.run]["reason"] = reason
    well = not any("reason" in shadow for shadow in shadows.values())
    return well, {"healthy": well, "shadows": shadows}


def waits(shadow: ShadowSource) -> str | None:
    """Return in words for which job an exact shadow has waited for at least `LONG` seconds; None if there is none."""
    waiting = shadow.twin.waits_for if shadow.met else None
    if waiting is None or (seconds := shadow.twin.horizon - waiting[1]) < LONG:
        return None
    return (
        f"waits for job {waiting[0]}: it started in the shadow {seconds / HOUR:.1f} h ago, and not yet on the cluster; "
        f"continues without its run time {PATIENCE / DAY:g} days after that start, or once the job is cancelled"
    )
