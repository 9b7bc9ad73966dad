"""Shadows beside their clusters, in real time: the performance of other policies on the same jobs."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import board
from shadowtime.dashboards.panels import Asks, chart
from shadowtime.dashboards.queries import Query
from shadowtime.shared import metric_names as names

NO_SHADOW = "No cluster has a shadow, or it is not scraped: see `shadowtime shadow --help`"
NONE_WAITS = "No job waits, or no cluster has a shadow that is scraped"
BOTH = "{{shadow}}: {{of}}"
ONE = "{{shadow}}"
ALL = '{shape="all"}'


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board(
        "twin",
        "The twin",
        "How would other policies fare on a cluster? Of whole days, whose jobs have ended in both.",
        time=("now-30d", "now"),
    )
    for panel in (
        chart(
            "Mean wait, real and shadow",
            Asks("How long do the same jobs wait really, and under the other policy?", "s", NO_SHADOW),
            [Query(f"{names.TWIN_WAIT.name}{ALL}", BOTH)],
        ),
        chart(
            "Change of the mean wait",
            Asks(
                "By how much does the mean wait change? Below 0 is shorter; with its bounds.", "percentunit", NO_SHADOW
            ),
            [Query(f"{names.TWIN_CHANGE.name}{ALL}", "{{shadow}}: {{bound}}")],
        ),
        chart(
            "Evidence",
            Asks("Is the difference of waits real? From 20 on, however often one looks.", "none", NO_SHADOW),
            [Query(names.TWIN_EVIDENCE.name, ONE)],
        ),
        chart(
            "Change of the mean wait, by class",
            Asks("For whom is it better, for whom worse?", "percentunit", NO_SHADOW),
            [Query(f'{names.TWIN_CHANGE.name}{{bound="mean"}}', "{{shadow}}: {{shape}}")],
        ),
        chart(
            "Start sooner or later",
            Asks("Which share of the jobs starts a minute sooner or later at least?", "percentunit", NO_SHADOW),
            [Query(f"{names.TWIN_MOVED.name}{ALL}", "{{shadow}}: {{when}}")],
        ),
        chart(
            "Slowdown",
            Asks("What is the mean bounded slowdown?", "none", NO_SHADOW),
            [Query(f"{names.TWIN_SLOWDOWN.name}{ALL}", BOTH)],
        ),
        chart(
            "Longest wait",
            Asks("How long did the job wait that waited for longest?", "s", NO_SHADOW),
            [Query(f"{names.TWIN_LONGEST.name}{ALL}", BOTH)],
        ),
        chart(
            "Waiting for longest now",
            Asks("Does a job starve? How long those have waited that have not started yet.", "s", NONE_WAITS),
            [Query(names.TWIN_WAITING.name, BOTH)],
        ),
        chart(
            "Utilization",
            Asks("What share of the processors runs jobs?", "percentunit", NO_SHADOW),
            [Query(names.TWIN_BUSY.name, BOTH)],
        ),
        chart(
            "Jobs compared",
            Asks("On how many jobs does all this rest?", "none", NO_SHADOW),
            [Query(f"{names.TWIN_JOBS.name}{ALL}", ONE)],
        ),
        chart(
            "Events published",
            Asks("Does the shadow go on?", "none", NO_SHADOW),
            [Query(f"rate({names.SHADOW_EVENTS.name}[5m])", ONE)],
        ),
        chart(
            "Behind its cluster",
            Asks("How far is the shadow behind the cluster? An exact one waits for ends of jobs.", "s", NO_SHADOW),
            [Query(names.SHADOW_BEHIND.name, ONE)],
        ),
    ):
        made = made.with_panel(panel)
    return made
