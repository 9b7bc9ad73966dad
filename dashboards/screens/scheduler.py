"""The scheduler's decisions, their reasons, and the calibration of the stated probabilities."""

from grafana_foundation_sdk.builders import barchart
from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import Rows, board, mark, with_panels
from shadowtime.dashboards.panel_kinds import COUNT, Asks, chart, number
from shadowtime.dashboards.queries import ONE, Query, largest, last, worded
from shadowtime.dashboards.screens.moments import bars, live, rows
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import REASON_NAMES, WARNING

UNWEIGHED = "This policy weighs no probabilities: replay cautious or probabilistic"
TOO_FEW = f"Candidates are followed in batches of 1,000: too few yet. {UNWEIGHED}"
ONE_ONLY = "This policy has no portfolio: only with --policy tuned"
NOT_LIVE = "Not connected: `serve metrics` needs the address of Grafana (grafana-url)"
MEASURES = {
    "recalibrated": (
        "Recalibrated probability",
        f"This policy does not recalibrate: give recalibrate=stated. {TOO_FEW}",
    ),
    "exact": ("Probability of a delay", TOO_FEW),
}


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "scheduler",
        "Decisions",
        "Why do jobs start, and can the probabilities be believed? Of one policy, in the time of its log.",
        ("experiment", "cluster", "policy"),
        window=True,
    )
    begins = f"sum by (member) ({_decides('30d')} unless on (member) {_decides('30d', ' offset $__interval')})"
    made = made.annotation(mark("Who decides", Query(begins, "{{member}}"), "Decides from now on", WARNING))
    seen = (
        number(
            "Calibration error",
            Asks(
                "Can the probabilities be believed? Mean distance of the raw probabilities from what happened.",
                "percentunit",
                TOO_FEW,
            ),
            Query(ONE.of(names.CALIBRATION_ERROR, measure="exact")),
            span=6,
        ),
        number(
            "Brier score",
            Asks("How good are the raw probabilities? Mean squared error; 0.25 is that of a coin.", empty=TOO_FEW),
            Query(ONE.of(names.BRIER_SCORE, measure="exact")),
            span=6,
        ),
        number(
            "Scheduler passes",
            Asks("How often has the scheduler looked at the queue?", COUNT),
            Query(ONE.of(names.SCHEDULING_POINTS)),
            span=6,
        ),
        number(
            "Job waiting longest",
            Asks("Which job waits longest at the end of the time range? Its number.", "none"),
            Query(ONE.of(names.LONGEST_WAITING_JOB)),
            texts={"-1": "none waits"},
            span=6,
        ),
        _reliability("exact"),
        bars(
            "Candidates by probability of a delay",
            Asks("How many candidates do these tenths rest on?", COUNT, TOO_FEW),
            [Query(_count("yes"), "started"), Query(_count("no"), "not started")],
            "probability",
        ),
        chart(
            "Starts and kills by reason",
            Asks("Why do jobs start? Over the time chosen above; rare reasons are summed."),
            [
                Query(
                    largest(
                        f"label_join({worded(ONE.grown(names.DECISIONS), 'reason', REASON_NAMES)}, "
                        '"why", ": ", "kind", "reason")',
                        "why",
                    ),
                    "{{why}}",
                )
            ],
            stacked=True,
            flowing=True,
        ),
        chart(
            "Risk of the starts that were risked",
            Asks(
                "How probable was it that they would delay the head? Mean of the time chosen above.",
                "percentunit",
                UNWEIGHED,
            ),
            [
                Query(
                    f"{ONE.grown(names.START_PROBABILITY)} / "
                    f"on (experiment, cluster, policy) {ONE.grown(names.DECISIONS, reason='probably-harmless')}"
                )
            ],
            flowing=True,
        ),
    )
    more: Rows = {
        "Recalibrated probabilities": [
            _reliability("recalibrated"),
            chart(
                "Calibration error so far",
                Asks(
                    "Do probabilities get better or worse? Raw, recalibrated, and the paper's bound.",
                    "percentunit",
                    TOO_FEW,
                ),
                [
                    Query(ONE.of(names.CALIBRATION_ERROR, measure=measure), name)
                    for measure, name in (("exact", "raw"), ("recalibrated", "recalibrated"), ("bound", "bound"))
                ],
            ),
        ],
        "Portfolio, with --policy tuned": [
            chart(
                "Weights of the members",
                Asks(
                    "Which members of the portfolio are ahead? A mark shows which member decides from then on.",
                    "percentunit",
                    ONE_ONLY,
                ),
                [Query(largest(ONE.of(names.MEMBER_WEIGHT), "member"), "{{member}}")],
            ),
            rows(
                "Who decides",
                Asks(
                    "Which member decides at the end of the time range? Slowdowns are shares of EASY's.", empty=ONE_ONLY
                ),
                [
                    Query(f"sum by (member) ({_decides('$__range')} > bool 0)", "decides"),
                    Query(_of_members(names.MEMBER_SLOWDOWN), "slowdown"),
                    Query(_of_members(names.MEMBER_WEIGHT), "weight"),
                ],
                {"decides": "bool_yes_no", "slowdown": "percentunit", "weight": "percentunit"},
                span=12,
            ).sort_by([TableSortByFieldState().display_name("weight").desc(True)]),
        ],
        "As they come, with Grafana Live": [
            live("Decisions as they come", Asks("What was decided last, and why?", empty=NOT_LIVE), "decision"),
            live(
                "Predictions as they come",
                Asks("What was predicted for the last jobs? In seconds.", empty=NOT_LIVE),
                "prediction",
            ),
        ],
    }
    return with_panels(made, seen, more)


def _reliability(measure: str) -> barchart.Panel:
    """Return bars of the stated and of the observed share of delays, for each tenth of the probability."""
    of_what, empty = MEASURES[measure]
    return bars(
        f"{of_what}: stated and observed",
        Asks(
            f"Are stated probabilities right? For each tenth of the {of_what.lower()}: the mean stated probability, "
            "and the share of candidates that delayed the head or would have.",
            "percentunit",
            empty,
        ),
        [
            Query(_share(names.CANDIDATE_PROBABILITY, measure), "stated"),
            Query(_share(names.CANDIDATES_DELAYED, measure), "observed"),
        ],
        "probability",
    )


def _decides(within: str, when: str = "") -> str:
    """Return the query for the member that decided last, in the window `within`, with the time offset `when`.

    Its value is the time of the last sample of `MEMBER_DECIDES`. Samples may be days apart.
    """
    return f"topk(1, tlast_over_time({ONE.of(names.MEMBER_DECIDES)}[{within}]{when}))"


def _of_members(metric: names.Metric) -> str:
    return f"sum by (member) ({last(ONE.of(metric))})"


def _share(metric: names.Metric, measure: str) -> str:
    of_metric, of_all = (
        f"sum by (probability) ({last(ONE.of(counter, measure=measure))})" for counter in (metric, names.CANDIDATES)
    )
    return f"{of_metric} / {of_all}"


def _count(started: str) -> str:
    return f"sum by (probability) ({last(ONE.of(names.CANDIDATES, measure='exact', started=started))})"
