"""The processes themselves, in real time: whether they keep up, and what they could not use."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.parts import Query, board, chart
from shadowtime.shared import metric_names as names


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "health",
        "Health",
        "Workers and the process that writes these figures, as they are now.",
        time=("now-1h", "now"),
    )
    for panel in (
        chart(
            "Answers",
            [Query(f"sum by (worker) ({names.ANSWERS})", "{{worker}}")],
            "Processes that answered when they were last asked for their figures; what is at 0 or has ended is dead.",
        ),
        chart("Lag", [Query(f"sum by (stage) ({names.WORKER_LAG.name})", "{{stage}}")], names.WORKER_LAG.meaning),
        chart(
            "From an event to each stage's answer",
            [Query(_quantile(names.WORKER_LATENCY, share), f"{share:g} {{{{stage}}}}") for share in (0.5, 0.99)],
            f"{names.WORKER_LATENCY.meaning} The scheduler's is a decision. Nothing while no event comes.",
            "s",
        ),
        chart(
            "Events",
            [Query(f"sum by (stage) (rate({names.WORKER_EVENTS.name}[1m]))", "{{stage}}")],
            "Events handled per second.",
        ),
        chart(
            "Batches",
            [Query(_quantile(names.WORKER_BATCH, 0.99), "{{stage}}")],
            f"{names.WORKER_BATCH.meaning} The 99th percentile; nothing while no event comes.",
            "s",
        ),
        chart(
            "Dead letters",
            [Query(f"sum by (stage) ({names.WORKER_DEAD_LETTERS.name})", "{{stage}}")],
            f"{names.WORKER_DEAD_LETTERS.meaning} They lie on topic `dead-letters`, with the reason.",
        ),
        chart(
            "Quarantined runs",
            [
                Query(f"sum by (stage) ({names.WORKER_QUARANTINED.name})", "{{stage}}"),
                Query(f"sum by (stage) (increase({names.WORKER_LEFT_ASIDE.name}[5m]))", "left aside {{stage}}"),
            ],
            f"{names.WORKER_QUARANTINED.meaning} What comes of them later is left aside, here per five minutes; "
            "`services rebuild` takes them up again, and the dead letter of each says why.",
        ),
        chart(
            "Restarts",
            [Query(f"sum by (stage) (changes({names.WORKER_START.name}[1h]))", "{{stage}}")],
            "How often workers began anew within the last hour.",
        ),
        chart(
            "Repeated work",
            [
                Query(f"sum by (stage) (increase({metric.name}[5m]))", f"{title} {{{{stage}}}}")
                for title, metric in (
                    ("duplicates", names.WORKER_DUPLICATES),
                    ("fenced", names.WORKER_FENCED),
                    ("retries", names.WORKER_RETRIES),
                )
            ],
            "Events that came twice, transactions that another worker forestalled, batches repeated, per five minutes.",
        ),
        chart(
            "Samples written",
            [
                Query(f"sum(rate({names.WRITTEN.name}[1m]))", "written per second"),
                Query(f"sum({names.REFUSED.name})", "refused"),
                Query(f"sum({names.WRITE_RETRIES.name})", "retries"),
                Query(f"sum({names.WRITER_LAG.name})", "messages behind"),
            ],
            "What the process `metrics` writes here.",
        ),
        chart(
            "Grafana Live",
            [
                Query(f"sum(rate({names.LIVE_PUSHED.name}[1m]))", "pushed per second"),
                Query(f"sum({names.LIVE_DROPPED.name})", "dropped"),
            ],
            "Lines for Grafana Live; zero unless it is told where Grafana is.",
        ),
    ):
        made = made.with_panel(panel)
    return made


def _quantile(metric: names.Metric, share: float) -> str:
    return f"histogram_quantile({share:g}, sum by (le, stage) (rate({metric.name}_bucket[5m])))"
