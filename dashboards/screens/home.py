"""The home dashboard: whether all is well, the list of runs, and the questions that each screen answers."""

from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.table import Panel
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from shadowtime.dashboards.empty_dashboard import board
from shadowtime.dashboards.panels import Asks, number, words
from shadowtime.dashboards.queries import Query
from shadowtime.dashboards.screens.health import UNSCRAPED
from shadowtime.dashboards.screens.moments import rows
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import BAD, GOOD, WARNING

EVER = "50y"
"""Look-back window that covers all logs. They may be of any year since 1980; the store has no time before 1970."""

NOTHING = "No run yet: shadowtime replay --transport kafka"
FIRST, LAST = (
    f"min by (experiment, cluster, policy) ({function}({names.RUN_INFO.name}[{EVER}]))"
    for function in ("tfirst_over_time", "tlast_over_time")
)
UNTIL = f"{LAST} + clamp_min(({LAST} - {FIRST}) / 100, 86400)"
"""End of the time range of a run's charts. It is somewhat after the last sample: a chart that ends exactly at the last
sample would not show it."""

CHOSEN = (
    "?from=${__data.fields.first.numeric}&to=${__data.fields.until.numeric}"
    "&var-experiment=${__data.fields.experiment:percentencode}&var-cluster=${__data.fields.cluster:percentencode}"
)
HIDDEN = [
    DynamicConfigValue(id_val="custom.hidden", value=True),
    DynamicConfigValue(id_val="custom.hideFrom", value={"viz": True, "legend": False, "tooltip": False}),
]
"""Overrides that hide a column used only for links: the option of Grafana until 12.1, and that of later versions."""

WHERE = """
| Question | Screen |
|---|---|
| Which policy is better, by how much, at what price? | [Which policy?](/d/shadowtime-policies) |
| Is the machine full? Who waits, how long? | [Machine and queue](/d/shadowtime-scoreboard) |
| Why do jobs start? Can the probabilities be believed? | [Decisions](/d/shadowtime-scheduler) |
| Can predicted run times be believed? | [Run times](/d/shadowtime-runtime-distribution) |
| Are adjusted requests closer to the truth? | [Requested times](/d/shadowtime-walltime-adjustment) |
| Do the bounds on waits hold? | [Bounds on waits](/d/shadowtime-wait-bound) |
| How would other policies fare on a cluster that is followed? | [The twin](/d/shadowtime-twin) |
| Which predictions are not to be trusted any more? | [Drift](/d/shadowtime-drift) |
| Do the processes keep up? | [Health](/d/shadowtime-health) |

A cluster or a policy in the table above opens its screen in the time of its log; from there the menu *Shadowtime* leads
to the others. Each screen shows the newest experiment, in the time range that is chosen.
"""


def dashboard() -> Dashboard:
    """Return the dashboard."""
    made = board("home", "Shadowtime", "Is all well, what was run, and where to look?", time=("now-1h", "now"))
    for panel in (
        number(
            "Workers",
            Asks("Do all processes answer?", "none", UNSCRAPED),
            Query(f"min({names.ANSWERS})", "", instant=True),
            steps={0: BAD, 1: GOOD},
            texts={"0": "one is silent", "1": "all answer"},
        ),
        number(
            "Messages behind",
            Asks("Do the stages keep up? Messages that wait for them.", empty=UNSCRAPED),
            Query(f"sum({names.WORKER_LAG.name})", "", instant=True),
            steps={0: GOOD, 10_000: WARNING, 100_000: BAD},
        ),
        number(
            "Slowest answer",
            Asks(
                "How long does an event take through all stages? 99 of 100, of the last 5 minutes.",
                "s",
                "No event lately",
            ),
            Query(
                f"histogram_quantile(0.99, sum by (le) (rate({names.WORKER_LATENCY.name}_bucket[5m])))",
                "",
                instant=True,
            ),
            steps={0: GOOD, 2: WARNING, 30: BAD},
        ),
        number(
            "Stopped runs",
            Asks("Is there a run that a stage could not carry on? See Health.", empty=UNSCRAPED),
            Query(f"sum({names.WORKER_QUARANTINED.name})", "", instant=True),
            steps={0: GOOD, 1: BAD},
        ),
        number(
            "Dead letters",
            Asks("Did messages come that nobody could use? Since the workers began.", empty=UNSCRAPED),
            Query(f"sum({names.WORKER_DEAD_LETTERS.name})", "", instant=True),
            steps={0: GOOD, 1: WARNING},
        ),
        number(
            "Figures refused",
            Asks("Does the store take all figures?", empty=UNSCRAPED),
            Query(f"sum({names.REFUSED.name})", "", instant=True),
            steps={0: GOOD, 1: BAD},
        ),
        _runs(),
        words("Where to look", WHERE, 12),
    ):
        made = made.with_panel(panel)
    return made


def _runs() -> Panel:
    def of(metric: names.Metric) -> str:
        return f"max by (experiment, cluster, policy) (last_over_time({metric.name}[{EVER}]))"

    panel = rows(
        "What was run, newest first",
        Asks("What runs, what was run, and how did jobs fare? Dates are those of the logs.", empty=NOTHING),
        [
            Query(of(names.JOBS), "ended", instant=True),
            Query(of(names.RUNNING_JOBS), "running", instant=True),
            Query(of(names.MEAN_WAIT), "mean wait", instant=True),
            Query(of(names.SLOWDOWN), "slowdown", instant=True),
            Query(f"1000 * {FIRST}", "first", instant=True),
            Query(f"1000 * {LAST}", "last", instant=True),
            Query(f"1000 * ({UNTIL})", "until", instant=True),
        ],
        {"mean wait": "s", "first": "dateTimeAsIso", "last": "dateTimeAsIso"},
        12,
    ).sort_by([TableSortByFieldState().display_name("experiment").desc(True)])
    for column, screen in (("cluster", "scoreboard"), ("experiment", "policies")):
        link = {"title": "Open in the time of its log", "url": f"/d/shadowtime-{screen}{CHOSEN}"}
        panel = panel.override_by_name(column, [DynamicConfigValue(id_val="links", value=[link])])
    return panel.override_by_name("until", HIDDEN)
