"""What the scheduler does: which jobs run, why they were started, and whether its probabilities came true."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.parts import Query, bars, board, chart, grown, lanes, last, live, number, of
from shadowtime.shared import metric_names as names

PROBABILISTIC = "Empty for policies that weigh no probabilities."
FOLLOWED = f"Candidates are followed to their outcomes in batches of a thousand. {PROBABILISTIC}"
CALIBRATED = (
    ("exact", "raw probability", "It takes run times as independent of each other, which they are not."),
    ("recalibrated", "recalibrated probability", "Empty for policies without `recalibrate`."),
)


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "scheduler",
        "Scheduling",
        "Occupancy, decisions with their reasons, probabilities of delay against what happened.",
        ("cluster", "policy", "run", "queue"),
        window=True,
    )
    for panel in (
        number(
            "Longest waiting job", Query(of(names.LONGEST_WAITING_JOB), "{{run}}"), names.LONGEST_WAITING_JOB.meaning
        ),
        number("Scheduling passes", Query(of(names.SCHEDULING_POINTS), "{{run}}"), names.SCHEDULING_POINTS.meaning),
        number("Running jobs without a lane", Query(of(names.LANES_LEFT_OUT), "{{run}}"), names.LANES_LEFT_OUT.meaning),
        lanes(
            "Who runs",
            [Query(of(names.LANE_JOB), "{{lane}} {{run}}")],
            "Each lane holds one job from start to end, by number, as far as the samples show it; choose one run. Jobs "
            "that start while all lanes are taken are not shown.",
        ),
        chart(
            "Occupancy",
            [Query(f"{of(names.PROCESSORS_BUSY)} / {of(names.PROCESSORS)}", "{{run}}")],
            "Share of the processors that running jobs hold.",
            "percentunit",
        ),
        chart("Queue", [Query(of(names.QUEUED_JOBS, queue="$queue"), "{{queue}} {{run}}")], names.QUEUED_JOBS.meaning),
        chart(
            "Decisions by reason",
            [Query(f"sum by (kind, reason, run) ({grown(names.DECISIONS)})", "{{kind}}: {{reason}} {{run}}")],
            "Starts and kills in the chosen window.",
            stacked=True,
        ),
        chart(
            "Probability of the starts that were risked",
            [
                Query(
                    f"{grown(names.START_PROBABILITY)} / "
                    f"on (cluster, policy, run) {grown(names.DECISIONS, reason='probably-harmless')}",
                    "{{run}}",
                )
            ],
            f"Mean stated probability of delaying the head, over the chosen window. {PROBABILISTIC}",
            "percentunit",
        ),
        *(
            bars(
                f"Stated / happened, {of_what}",
                [
                    Query(_share(names.CANDIDATE_PROBABILITY, measure), "stated", instant=True),
                    Query(_share(names.CANDIDATES_DELAYED, measure), "happened", instant=True),
                ],
                f"By tenth of the {of_what}: its mean, and the share of all candidates that delayed, or would have. "
                f"{why} {FOLLOWED}",
                "probability",
            )
            for measure, of_what, why in CALIBRATED
        ),
        bars(
            "Candidates by probability",
            [
                Query(_count("yes"), "started", instant=True),
                Query(_count("no"), "not started", instant=True),
            ],
            f"How many candidates there were in each tenth of the raw probability. {FOLLOWED}",
            "probability",
            "short",
        ),
        chart(
            "Calibration error",
            [Query(of(names.CALIBRATION_ERROR), "{{measure}} {{run}}")],
            f"{names.CALIBRATION_ERROR.meaning} Exact as computed, recalibrated, and by the paper's bound. {FOLLOWED}",
            "percentunit",
        ),
        chart(
            "Brier score",
            [Query(of(names.BRIER_SCORE), "{{measure}} {{run}}")],
            f"{names.BRIER_SCORE.meaning} {FOLLOWED}",
        ),
        live("Decisions, live", "decision", f"The last starts and kills with their reasons. {LIVE}"),
        live("Predictions, live", "prediction", f"What was said of the last jobs that came in, in seconds. {LIVE}"),
    ):
        made = made.with_panel(panel)
    return made


LIVE = "From Grafana Live: empty unless the process `metrics` was told where Grafana is (grafana-url)."


def _share(metric: names.Metric, measure: str) -> str:
    told, of_all = (f"sum by (probability) ({last(each, measure=measure)})" for each in (metric, names.CANDIDATES))
    return f"{told} / {of_all}"


def _count(started: str) -> str:
    return f"sum by (probability) ({last(names.CANDIDATES, measure='exact', started=started)})"
