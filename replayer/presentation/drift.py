"""Drift episodes, the periods in which predictions did not hold, as a table in the terminal."""

from collections.abc import Callable, Sequence

from shadowtime.replayer.comparison import RunResult
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.formatting import clock
from shadowtime.shared.messages import DriftEpisode, DriftScores, describe_drift, whose
from shadowtime.shared.text import TableColumn

MOST = 20
"""Maximum number of episodes of a run in the table. The JSON output lists the others too."""


def drift_table(
    title: str,
    scores: Sequence[tuple[str, DriftScores]],
    unix_start: int = 0,
    spoken: Callable[[str], str] = str,
) -> FittedTable:
    """Return a table with one row per episode. Runs stay in order; in each, episodes of the whole cluster are first.

    `scores` has the name of each run with its drift scores. `unix_start` is the Unix time of second 0. `spoken`
    replaces numbers in a text by the cluster's own names.
    """
    rows = [(name, episode) for name, drifts in scores for episode in shown(drifts.episodes)]
    more = sum(len(drifts.episodes) + drifts.left_out for _, drifts in scores) - len(rows)
    lasts = ["lasts" if row.until is None else clock(row.until, unix_start)[:-9] for _, row in rows]
    names = {} if len(scores) == 1 else {"run": [name for name, _ in rows]}
    names |= {
        "not to be trusted": [describe_drift(row.of, row.what) for _, row in rows],
        "of": [spoken(whose(row.scope, row.number)) for _, row in rows],
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
    """Return the first `MOST` episodes: episodes of the whole cluster, then others, both in the given order."""
    return sorted(episodes, key=lambda episode: episode.scope != "cluster")[:MOST]


def drift_tables(results: Sequence[RunResult]) -> list[FittedTable]:
    """Return the drift table of the results in a list. The list is empty if all predictions held."""
    drifting = [
        (result.plan.label, drifts) for result in results if (drifts := result.scores.drifts) and drifts.episodes
    ]
    plan = results[0].plan
    title = f"{plan.cluster} under {drifting[0][0]}" if len(drifting) == 1 < len(results) else plan.cluster
    return [drift_table(title, drifting, plan.workload.unix_start_time or 0)] if drifting else []
