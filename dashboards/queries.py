"""Queries of the dashboards, for the results of the runs that are selected on them."""

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
"""For each variable: a metric with a label that has the values, and label matchers for the variables selected before.

The label has the name of the variable, except for `baseline`: its label is `policy`."""

WHERE = ('experiment="$experiment"', 'cluster="$cluster"')
MOST = 7
"""Maximum number of series that a chart of `largest` shows individually. The others are summed."""


class Query(NamedTuple):
    """A panel's query, with the template of its series' names. An `instant` query returns only the last values."""

    expr: str
    legend: str = "{{policy}}"
    instant: bool = False


class Runs(NamedTuple):
    """The runs of the selected experiment and cluster whose policy matches the label matcher `policy`.

    Grafana inserts a variable with several possible values as a regular expression, and any other as plain text.
    """

    policy: str

    def of(self, metric: Metric, *, no_queue: str | None = None, **labels: str) -> str:
        """Return the selector of a metric of these runs. The values in `labels` are regular expressions.

        >>> from shadowtime.shared.metric_names import QUEUED_JOBS
        >>> ONE.of(QUEUED_JOBS, queue="1|2")
        'shadowtime_queued_jobs{experiment="$experiment",cluster="$cluster",policy="$policy",queue=~"1|2"}'
        """
        chosen = [f'{name}=~"{value}"' for name, value in labels.items()]
        if no_queue is not None:
            chosen.append(f'queue!="{no_queue}"')
        return f"{metric.name}{{{','.join([*WHERE, self.policy, *chosen])}}}"

    def grown(self, metric: Metric, **labels: str) -> str:
        """Return the query for the increase of a counter within the selected window."""
        return f"increase({self.of(metric, **labels)}[$window])"


ONE = Runs('policy="$policy"')
SEVERAL = Runs('policy=~"$policy"')
BASELINE = Runs('policy="$baseline"')


def last(selector: str) -> str:
    """Return the query for the last value in the selected time range, for instant queries."""
    return f"last_over_time({selector}[$__range])"


def largest(expr: str, label: str) -> str:
    """Return the query for the `MOST` largest series at the end of the time range, and the sum of the others."""
    return f'topk_last({MOST}, sum by ({label}) ({expr}), "{label}=others")'
