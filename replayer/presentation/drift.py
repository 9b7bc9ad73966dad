"""When predictions did not hold, as a table in the terminal and as JSON."""

from collections.abc import Sequence

from shadowtime.replayer.comparison import RunResult
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import clock
from shadowtime.shared.messages import DriftEpisode, DriftScores, describe_drift, whose
from shadowtime.shared.text import TableColumn

MOST = 20
"""Episodes of a run that the table shows; JSON has all."""


def drift_table(title: str, scores: Sequence[tuple[str, DriftScores]], unix_start: int = 0) -> FittedTable:
    """Return one row per episode, those of all jobs first, of runs by their names."""
    rows = [(name, episode) for name, drifts in scores for episode in shown(drifts.episodes)]
    more = sum(len(drifts.episodes) + drifts.left_out for _, drifts in scores) - len(rows)
    lasts = ["lasts" if row.until is None else clock(row.until, unix_start)[:-9] for _, row in rows]
    names = {} if len(scores) == 1 else {"run": [name for name, _ in rows]}
    names |= {
        "not to be trusted": [describe_drift(row.of, row.what) for _, row in rows],
        "of": [whose(row.scope, row.number) for _, row in rows],
    }
    return FittedTable(
        f"{title}, predictions that did not hold",
        names,
        [
            TableColumn("since", "", [clock(row.since, unix_start)[:-9] for _, row in rows]),
            TableColumn("until", "", lasts),
            TableColumn("failed", "%", [f"{100 * row.share:.0f}" for _, row in rows]),
            TableColumn("may", "%", [f"{100 * row.most:.0f}" for _, row in rows]).meaning(
                "may: the share that may fail"
            ),
        ],
        notes=[f"and {more:,} more; --json has them"] if more else [],
    )


def shown(episodes: Sequence[DriftEpisode]) -> list[DriftEpisode]:
    """Return those to be shown: those of all jobs first, each kind as they came."""
    return sorted(episodes, key=lambda episode: episode.scope != "cluster")[:MOST]


def drift_tables(results: Sequence[RunResult]) -> list[FittedTable]:
    """Return the table of results, none where all predictions held."""
    drifting = [
        (result.plan.label, drifts) for result in results if (drifts := result.scores.drifts) and drifts.episodes
    ]
    plan = results[0].plan
    return [drift_table(plan.cluster, drifting, plan.workload.unix_start_time or 0)] if drifting else []
