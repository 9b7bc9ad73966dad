"""What a metric is."""

from typing import NamedTuple


class Metric(NamedTuple):
    """One metric.

    Parameters
    ----------
    name
        As VictoriaMetrics knows it; that of a sum which only grows ends in `_total`.
    labels
        What tells its series apart, beside the labels of all metrics of its kind.
    unit
        Of its values; `share` is in 0 to 1, `1` counts things.
    meaning
        One sentence for people.
    """

    name: str
    labels: tuple[str, ...]
    unit: str
    meaning: str
