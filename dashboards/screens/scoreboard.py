"""The machine and the queue: utilization, waiting jobs and scores of ended jobs, for each policy of an experiment."""

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import Rows, board, mark, with_panels
from shadowtime.dashboards.panel_kinds import COUNT, DAYS, HOURS, Asks, chart
from shadowtime.dashboards.queries import SEVERAL, Query, largest, last
from shadowtime.dashboards.screens.moments import gauge, heat, rows
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import NEUTRAL

JOB_CHANGES = "cancelled|held|changed|suspended|told_late"
"""Regular expression of the job changes that one chart shows, of similar frequency.

The site's expected starts are left out: they may be published every minute."""

NONE_ENDED = "No job has ended yet"
UNOWNED = "No job has ended yet, or the log names no users"
SILENT = "60d"
"""Longest gap between samples of a log. The last value holds during a gap."""


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "scoreboard",
        "Machine and queue",
        "Is the machine full, and who waits how long? Under each policy of an experiment, in the time of its log.",
        ("experiment", "cluster", "policy", "queue", "jobs"),
        several=True,
        window=True,
    )
    made = made.annotation(mark("Capacity", Query(_changed(), "under {{policy}}"), "The machine has changed", NEUTRAL))
    seen = (
        _table(),
        chart(
            "Processors busy",
            Asks("How full is the machine? Mean over the time chosen above. A log may exceed 100 %.", "percentunit"),
            [Query(f"avg_over_time({_busy()}[$window:30m])")],
            flowing=True,
        ),
        chart(
            "Jobs waiting",
            Asks("How long is the queue that was chosen above?"),
            [Query(SEVERAL.of(names.QUEUED_JOBS, queue="$queue"))],
        ),
        chart(
            "Why jobs wait (mean of the policies)",
            Asks("For which reason do jobs wait? Jobs by the first reason that applies."),
            [Query(_reasons(), "{{reason}}")],
            stacked=True,
        ),
        chart(
            "Waiting longest",
            Asks("Is a job forgotten? How long the longest waiting job has waited.", HOURS),
            [Query(f"{SEVERAL.of(names.LONGEST_WAIT)} / 3600")],
        ),
        chart(
            "Mean wait of ended jobs",
            Asks("When did jobs wait long? Over the time chosen above (sums over).", HOURS, "No job ended in it"),
            [Query(f"{SEVERAL.grown(names.WAIT_SUM)} / {SEVERAL.grown(names.JOBS)} / 3600")],
            flowing=True,
        ),
        chart(
            "Slowdown of ended jobs",
            Asks("When did short jobs wait long? Over the time chosen above.", empty="No job ended in it"),
            [Query(f"{SEVERAL.grown(names.SLOWDOWN_SUM)} / {SEVERAL.grown(names.JOBS)}")],
            flowing=True,
        ),
    )
    more: Rows = {
        "Who waits": [
            rows(
                "Users and accounts",
                Asks("Who waits how long? Those with the most ended jobs, over the whole run.", empty=UNOWNED),
                [
                    Query(f"max by (policy, whose) ({last(SEVERAL.of(names.OWNER_JOBS))})", "jobs ended"),
                    Query(
                        f"max by (policy, whose) ({last(SEVERAL.of(names.OWNER_WAIT))} / "
                        f"{last(SEVERAL.of(names.OWNER_JOBS))})",
                        "mean wait",
                    ),
                ],
                {"jobs ended": COUNT, "mean wait": DAYS},
            ),
            heat(
                "Waits of $jobs",
                Asks(
                    "How many jobs waited how long? Ended in the time chosen above; choose a partition or a size.",
                    empty="No job ended in it",
                ),
                Query(f"sum by (le) ({SEVERAL.grown(names.WAITS, of='$jobs')})", "{{le}}"),
            ),
            chart(
                "Jobs waiting, by queue",
                Asks("In which queue do jobs wait? Summed over the chosen policies; small queues are summed, too."),
                [Query(largest(SEVERAL.of(names.QUEUED_JOBS, no_queue="all"), "queue"), "queue {{queue}}")],
                stacked=True,
            ),
        ],
        "Waits so far": [
            chart(title, Asks(question, HOURS, NONE_ENDED), [Query(f"{selector} / 3600")])
            for title, question, selector in (
                ("p95 wait", "Within which time did 95 % of the ended jobs start?", _quantile("0.95")),
                ("Median wait", "Within which time did half of the ended jobs start?", _quantile("0.5")),
                ("Longest wait", "What was the worst wait of an ended job?", SEVERAL.of(names.MAX_WAIT)),
            )
        ],
        "Demand, losses and changes": [
            chart(
                "Processors asked for by waiting jobs",
                Asks("How much work waits? As a multiple of the machine.", "percentunit"),
                [Query(f"{SEVERAL.of(names.QUEUED_PROCESSORS)} / {SEVERAL.of(names.PROCESSORS)}")],
            ),
            chart(
                "Jobs cut at their limit",
                Asks("How many jobs were ended because they had requested too little time?", empty=NONE_ENDED),
                [Query(SEVERAL.of(names.ENDED_AT_LIMIT))],
            ),
            chart(
                "Processor hours lost",
                Asks("What did runs cost that the scheduler killed? 0 unless it speculates.", HOURS),
                [Query(f"{SEVERAL.of(names.WASTED)} / 3600")],
            ),
            chart(
                "Cancelled, held, changed, suspended",
                Asks("What else happened to jobs, and how much was reported late? Under every policy the same."),
                [Query(f"max by (what) ({SEVERAL.of(names.HAPPENINGS, what=JOB_CHANGES)})", "{{what}}")],
            ),
        ],
    }
    return with_panels(made, seen, more)


def _table() -> table.Panel:
    """Return the table that answers the question of the dashboard: means, peaks, and values at the end."""

    def of(title: str, expr: str) -> Query:
        return Query(f"max by (policy) ({expr})", title)

    panel = rows(
        "Each policy",
        Asks("Is the machine full, and who waits how long? Over the selected time range, and at its end."),
        [
            of("busy, mean", f"avg_over_time({_busy()}[$__range:30m])"),
            of("busy, end", last(f"{SEVERAL.of(names.PROCESSORS_BUSY)}") + f" / {_capacity()}"),
            of("waiting, peak", f"max_over_time({SEVERAL.of(names.QUEUED_JOBS, queue='all')}[$__range])"),
            of("waiting, end", last(SEVERAL.of(names.QUEUED_JOBS, queue="all"))),
            of("longest, end", last(SEVERAL.of(names.LONGEST_WAIT))),
            of("mean wait", last(SEVERAL.of(names.MEAN_WAIT))),
            of("slowdown", last(SEVERAL.of(names.SLOWDOWN))),
            of("utilization", last(SEVERAL.of(names.UTILIZATION))),
        ],
        dict.fromkeys(("longest, end", "mean wait"), DAYS) | dict.fromkeys(("waiting, peak", "waiting, end"), COUNT),
        8,
    )
    for column in ("busy, mean", "busy, end", "utilization"):
        panel = gauge(panel, column)
    return panel


def _reasons() -> str:
    """Return the query for the mean number of waiting jobs by reason, over all policies. Ended runs count as 0."""
    reasons = SEVERAL.of(names.WAITING_REASONS)
    policies = f"scalar(count(count by (policy) (last_over_time({reasons}[$__range] @ end()))))"
    return f"sum by (reason) (last_over_time({reasons}[{SILENT}])) / {policies}"


def _capacity() -> str:
    return last(SEVERAL.of(names.PROCESSORS))


def _busy() -> str:
    """Return the query for the share of busy processors at any time. Values hold while a log is silent."""
    busy, there = (
        f"last_over_time({SEVERAL.of(metric)}[{SILENT}])" for metric in (names.PROCESSORS_BUSY, names.PROCESSORS)
    )
    return f"({busy} / {there})"


def _changed() -> str:
    """Return the query with a value where the number of processors differs from that at the preceding point of a chart.

    `changes` of VictoriaMetrics would count the first sample after each gap, and samples stop while a log is silent.
    """
    now, before = (
        f"last_over_time({SEVERAL.of(names.PROCESSORS)}[{SILENT}]{offset})" for offset in ("", " offset $__interval")
    )
    return f"sum by (policy) (abs({now} - {before})) > 0"


def _quantile(quantile: str) -> str:
    return SEVERAL.of(names.WAIT_QUANTILE, quantile=quantile)
