"""What a comparison tells as figures, for the page that is scraped of a shadow's process."""

from collections.abc import Iterator

from shadowtime.replayer.twin.compared import Both, Comparison, Fares
from shadowtime.shared import twin_metric_names as names
from shadowtime.shared.metric_names import Metric

Figure = tuple[Metric, tuple[str, ...], float]
"""A metric, the values of its labels behind `shadow`, the name of the shadow's run, and its value."""


def figures(compared: Comparison) -> Iterator[Figure]:
    """Yield the figures that there are: of all jobs, of each class, of both machines.

    >>> from shadowtime.replayer.twin.side_by_side import SideBySide
    >>> [(metric.name, labels, value) for metric, labels, value in figures(SideBySide().report(0))]
    [('shadowtime_twin_evidence', (), 1.0)]
    """
    for fares in (compared.all, *compared.classes):
        if fares is not None:
            yield from _of_jobs(fares)
    yield from _both(names.TWIN_BUSY, (), compared.utilization)
    for which, waiting in (("real", compared.real_waiting), ("shadow", compared.shadow_waiting)):
        if waiting.longest is not None:
            yield names.TWIN_WAITING, (which,), float(waiting.longest)
    yield names.TWIN_EVIDENCE, (), compared.wait_real.evidence


def _of_jobs(fares: Fares) -> Iterator[Figure]:
    shape = (fares.shape,)
    yield names.TWIN_JOBS, shape, float(fares.jobs)
    yield from _both(names.TWIN_WAIT, shape, fares.wait)
    yield from _both(names.TWIN_LONGEST, shape, fares.longest_wait)
    yield from _both(names.TWIN_SLOWDOWN, shape, fares.slowdown)
    if fares.wait_change is not None:
        for bound, value in fares.wait_change.model_dump().items():
            if value is not None:
                yield names.TWIN_CHANGE, (*shape, bound), value
    yield names.TWIN_MOVED, (*shape, "sooner"), fares.sooner.share
    yield names.TWIN_MOVED, (*shape, "later"), fares.later.share


def _both(metric: Metric, labels: tuple[str, ...], both: Both) -> Iterator[Figure]:
    for which, value in both.model_dump().items():
        if value is not None:
            yield metric, (*labels, which), value
