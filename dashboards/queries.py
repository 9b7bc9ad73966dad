"""Queries of the dashboards, for the results of the runs that are selected on them."""

from typing import NamedTuple

from shadowtime.shared import metric_names as names
from shadowtime.shared.metric_names import Metric

OF_EXPERIMENT = 'experiment="$experiment"'
WHERE = (OF_EXPERIMENT, 'cluster="$cluster"')
RUN = "experiment, cluster, policy"
OF_REAL = "shadow=~`${real:regex}/.*`"
"""The matcher for the shadows of the selected cluster. Grafana escapes its name for a regular expression by
backslashes, which a string in backticks keeps."""

VARIABLES = {
    "experiment": (names.RUN_INFO, "experiment", ""),
    "cluster": (names.RUN_INFO, "cluster", OF_EXPERIMENT),
    "policy": (names.RUN_INFO, "policy", ",".join(WHERE)),
    "baseline": (names.RUN_INFO, "policy", ",".join(WHERE)),
    "queue": (names.QUEUED_JOBS, "queue", ",".join(WHERE)),
    "jobs": (names.WAITS, "of", ",".join(WHERE)),
    "real": (names.TWIN_EVIDENCE, "shadow", ""),
    "shadow": (names.TWIN_EVIDENCE, "shadow", OF_REAL),
}
"""For each variable: a metric, its label that has the values, and label matchers for the variables selected before.

`real` is the cluster that shadows are of: a shadow is named CLUSTER/NAME/SPEC."""

MOST = 7
"""Maximum number of series that a chart of `largest` shows individually. The others are summed."""

EVER = "[50y] @ now()"
"""Look-back window that covers all logs, whatever time range is selected.

Logs may be of any year since 1980; the store has no time before 1970.
"""

LIVE_SECONDS = 86_400
"""A cluster is live if its last sample is at most this old."""

SHOWN_SECONDS = 7 * 86_400
"""Maximum length of the time range of a live cluster."""


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
        """Return the selector of a metric of these runs, without the queue `no_queue`.

        The values in `labels` are regular expressions.

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
OTHERS = Runs('policy=~"$policy",policy!="$baseline"')


def last(selector: str) -> str:
    """Return the query for the last value in the selected time range, for instant queries."""
    return f"last_over_time({selector}[$__range])"


def largest(expr: str, label: str) -> str:
    """Return the query for the `MOST` largest sums by `label` at the end of the time range, and the sum of all others.

    The series of this sum has the label `others`.
    """
    return f'topk_last({MOST}, sum by ({label}) ({expr}), "{label}=others")'


def worded(expr: str, label: str, words: dict[str, str]) -> str:
    """Return the query whose values of `label` are replaced by those in `words`. Other values are unchanged.

    >>> worded("up", "job", {"a-b": "a, then b"})
    'label_map(up, "job", "a-b", "a, then b")'
    """
    pairs = ", ".join(f'"{key}", "{value}"' for key, value in words.items())
    return f'label_map({expr}, "{label}", {pairs})'


def spelt(expr: str, label: str, by: str) -> str:
    """Return a query whose series have their values as the label `label`, and the labels `by`.

    A legend can thus compose a sentence of several figures. The labels exist in the answer only, not in the store.

    >>> spelt("round(x)", "percent", "policy")
    'count_values("percent", round(x)) by (policy)'
    """
    return f'count_values("{label}", {expr}) by ({by})'


def either(expr: str, label: str, below: str, above: str, by: str) -> str:
    """Return a query whose series have the label `label`: the word `below` where the value is below 0, else `above`.

    `max by` drops each series that a comparison leaves without values. Otherwise `or` would give that series the values
    of the other comparison.
    """
    low, high = (
        f'label_set(max by ({by}) (({expr}) {sign} 0), "{label}", "{word}")'
        for sign, word in (("<", below), (">=", above))
    )
    return f"({low} or on ({by}) {high})"


def interval(low: str, high: str, by: str) -> str:
    """Return a query whose series have the label `interval`, such as `100 % shorter to 38 % longer`.

    `low` and `high` are expressions of relative changes; none is shown below -1. Series of the expression `change` (see
    `common` of `composed`) without a value in `low` have the label `unknown`.
    """
    ends = [
        f"label_join({spelt(f'round(100 * abs({end})) + 0', f'{name}_size', by)} + on ({by}) group_left ({name}_word) "
        f'(0 * {either(end, f"{name}_word", "shorter", "longer", by)}), "{name}", " % ", "{name}_size", "{name}_word")'
        for name, end in (("lower_end", f"clamp_min({low}, -1)"), ("upper_end", high))
    ]
    both = f"{ends[0]} + on ({by}) group_left (upper_end) (0 * {ends[1]})"
    joined = f'label_join({both}, "interval", " to ", "lower_end", "upper_end")'
    return f'({joined} or on ({by}) label_set(change, "interval", "unknown"))'


def composed(common: dict[str, str], value: str, labels: dict[str, str], by: str) -> str:
    """Return a query for the values of `value` with the labels `labels`, each from its own query, joined on `by`.

    `common` has shared expressions, which the queries use by name. No label may have one of these names.
    """
    parts = "".join(f" + on ({by}) group_left ({label}) (0 * {query})" for label, query in labels.items())
    return f"WITH ({', '.join(f'{name} = {expr}' for name, expr in common.items())}) {value}{parts}"


def ever(function: str, by: str, aggregate: str, matchers: str = "") -> str:
    """Return the query for a function of all samples of runs by `by`, such as the time of the last sample."""
    return f"{aggregate} by ({by}) ({function}({names.RUN_INFO.name}{{{matchers}}}{EVER}))"


def time_ranges(matchers: str = "") -> str:
    """Return the query for the time range of each experiment and cluster: its labels `begin` and `end`, for links.

    The range covers all runs of the experiment. It ends somewhat after the last sample: a chart that ends exactly at
    the last sample would not show it. Of a live cluster, the range ends at `now`, and has at most `SHOWN_SECONDS`.
    """
    by = "experiment, cluster"
    first = ever("tfirst_over_time", by, "min", matchers)
    ends = ever("tlast_over_time", by, "max", matchers)
    live = f"max by ({by}) ({ends} > now() - {LIVE_SECONDS})"
    begin = f"(clamp_min({first}, now() - {SHOWN_SECONDS}) and on ({by}) {live}) or {first}"
    end = spelt(f"round(1000 * ({ends} + clamp_min(({ends} - {first}) / 100, 3600)))", "end", by)
    end = f'label_set({live}, "end", "now") or on ({by}) {end}'
    begins = spelt(f"round(1000 * ({begin}))", "begin", by)
    return f"{begins} * on ({by}) group_left (end) ({end})"
