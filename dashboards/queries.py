"""Queries of the dashboards: the results of the runs that you choose on them."""

from typing import NamedTuple

from shadowtime.shared.metric_names import Metric

VARIABLES = {
    "experiment": ("shadowtime_run_info", ""),
    "cluster": ("shadowtime_run_info", 'experiment="$experiment"'),
    "policy": ("shadowtime_run_info", 'experiment="$experiment",cluster="$cluster"'),
    "baseline": ("shadowtime_run_info", 'experiment="$experiment",cluster="$cluster"'),
    "queue": ("shadowtime_queued_jobs", 'experiment="$experiment",cluster="$cluster"'),
    "grouping": ("shadowtime_wait_bound_predictions_total", 'experiment="$experiment",cluster="$cluster"'),
}
"""Of each variable, the metric whose label it is (that of a baseline is `policy`), and what those before it choose."""

WHERE = ('experiment="$experiment"', 'cluster="$cluster"')
MOST = 7
"""Series that a chart shows each by itself, where there may be any number; the others are summed."""


class Query(NamedTuple):
    """A panel's query and the names of its series; `instant` asks for the last moment only."""

    expr: str
    legend: str = "{{policy}}"
    instant: bool = False


class Runs(NamedTuple):
    """The runs of an experiment on a cluster whose policy the label fits.

    Grafana writes a variable that can have several values as a regular expression, and any other one as it is.
    """

    policy: str

    def of(self, metric: Metric, *, no_queue: str | None = None, **labels: str) -> str:
        """Return the selector of their results; the value of a label is a regular expression.

        >>> from shadowtime.shared.metric_names import QUEUED_JOBS
        >>> ONE.of(QUEUED_JOBS, queue="1|2")
        'shadowtime_queued_jobs{experiment="$experiment",cluster="$cluster",policy="$policy",queue=~"1|2"}'
        """
        chosen = [f'{name}=~"{value}"' for name, value in labels.items()]
        if no_queue is not None:
            chosen.append(f'queue!="{no_queue}"')
        return f"{metric.name}{{{','.join([*WHERE, self.policy, *chosen])}}}"

    def grown(self, metric: Metric, **labels: str) -> str:
        """Return by how much a sum has grown within the chosen window."""
        return f"increase({self.of(metric, **labels)}[$window])"


ONE = Runs('policy="$policy"')
SEVERAL = Runs('policy=~"$policy"')
BASELINE = Runs('policy="$baseline"')


def last(selector: str) -> str:
    """Return the last value in the chosen time range, for queries of one moment."""
    return f"last_over_time({selector}[$__range])"


def largest(expr: str, label: str) -> str:
    """Return those series that are largest at the end of the time range, and the sum of the others as `others`."""
    return f'topk_last({MOST}, sum by ({label}) ({expr}), "{label}=others")'
