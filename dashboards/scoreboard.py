"""The overview of a cluster: how full it is, who waits, how the jobs fared."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.parts import Query, board, chart, grown, number, of
from shadowtime.shared import metric_names as names


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "scoreboard",
        "Cluster overview",
        "Occupancy, queue and results of the runs of a cluster, in the time of its log.",
        ("cluster", "policy", "run", "queue"),
        window=True,
    )
    for panel in (
        number("Running jobs", Query(of(names.RUNNING_JOBS), "{{run}}"), names.RUNNING_JOBS.meaning),
        number("Waiting jobs", Query(of(names.QUEUED_JOBS, queue="all"), "{{run}}"), names.QUEUED_JOBS.meaning),
        number("Ended jobs", Query(of(names.JOBS), "{{run}}"), names.JOBS.meaning),
        number("Mean wait", Query(of(names.MEAN_WAIT), "{{run}}"), _ended(names.MEAN_WAIT), "s"),
        number("Mean bounded slowdown", Query(of(names.SLOWDOWN), "{{run}}"), _ended(names.SLOWDOWN)),
        number("Utilization", Query(of(names.UTILIZATION), "{{run}}"), _ended(names.UTILIZATION), "percentunit"),
        chart(
            "Processors",
            [
                Query(of(names.PROCESSORS), "all {{run}}"),
                Query(of(names.PROCESSORS_BUSY), "busy {{run}}"),
                Query(f"{of(names.PROCESSORS)} - {of(names.PROCESSORS_BUSY)}", "free {{run}}"),
            ],
            "What the machine has, what running jobs hold and what is free. In recorded runs the log may use more than "
            "there is.",
        ),
        chart(
            "Queue",
            [
                Query(of(names.QUEUED_JOBS, queue="$queue"), "jobs, queue {{queue}} {{run}}"),
                Query(of(names.QUEUED_PROCESSORS), "processors asked for {{run}}"),
            ],
            "Jobs that wait, by queue, and the processors that all of them ask for.",
        ),
        chart(
            "Waits of the jobs that ended in the window",
            [Query(f"{grown(names.WAIT_SUM)} / {grown(names.JOBS)}", "mean {{run}}")],
            "Mean wait over the chosen window; nothing where no job ended in it.",
            "s",
        ),
        chart(
            "Waits so far",
            [
                Query(of(names.WAIT_QUANTILE), "{{quantile}} {{run}}"),
                Query(of(names.GEOMETRIC_MEAN_WAIT), "geometric mean {{run}}"),
                Query(of(names.MAX_WAIT), "longest {{run}}"),
            ],
            "Quantiles, geometric mean and maximum of all waits since the beginning; nothing before the first end.",
            "s",
        ),
        chart(
            "Bounded slowdown",
            [
                Query(f"{grown(names.SLOWDOWN_SUM)} / {grown(names.JOBS)}", "of the window {{run}}"),
                Query(of(names.SLOWDOWN), "so far {{run}}"),
            ],
            "Response time over run time (at least 10 s, at least 1); nothing where no job ended.",
        ),
        chart(
            "Longest waiting job",
            [Query(of(names.LONGEST_WAIT), "{{run}}")],
            f"{names.LONGEST_WAIT.meaning} Its number is on the dashboard of the scheduler.",
            "s",
        ),
        chart(
            "Cut short",
            [
                Query(of(names.ENDED_AT_LIMIT), "ended at their limit {{run}}"),
                Query(of(names.KILLED), "killed {{run}}"),
            ],
            "Jobs cut at their limit, and runs that the scheduler cut short, since the beginning.",
        ),
        chart(
            "Work thrown away",
            [Query(of(names.WASTED), "{{run}}")],
            f"{names.WASTED.meaning} In processor-seconds; 0 unless the policy speculates.",
        ),
    ):
        made = made.with_panel(panel)
    return made


def _ended(metric: names.Metric) -> str:
    return f"{metric.meaning} Nothing before the first end."
