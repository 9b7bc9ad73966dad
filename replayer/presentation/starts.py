"""Scores of predicted start distributions against the actual starts, as a table in the terminal."""

from collections.abc import Sequence
from functools import partial

from shadowtime.replayer.comparison import RunResult
from shadowtime.replayer.presentation.names import short_names
from shadowtime.replayer.presentation.policies import forecaster
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import percent
from shadowtime.shared.messages import ProbabilityScores, StartDistributionScores
from shadowtime.shared.text import Measure, TableColumn, numbers, seconds, shares, times

NAMES = {"sampled": "sampled futures", "point": "forecast alone", "bounds": "table of bounds"}


def start_table(results: Sequence[RunResult], *, exact: bool = False) -> FittedTable:
    """Return a table with one row per result and predicted wait distribution. With `exact`, times are in seconds."""
    short = short_names(forecaster(result.plan) for result in results)
    forecasts = [
        (short[forecaster(result.plan)], forecast) for result in results for forecast in result.scores.starts or ()
    ]
    rows = [forecast for _, forecast in forecasts]
    columns = start_columns(rows, exact=exact)
    cuts = [cut for result in results if (cut := result.scores.cuts) is not None]
    return FittedTable(
        f"{results[0].plan.cluster}, when jobs start, as predicted at submission",
        {"policy": [name for name, _ in forecasts], "by": [NAMES[row.by] for row in rows]},
        columns,
        notes=[describe_cut_scores(cuts[0])] if len(cuts) == 1 else [],
    )


def start_columns(rows: Sequence[StartDistributionScores], *, exact: bool = False) -> list[TableColumn]:
    """Return the columns of scores of wait distributions. With `exact`, times are in seconds."""
    measure: Measure = seconds if exact else partial(times, like=[row.mean_wait for row in rows])
    held = {
        level: [next((interval for interval in row.intervals if interval.level == level), None) for row in rows]
        for level in (0.5, 0.8, 0.95)
    }
    columns = [
        measure("CRPS", [row.crps for row in rows]).meaning(
            "CRPS: continuous ranked probability score of the wait; of a single number, the mean error"
        ),
        *(
            shares(
                f"in {percent(level, 'g')}",
                [None if share is None else share.covered_by_chance for share in group_shares],
            )
            for level, group_shares in held.items()
        ),
        numbers("Brier", [None if row.within is None else row.within.brier for row in rows], 3).meaning(
            "in …: waits within that interval, ties in part; Brier: of the probability of a start within a stated time"
        ),
        numbers("jobs", [row.jobs for row in rows], 0),
    ]
    return [column.unmarked() for column in columns]


def describe_cut_scores(cuts: ProbabilityScores) -> str:
    """Return in words the scores of the probabilities that a job is cut at its requested time."""
    return (
        f"cut at the request: {percent(cuts.came_share)} of jobs, {percent(cuts.mean_probability)} by their predicted"
        f" run times; Brier {cuts.brier:.3f}"
    )
