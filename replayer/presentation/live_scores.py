"""Live scores of a run on the stream, as tables in the terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from shadowtime.replayer.presentation.drift import drift_table
from shadowtime.replayer.presentation.site_expectations import expectations_of, starts_table
from shadowtime.replayer.presentation.starts import NAMES, start_columns
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import duration, percent
from shadowtime.shared.messages import Scores, StartsByScores
from shadowtime.shared.text import TableColumn, numbers, seconds, shares


def tables(
    run: str,
    scores: Scores,
    partition: Callable[[int], str] = str,
    unix_start: int = 0,
    spoken: Callable[[str], str] = str,
) -> Iterator[FittedTable]:
    """Yield the score tables of a run: jobs, run times, wait bounds, starts, cuts, drift and site expectations.

    `partition` returns the name of a partition from its number in the log. `unix_start` is the Unix time of second 0.
    `spoken` replaces numbers in a text by the cluster's own names.
    """
    jobs, run_time = scores.policy, scores.run_time
    fared = [numbers("ended", [jobs.jobs], 0), seconds("mean wait", [jobs.mean_wait])]
    fared += [seconds("longest", [jobs.max_wait]), shares("at once", [jobs.zero_wait_share])]
    yield _table("Jobs so far", [*fared, numbers("slowdown", [jobs.mean_bounded_slowdown])], {"run": [run]})
    if run_time.jobs:
        figures = [seconds("error", [run_time.mean_absolute_error]), seconds("of a mean of", [run_time.mean_run_time])]
        figures += [numbers("log score", [run_time.log_score], 3), seconds("CRPS", [run_time.crps])]
        yield _table("Run times predicted", figures, {"run": [run]})

    if bounds := [wait_bound for wait_bound in scores.wait_bounds if wait_bound.queue is None]:
        held = [
            shares("held", [wait_bound.coverage for wait_bound in bounds]).meaning(
                "held: of the bounds of jobs that have started, or left the queue later than their bounds"
            )
        ]
        held += [
            numbers(name, [getattr(wait_bound, name) for wait_bound in bounds], 0)
            for name in ("predictions", "without")
        ]
        names = {
            "bound": [wait_bound.grouping for wait_bound in bounds],
            "for": [percent(wait_bound.quantile, ".4g") for wait_bound in bounds],
        }
        yield _table("Bounds on waits", held, names)

    if scores.starts:
        by = {"by": [NAMES[start.by] for start in scores.starts]}
        yield _table("When jobs start, as predicted at submission", start_columns(scores.starts), by)
    if scores.cuts is not None:
        cuts = scores.cuts
        figures = [shares("cut", [cuts.came_share]), shares("predicted", [cuts.mean_probability])]
        yield _table("Cut at the request", [*figures, numbers("Brier", [cuts.brier], 3)], {"run": [run]})

    if scores.drifts is not None and scores.drifts.episodes:
        yield drift_table(run, [(run, scores.drifts)], unix_start, spoken)
    rows = [
        ("", "all" if row.queue is None else partition(row.queue), expectation)
        for row in scores.expected_starts or ()
        for expectation in expectations_of(row.model_dump())
        if expectation.scores
    ]
    if rows:
        yield starts_table(run, rows)
    if scores.starts_by is not None:
        yield starts_by_table(scores.starts_by, partition)


def starts_by_table(rows: Sequence[StartsByScores], partition: Callable[[int], str] = str) -> FittedTable:
    """Return the table of how often jobs started by the time that was stated, with a row for each partition."""
    columns = [
        shares("came true", [row.came_true for row in rows]).meaning(
            "came true: of the jobs that have started; jobs that still wait do not count, even beyond that time"
        ),
        shares("stated", [row.stated for row in rows]).meaning("stated: the probability that was stated"),
        TableColumn("jobs", "", [f"{row.jobs:,}" for row in rows]),
        TableColumn("stated wait", "", [duration(row.mean_bound) for row in rows]).meaning("stated wait: on average"),
    ]
    names = ["all" if row.queue is None else partition(row.queue) for row in rows]
    return _table('How often "starts by" came true', columns, {"partition": names})


def _table(title: str, columns: Sequence[TableColumn], names: Mapping[str, Sequence[str]]) -> FittedTable:
    return FittedTable(title, names, [column.unmarked() for column in columns])
