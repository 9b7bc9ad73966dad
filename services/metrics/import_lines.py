"""Samples as the lines that VictoriaMetrics imports: JSON, so that no name can be taken for anything but a name."""

from collections.abc import Iterable

import orjson

from shadowtime.shared.events import Envelope
from shadowtime.shared.metric_names import RESULTS, RUN
from shadowtime.shared.samples import name_label

LABELS = {metric.name: metric.labels for metric in RESULTS}


def import_lines(envelopes: Iterable[Envelope]) -> tuple[bytes, int]:
    """Return one line per series with all of its samples in these envelopes, and how many samples there are.

    Times are Unix milliseconds. Figures whose metric or labels are not known here are left out: they come from a
    scoreboard of another version.

    >>> from shadowtime.shared.events import SchedulingPoint
    >>> from shadowtime.shared.samples import Sample
    >>> sample = Sample(time=60, cluster='k"}', policy="easy", figures=(("shadowtime_running_jobs", (), 3),))
    >>> lines, count = import_lines([Envelope(run="r", sequence=1, event=SchedulingPoint(time=61), samples=(sample,))])
    >>> orjson.loads(lines)["metric"]["cluster"], orjson.loads(lines)["timestamps"], count
    ('k"}', [60000], 1)
    """
    series: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
    count = 0
    for envelope in envelopes:
        for sample in envelope.samples or ():
            run = name_label(envelope.run)
            source = sample.cluster, sample.experiment or run, sample.policy, run
            for name, labels, value in sample.figures:
                if len(LABELS.get(name, ())) != len(labels) or name not in LABELS:
                    continue
                times, values = series.setdefault((name, *source, *labels), ([], []))
                times.append(1_000 * sample.time)
                values.append(value)
                count += 1
    lines = [
        orjson.dumps(
            {
                "metric": {"__name__": name, **dict(zip((*RUN, *LABELS[name]), labels, strict=True))},
                "values": values,
                "timestamps": times,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for (name, *labels), (times, values) in series.items()
    ]
    return b"".join(lines), count
