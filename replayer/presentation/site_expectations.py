"""Start times expected by the site's own scheduler, next to our forecasts and bounds for the same jobs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from shadowtime.replayer.comparison import RunResult, expected_rows
from shadowtime.replayer.presentation.names import short_names
from shadowtime.replayer.presentation.policies import forecaster
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import duration, signed_duration
from shadowtime.shared.text import NOTHING, Measure, TableColumn, Values, numbers, seconds, shares

NAIVE = {"starts at once": "at_once", "last 100 waits": "last_waits"}
"""Naive forecasts at submission, with their keys in the scores.

They state that a job starts at once, and that it waits the median of the last known waits.
"""


class ExpectationRow(NamedTuple):
    """A table row: a source of expected starts, its number of jobs, and its scores.

    The errors of start times are in `scores`. `held` is the share of bounds that held, or of jobs that started in time.
    `mean_bound` is in seconds.
    """

    source: str
    jobs: int
    scores: Mapping[str, float | None]
    held: float | None = None
    mean_bound: float | None = None
    brier: float | None = None


def expectations_of(row: Mapping[str, Any]) -> Iterator[ExpectationRow]:
    """Yield the table rows of one row of `expected_starts`.

    If only some of the site's jobs have our forecast, the site's scores are repeated for those jobs alone.
    """
    first, paired, bounded = row["first"], row["paired"], row["bounded"]
    within = row.get("within") or {}
    yield ExpectationRow("site, first", first["jobs"], first, brier=within.get("site_brier"))
    yield ExpectationRow("site, last", first["jobs"], row["last"])
    if paired is not None:
        jobs = paired["forecast"]["jobs"]
        if jobs < first["jobs"]:
            yield ExpectationRow("site, first, if forecast", jobs, paired["first"])
            yield ExpectationRow("site, last, if forecast", jobs, paired["last"])
        yield ExpectationRow("forecast", jobs, paired["forecast"])
        for source, naive in NAIVE.items():
            if (scores := paired.get(naive)) is not None:
                yield ExpectationRow(source, scores["jobs"], scores)

    if bounded:
        bound = f"bound, {100 * row['bound_quantile']:.4g} %"
        yield ExpectationRow(bound, bounded, {}, row["bound_coverage"], row.get("mean_bound"))
    if within:
        bound = f"in time, predicted {100 * within['mean_probability']:.3g} %"
        yield ExpectationRow(bound, within["jobs"], {}, within["started_share"], brier=within["brier"])


def expected_table(results: Sequence[RunResult], *, exact: bool = False) -> FittedTable:
    """Return a table with a row per result, queue and source of expected starts. With `exact`, times are in seconds."""
    short = short_names(forecaster(result.plan) for result in results)
    rows = [
        (short[forecaster(result.plan)], str(row["queue"]), expectation)
        for result in results
        for row in expected_rows([result])
        for expectation in expectations_of(row)
    ]
    return starts_table(results[0].plan.cluster, rows, exact=exact)


def starts_table(cluster: str, rows: Sequence[tuple[str, str, ExpectationRow]], *, exact: bool = False) -> FittedTable:
    """Return the table of `rows`: policy, queue and expectation. It has a policy column only if policies differ."""
    expectations = [expectation for _, _, expectation in rows]

    def values(key: str) -> Values:
        return [expectation.scores.get(key) for expectation in expectations]

    measure: Measure = seconds if exact else _durations
    signed: Measure = seconds if exact else _signed
    columns = [
        measure("median", values("median_absolute_error")).meaning(
            "median: of absolute errors; last 100 waits: forecast by their median"
        ),
        signed("signed", values("mean_error")).meaning("signed: mean error, positive if too late"),
        shares("too late", values("late_share")).meaning("too late: share of starts expected too late"),
        TableColumn("jobs", "", [f"{expectation.jobs:,}" for expectation in expectations]),
        measure("off", values("mean_absolute_error")).meaning("off: mean absolute error"),
        shares("held", [expectation.held for expectation in expectations]).meaning(
            "held: share of bounds that held; in time: share of starts by the times of which we state probabilities"
        ),
        numbers("Brier", [expectation.brier for expectation in expectations], 3).meaning(
            "Brier: mean squared error of the probability of a start by that time; site: its expectation as certain"
        ),
        measure("mean bound", [expectation.mean_bound for expectation in expectations]),
        measure("ahead", values("mean_ahead")).meaning("ahead: mean time from the expectation to the start"),
    ]
    policies, queues = [policy for policy, _, _ in rows], [queue for _, queue, _ in rows]
    places = list(zip(policies, queues, strict=True))
    names = {"policy": policies} if len(set(policies)) > 1 else {}
    return FittedTable(
        f"{cluster}, expected starts: the site's and ours",
        names | {"queue": queues, "source": [expectation.source for expectation in expectations]},
        [column.unmarked() for column in columns],
        ends=[row for row, (place, following) in enumerate(pairwise(places)) if place != following],
    )


def _durations(heading: str, values: Values) -> TableColumn:
    """Return a column of times, each in its own unit, because errors may be of hours or of seconds."""
    return TableColumn(heading, "", [duration(value) for value in values])


def _signed(heading: str, values: Values) -> TableColumn:
    return TableColumn(heading, "", [NOTHING if value is None else signed_duration(value) for value in values])
