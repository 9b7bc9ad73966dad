"""The machine and the queue: utilization, waiting jobs and scores of ended jobs, for each policy of an experiment."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board, mark
from shadowtime.dashboards.panels import Asks, chart, number, target
from shadowtime.dashboards.queries import SEVERAL, Query, largest, last
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import NEUTRAL

JOB_CHANGES = "cancelled|held|changed|suspended|told_late"
"""Regular expression of the job changes that one chart shows, of similar frequency.

The site's expected starts are left out: they may be published every minute."""

NONE_ENDED = "No job has ended yet"
CAPACITY = Query(f"max({SEVERAL.of(names.PROCESSORS)})", "there are")


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "scoreboard",
        "Machine and queue",
        "Is the machine full, and who waits how long? Under each policy of an experiment, in the time of its log.",
        ("experiment", "cluster", "policy", "queue"),
        several=True,
        window=True,
    )
    changed = f"sum by (policy) (changes({SEVERAL.of(names.PROCESSORS)}[$__interval])) > 0"
    made = made.annotation(mark("Capacity", Query(changed, "under {{policy}}"), "The machine has changed", NEUTRAL))
    for panel in (
        number(
            "Busy",
            Asks("Is the machine full at the end of the time range? Share of its processors.", "percentunit"),
            Query(f"{last(SEVERAL.of(names.PROCESSORS_BUSY))} / {last(SEVERAL.of(names.PROCESSORS))}", instant=True),
        ),
        number(
            "Jobs waiting",
            Asks("How many jobs wait at the end of the time range?"),
            Query(SEVERAL.of(names.QUEUED_JOBS, queue="all")),
        ),
        number(
            "Waiting longest",
            Asks("How long has the job waited that waits longest, at the end of the time range?", "s"),
            Query(SEVERAL.of(names.LONGEST_WAIT)),
            texts={"0": "none waits"},
        ),
        number(
            "Mean wait",
            Asks("How long did ended jobs wait on average?", "s", NONE_ENDED),
            Query(SEVERAL.of(names.MEAN_WAIT)),
        ),
        number(
            "Mean slowdown",
            Asks(
                "How many times longer than its run did a job take, waiting included (bounded: 10 s)?", empty=NONE_ENDED
            ),
            Query(SEVERAL.of(names.SLOWDOWN)),
        ),
        number(
            "Utilization",
            Asks("How much of the machine did ended jobs use until the last end?", "percentunit", NONE_ENDED),
            Query(SEVERAL.of(names.UTILIZATION)),
        ),
        target(
            chart(
                "Processors in use",
                Asks("How full is the machine? In recorded runs the log may use more than there is.", "none"),
                [Query(SEVERAL.of(names.PROCESSORS_BUSY)), CAPACITY],
            ),
            CAPACITY.legend,
        ),
        chart(
            "Jobs waiting",
            Asks("How long is the queue that was chosen above?"),
            [Query(SEVERAL.of(names.QUEUED_JOBS, queue="$queue"))],
        ),
        target(
            chart(
                "Processors asked for by waiting jobs",
                Asks("How much work waits, against the processors that there are?", "none"),
                [Query(SEVERAL.of(names.QUEUED_PROCESSORS)), CAPACITY],
            ),
            CAPACITY.legend,
        ),
        chart(
            "Jobs waiting, by queue",
            Asks("In which queue do jobs wait? All policies that are chosen together; small queues are summed."),
            [Query(largest(SEVERAL.of(names.QUEUED_JOBS, no_queue="all"), "queue"), "queue {{queue}}")],
            stacked=True,
        ),
        chart(
            "Mean wait of the jobs that ended",
            Asks("When did jobs wait long? Over the time chosen above (sums over).", "s", "No job ended in it"),
            [Query(f"{SEVERAL.grown(names.WAIT_SUM)} / {SEVERAL.grown(names.JOBS)}")],
        ),
        chart(
            "Mean slowdown of the jobs that ended",
            Asks("When did short jobs wait long? Over the time chosen above.", empty="No job ended in it"),
            [Query(f"{SEVERAL.grown(names.SLOWDOWN_SUM)} / {SEVERAL.grown(names.JOBS)}")],
        ),
        chart(
            "Waiting longest",
            Asks("Is a job forgotten? How long the longest waiting job has waited.", "s"),
            [Query(SEVERAL.of(names.LONGEST_WAIT))],
        ),
        chart(
            "Longest wait so far",
            Asks("What was the worst wait of an ended job?", "s", NONE_ENDED),
            [Query(SEVERAL.of(names.MAX_WAIT))],
        ),
        chart(
            "Wait of 19 jobs in 20, so far",
            Asks("Within which time did 95 % of the ended jobs start?", "s", NONE_ENDED),
            [Query(SEVERAL.of(names.WAIT_QUANTILE, quantile="0.95"))],
        ),
        chart(
            "Wait of every second job, so far",
            Asks("Within which time did half of the ended jobs start?", "s", NONE_ENDED),
            [Query(SEVERAL.of(names.WAIT_QUANTILE, quantile="0.5"))],
        ),
        chart(
            "Jobs cut at their limit",
            Asks("How many jobs were ended as they had asked for too little time?", empty=NONE_ENDED),
            [Query(SEVERAL.of(names.ENDED_AT_LIMIT))],
        ),
        chart(
            "Work thrown away",
            Asks("What did runs cost that the scheduler killed? In processor hours; 0 unless it speculates.", "h"),
            [Query(f"{SEVERAL.of(names.WASTED)} / 3600")],
        ),
        chart(
            "Cancelled, held, changed, suspended",
            Asks("What else happened to jobs, how often, and how much was reported late? Under every policy the same."),
            [Query(f"max by (what) ({SEVERAL.of(names.HAPPENINGS, what=JOB_CHANGES)})", "{{what}}")],
        ),
    ):
        made = made.with_panel(panel)
    return made
