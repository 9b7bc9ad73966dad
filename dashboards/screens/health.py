"""Health of the processes in real time: whether they keep up, and the messages that they could not use."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import Rows, board, with_panels
from shadowtime.dashboards.panel_kinds import Asks, chart, lanes
from shadowtime.dashboards.queries import Query
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import BAD, GOOD

UNSCRAPED = "No worker answers: start them with `shadowtime stack up`"
UNFOLLOWED = "No cluster is followed, or its follower is not scraped: see `shadowtime follow --help`"
QUIET = "No event in the last minutes"
STAGE = "{{stage}}"


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "health",
        "Health",
        "Do the processes keep up, and what could they not use? As it is now.",
        time=("now-1h", "now"),
    )
    answers = {"1": ("answers", GOOD), "0": ("silent", BAD)}
    seen = (
        lanes(
            "Processes that answer",
            Asks("Is a process dead? It is silent, or its bar has ended.", "none", UNSCRAPED),
            [Query(f"max by (worker) ({names.ANSWERS})", "{{worker}}")],
            answers,
        ),
        chart(
            "Lag",
            Asks("Does a stage fall behind? Messages that wait for it.", empty=UNSCRAPED),
            [Query(f"sum by (stage) ({names.WORKER_LAG.name})", STAGE)],
        ),
        *(
            chart(title, Asks(question, "s", QUIET), [Query(_quantile(metric, share), STAGE)], flowing=True)
            for title, question, metric, share in (
                (
                    "From an event to the answer, median",
                    "Within which time does a stage answer half of the events? The scheduler answers with a decision.",
                    names.WORKER_LATENCY,
                    0.5,
                ),
                (
                    "From an event to the answer, p99",
                    "Within which time does a stage answer 99 % of the events?",
                    names.WORKER_LATENCY,
                    0.99,
                ),
                (
                    "Time of a batch, p99",
                    "Is Kafka or Redis slow? From reading a batch to its delivery.",
                    names.WORKER_BATCH,
                    0.99,
                ),
            )
        ),
        chart(
            "Events handled",
            Asks("How many events does each stage handle?", "cps", UNSCRAPED),
            [Query(f"sum by (stage) (rate({names.WORKER_EVENTS.name}[1m]))", STAGE)],
            flowing=True,
        ),
        chart(
            "Samples written",
            Asks("Does VictoriaMetrics accept all samples?", empty=UNSCRAPED),
            [
                Query(f"sum(rate({names.WRITTEN.name}[1m]))", "per second"),
                Query(f"sum({names.REFUSED.name})", "refused"),
                Query(f"sum({names.WRITE_RETRIES.name})", "batches repeated"),
                Query(f"sum({names.WRITER_LAG.name})", "messages behind"),
            ],
        ),
    )
    more: Rows = {
        "What should be zero": [
            chart(
                "Dead letters",
                Asks(
                    "How many messages could a stage not use? Topic `dead-letters` has them and the reasons.",
                    empty=UNSCRAPED,
                ),
                [Query(f"sum by (stage) ({names.WORKER_DEAD_LETTERS.name})", STAGE)],
            ),
            chart(
                "Stopped runs",
                Asks(
                    "Which stage cannot continue a run? Its dead letter states why. Repair: `shadowtime rebuild`.",
                    "none",
                    UNSCRAPED,
                ),
                [Query(f"sum by (stage) ({names.WORKER_QUARANTINED.name})", STAGE)],
            ),
            chart(
                "Messages of stopped runs",
                Asks("How many messages of stopped runs are left aside? Per five minutes.", empty=UNSCRAPED),
                [Query(f"sum by (stage) (increase({names.WORKER_LEFT_ASIDE.name}[5m]))", STAGE)],
            ),
            chart(
                "Restarts",
                Asks("Do workers crash? Their restarts within the last hour.", "none", UNSCRAPED),
                [Query(f"sum by (stage) (changes_prometheus({names.WORKER_START.name}[1h]))", STAGE)],
            ),
            chart(
                "Work done twice",
                Asks(
                    "Do two workers own the same run, or do servers fail? All stages, per five minutes.",
                    empty=UNSCRAPED,
                ),
                [
                    Query(f"sum(increase({metric.name}[5m]))", title)
                    for title, metric in (
                        ("duplicate events", names.WORKER_DUPLICATES),
                        ("transactions fenced off", names.WORKER_FENCED),
                        ("batches repeated", names.WORKER_RETRIES),
                        ("runs whose state was altered", names.WORKER_ALTERED),
                        ("partitions whose log was replaced", names.WORKER_REPLACED_LOGS),
                    )
                ],
                span=24,
            ),
        ],
        "Followed clusters and Grafana Live": [
            chart(
                "Lines for Grafana Live",
                Asks("Do decisions reach Grafana as they are made? Zero unless grafana-url is set.", empty=UNSCRAPED),
                [
                    Query(f"sum(rate({names.LIVE_PUSHED.name}[1m]))", "per second"),
                    Query(f"sum({names.LIVE_DROPPED.name})", "dropped"),
                ],
            ),
            chart(
                "Followed clusters",
                Asks("How far are the published events behind each followed cluster?", "s", UNFOLLOWED),
                [Query(names.FOLLOW_BEHIND.name, "{{followed}}")],
            ),
            chart(
                "What following costs",
                Asks(
                    "What share of its time does a cluster's scheduler spend on its follower? The limit is 2 %.",
                    "percentunit",
                    UNFOLLOWED,
                ),
                [
                    Query(names.FOLLOW_SHARE.name, "scheduler of {{followed}}"),
                    Query(f"rate({names.FOLLOW_SECONDS.name}[5m])", "waiting for {{followed}}"),
                ],
                flowing=True,
            ),
            chart(
                "Reported by followers",
                Asks(
                    "Are the events of a followed cluster complete? All but events and answers should be rare.",
                    "none",
                    UNFOLLOWED,
                ),
                [
                    Query(f"sum(increase({metric.name}[5m]))", title)
                    for title, metric in (
                        ("events", names.FOLLOW_EVENTS),
                        ("answers", names.FOLLOW_ANSWERS),
                        ("no answers", names.FOLLOW_FAILURES),
                        ("reported late", names.FOLLOW_LATE),
                        ("ends guessed", names.FOLLOW_GUESSED),
                        ("jobs left out", names.FOLLOW_LEFT_OUT),
                        ("lines refused", names.FOLLOW_REFUSED),
                    )
                ],
            ),
            chart(
                "Doubted by followers",
                Asks("Which answers of a cluster does its follower not believe? All should be 0.", "none", UNFOLLOWED),
                [
                    Query(f"sum(increase({names.FOLLOW_HELD_BACK.name}[5m]))", "starts held back"),
                    Query(f"sum({names.FOLLOW_CONTRADICTED.name})", "contradicted now"),
                ],
            ),
        ],
    }
    return with_panels(made, seen, more)


def _quantile(metric: names.Metric, share: float) -> str:
    return f"histogram_quantile({share:g}, sum by (le, stage) (rate({metric.name}_bucket[5m])))"
