"""Shadows beside their clusters, in real time: the performance of other policies on the same jobs."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from shadowtime.dashboards.empty_dashboard import Panel, Rows, board, with_panels
from shadowtime.dashboards.panel_kinds import COUNT, DAYS, HOURS, REAL, Asks, chart, target
from shadowtime.dashboards.queries import OF_REAL, Query, composed, either, interval, spelt
from shadowtime.dashboards.screens.moments import rows, sentences, shares
from shadowtime.shared import metric_names as names
from shadowtime.shared.distributions import HOUR_AND_EIGHT
from shadowtime.shared.metric_names import Metric

NO_SHADOW = "No cluster has a shadow, or it is not scraped: see `shadowtime shadow --help`"
NO_DAY = "No whole day is compared yet, or no cluster has a shadow: see `shadowtime shadow --help`"
NONE_WAITS = "No job waits, or no cluster has a shadow that is scraped"
ONE = "{{shadow}}"
REAL_FROM = 20
"""Evidence from which on a difference counts as real, however often you look (docs/twin.md)."""


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board(
        "twin",
        "The twin",
        "How would other policies fare on a cluster? Only whole days count whose jobs have ended in both.",
        ("real", "shadow"),
        time=("now-30d", "now"),
    )
    seen = (
        sentences(
            "In words",
            Asks("Which shadow is better than the real cluster, by how much, and is that known?", empty=NO_DAY),
            Query(
                _verdict(),
                "{{shadow}}: mean wait {{percent}} % {{than}} than really (95 %: {{interval}}); "
                "{{real}}; {{jobs}} jobs compared.",
            ),
        ),
        rows(
            "Each shadow",
            Asks("How do the same jobs fare really, and in each shadow?", empty=NO_DAY),
            [
                *(
                    _figure(f"{of} {title}", metric, of=of, shape="all")
                    for title, metric in (
                        ("wait", names.TWIN_WAIT),
                        ("longest", names.TWIN_LONGEST),
                        ("slowdown", names.TWIN_SLOWDOWN),
                    )
                    for of in ("real", "shadow")
                ),
                _figure("evidence", names.TWIN_EVIDENCE),
                _figure("jobs compared", names.TWIN_JOBS, shape="all"),
            ],
            dict.fromkeys(("real wait", "shadow wait", "real longest", "shadow longest"), DAYS)
            | {"jobs compared": COUNT},
            6,
        ),
        chart(
            "Change of the mean wait",
            Asks("By how much does the mean wait change? Below 0 is shorter.", "percentunit", NO_SHADOW),
            [Query(_short(_of(names.TWIN_CHANGE, shape="all", bound="mean")), ONE)],
        ),
        chart(
            "Evidence",
            Asks(
                f"Is the difference of waits real? Yes from {REAL_FROM} on, however often you look.", "none", NO_SHADOW
            ),
            [Query(_short(_of(names.TWIN_EVIDENCE)), ONE)],
        ),
        _minus_real(
            "Mean wait, shadow minus real",
            Asks("How much longer do the same jobs wait under the other policy?", HOURS, NO_SHADOW),
            names.TWIN_WAIT,
            " / 3600",
            shape="all",
        ),
        target(
            chart(
                "Waiting longest now",
                Asks("Does a job starve? How long the longest waiting job has waited.", HOURS, NONE_WAITS),
                [
                    Query(_short(f"{_of(names.TWIN_WAITING, of='shadow')} / 3600"), ONE),
                    Query(f"max({_of(names.TWIN_WAITING, of='real')}) / 3600", REAL),
                ],
            ),
            REAL,
        ),
        shares(
            "Change of the mean wait, by class",
            Asks(f"For whom is it better, for whom worse? {HOUR_AND_EIGHT}.", "percentunit", NO_SHADOW),
            Query(f"max by (shadow, shape) ({_short(_lately(names.TWIN_CHANGE, bound='mean'))})"),
            "shape",
            "shadow",
            24,
        ),
    )
    more: Rows = {
        "Starts, slowdown, longest wait, utilization": [
            chart(
                "Start sooner or later",
                Asks("What share of the jobs starts at least a minute sooner or later?", "percentunit", NO_SHADOW),
                [Query(_short(_of(names.TWIN_MOVED, shape="all")), "{{shadow}}, {{when}}")],
            ),
            _minus_real(
                "Slowdown, shadow minus real",
                Asks("How much larger is the mean bounded slowdown?", "none", NO_SHADOW),
                names.TWIN_SLOWDOWN,
                shape="all",
            ),
            _minus_real(
                "Longest wait, shadow minus real",
                Asks("How much longer did the job wait that waited longest?", HOURS, NO_SHADOW),
                names.TWIN_LONGEST,
                " / 3600",
                shape="all",
            ),
            _minus_real(
                "Utilization, shadow minus real",
                Asks("How much larger is the share of the processors that runs jobs?", "percentunit", NO_SHADOW),
                names.TWIN_BUSY,
            ),
        ],
        "Do the shadows run?": [
            chart(
                "Events published",
                Asks("Does the shadow continue?", "none", NO_SHADOW),
                [Query(_short(f"rate({_of(names.SHADOW_EVENTS)}[5m])"), ONE)],
                flowing=True,
            ),
            chart(
                "Behind its cluster",
                Asks(
                    "How far is the shadow behind the cluster? An exact shadow waits for ends of jobs.", "s", NO_SHADOW
                ),
                [Query(_short(_of(names.SHADOW_BEHIND)), ONE)],
            ),
        ],
    }
    return with_panels(made, seen, more)


def _of(metric: Metric, **labels: str) -> str:
    chosen = "".join(f',{label}="{value}"' for label, value in labels.items())
    return f'{metric.name}{{{OF_REAL},shadow=~"$shadow"{chosen}}}'


def _short(expr: str) -> str:
    """Return the query whose shadows are named without their cluster, which is chosen above."""
    return f'label_replace({expr}, "shadow", "$1", "shadow", "[^/]+/(.*)")'


def _figure(title: str, metric: Metric, **labels: str) -> Query:
    return Query(f"max by (shadow) ({_lately(metric, **labels)})", title)


def _lately(metric: Metric, **labels: str) -> str:
    return f"last_over_time({_of(metric, **labels)}[$__range])"


def _minus_real(title: str, asks: Asks, metric: Metric, divisor: str = "", **labels: str) -> Panel:
    """Return the chart of each shadow's figure minus the real one. Shadows may have compared different jobs."""
    shadow, real = (_of(metric, of=of, **labels) for of in ("shadow", "real"))
    return chart(title, asks, [Query(_short(f"(({shadow} - ignoring (of) {real}){divisor})"), ONE)])


def _verdict() -> str:
    """Return the query whose labels are the figures of the sentences, one series for each shadow, the best first."""
    common = {
        name: f"max by (shadow) ({_lately(names.TWIN_CHANGE, shape='all', bound=bound)})"
        for name, bound in (("change", "mean"), ("lower", "low"), ("upper", "high"))
    }
    common["sure"] = f"max by (shadow) ({_lately(names.TWIN_EVIDENCE)})"
    common["compared"] = f"max by (shadow) ({_lately(names.TWIN_JOBS, shape='all')})"
    labels = {
        "percent": spelt("round(100 * abs(change)) + 0", "percent", "shadow"),
        "than": either("change", "than", "shorter", "longer", "shadow"),
        "interval": interval("lower", "upper", "shadow"),
        "real": either(f"sure - {REAL_FROM}", "real", "not known to be real yet", "the difference is real", "shadow"),
        "jobs": spelt("compared", "jobs", "shadow"),
    }
    return f"sort({composed(common, 'change', labels, 'shadow')})"
