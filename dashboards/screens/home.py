"""The home dashboard: whether all is well, the list of runs, and the questions that each screen answers."""

from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.builders.table import Panel
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, VariableSort

from shadowtime.dashboards.empty_dashboard import board, hidden, with_panels
from shadowtime.dashboards.panel_kinds import COUNT, DAYS, Asks, number, words
from shadowtime.dashboards.queries import EVER, RUN, Query, ever, time_ranges
from shadowtime.dashboards.screens.health import UNSCRAPED
from shadowtime.dashboards.screens.moments import gauge, rows
from shadowtime.shared import metric_names as names
from shadowtime.shared.text import BAD, GOOD, WARNING

NOTHING = "No run yet: shadowtime replay --transport kafka"
NONE_RUNS = "No cluster is followed now, see `shadowtime follow --help`. Replays are listed below"
TIMES = 160
"""Width in pixels of a column with dates and times."""

NOW = "2h"
"""A cluster runs now if it has a sample that is at most this old."""

LAST_ANSWERS = f'{names.WORKER_LATENCY.name}_bucket{{stage="scoreboard"}}'
"""The times from events to the answers of the last stage. Earlier stages answer sooner and would lower the quantile."""

NEWEST_FIRST = VariableSort.ALPHABETICAL_DESC
CHOSEN = "&var-experiment=${__data.fields.experiment:percentencode}&var-cluster=${__data.fields.cluster:percentencode}"
NEWEST = "?from=${begin}&to=${end}&var-experiment=${experiment:percentencode}&var-cluster=${cluster:percentencode}"
HIDDEN = [
    DynamicConfigValue(id_val="custom.hidden", value=True),
    DynamicConfigValue(id_val="custom.hideFrom", value={"viz": True, "legend": False, "tooltip": False}),
]
"""Overrides that hide a column used only for links: the option of Grafana until 12.1, and that of later versions."""

WHERE = f"""
| Question | Screen |
|---|---|
| Which policy is better, by how much, at what price? | [Which policy?](/d/shadowtime-policies{NEWEST}) |
| Is the machine full? Who waits, how long? | [Machine and queue](/d/shadowtime-scoreboard{NEWEST}) |
| Why do jobs start? Can the probabilities be believed? | [Decisions](/d/shadowtime-scheduler{NEWEST}) |
| Can predicted run times be believed? | [Run times](/d/shadowtime-runtime-distribution{NEWEST}) |
| Are adjusted requests closer to the truth? | [Requested times](/d/shadowtime-walltime-adjustment{NEWEST}) |
| Do the bounds on waits hold? | [Bounds on waits](/d/shadowtime-wait-bound{NEWEST}) |
| How would other policies fare on a cluster that is followed? | [The twin](/d/shadowtime-twin) |
| Which predictions are not to be trusted any more? | [Drift](/d/shadowtime-drift{NEWEST}) |
| Do the processes keep up? | [Health](/d/shadowtime-health) |

These links open the newest experiment, **$experiment**, in the time of its log. In the tables, a click on an experiment
or a cluster opens that one. On each screen, *Time of the log* leads to the time of the experiment that is chosen there.
"""


def dashboard() -> Dashboard:
    """Return this dashboard with its panels. `generate` places and numbers the panels."""
    made = board("home", "Shadowtime", "Is all well, what runs, and where to look?", time=("now-1h", "now"))
    made = made.with_variable(
        hidden("experiment", ever("last_over_time", "experiment", "max"), "experiment").sort(NEWEST_FIRST)
    )
    chosen = 'experiment="$experiment"'
    made = made.with_variable(hidden("cluster", ever("last_over_time", "cluster", "max", chosen), "cluster"))
    of_newest = time_ranges(f'{chosen},cluster="$cluster"')
    for label in ("begin", "end"):
        made = made.with_variable(hidden(label, of_newest, label))
    panels = (
        number(
            "Workers",
            Asks("Do all processes answer?", "none", UNSCRAPED),
            Query(f"min({names.ANSWERS})", "", instant=True),
            steps={0: BAD, 1: GOOD},
            texts={"0": "not all answer", "1": "all answer"},
        ),
        number(
            "Messages behind",
            Asks("Do the stages keep up? Messages that wait for them.", empty=UNSCRAPED),
            Query(f"sum({names.WORKER_LAG.name})", "", instant=True),
            steps={0: GOOD, 10_000: WARNING, 100_000: BAD},
        ),
        number(
            "p99 of answers",
            Asks(
                "How long does an event take through all stages? 99 % of the last 5 minutes take less.",
                "s",
                "No event lately",
            ),
            Query(
                f"histogram_quantile(0.99, sum by (le) (rate({LAST_ANSWERS}[5m])))",
                "",
                instant=True,
            ),
            steps={0: GOOD, 2: WARNING, 30: BAD},
        ),
        number(
            "Stopped runs",
            Asks("Is there a run that a stage could not continue? See Health.", empty=UNSCRAPED),
            Query(f"sum({names.WORKER_QUARANTINED.name})", "", instant=True),
            steps={0: GOOD, 1: BAD},
        ),
        number(
            "Dead letters",
            Asks("How many messages could no stage use? Since the workers started.", empty=UNSCRAPED),
            Query(f"sum({names.WORKER_DEAD_LETTERS.name})", "", instant=True),
            steps={0: GOOD, 1: WARNING},
        ),
        number(
            "Refused samples",
            Asks("Does VictoriaMetrics accept all samples?", empty=UNSCRAPED),
            Query(f"sum({names.REFUSED.name})", "", instant=True),
            steps={0: GOOD, 1: BAD},
        ),
        _running(),
        words("Where to look", WHERE, 10),
        _runs(),
    )
    return with_panels(made, panels)


def _running() -> Panel:
    def of(metric: names.Metric, **labels: str) -> str:
        chosen = ",".join(f'{label}="{value}"' for label, value in labels.items())
        return f"max by ({RUN}) (last_over_time({metric.name}{{{chosen}}}[{NOW}]))"

    panel = rows(
        "Running now",
        Asks("What runs now? Clusters with a sample of the last two hours.", empty=NONE_RUNS),
        [
            Query(f"{of(names.PROCESSORS_BUSY)} / {of(names.PROCESSORS)}", "busy"),
            Query(of(names.RUNNING_JOBS), "jobs running"),
            Query(of(names.QUEUED_JOBS, queue="all"), "jobs waiting"),
            Query(of(names.LONGEST_WAIT), "waiting longest"),
        ],
        {"jobs running": COUNT, "jobs waiting": COUNT, "waiting longest": DAYS},
        6,
    )
    return _linked(gauge(panel, "busy"), "?from=now-7d&to=now&refresh=1m")


def _runs() -> Panel:
    def of(metric: names.Metric) -> str:
        return f"max by ({RUN}) (last_over_time({metric.name}{EVER}))"

    panel = rows(
        "What was run, newest first",
        Asks("What was run, and how far? Dates are those of the logs.", empty=NOTHING),
        [
            Query(of(names.JOBS), "jobs ended"),
            Query(f"1000 * {ever('tfirst_over_time', RUN, 'min')}", "first sample"),
            Query(f"1000 * {ever('tlast_over_time', RUN, 'max')}", "last sample"),
            Query(
                f"{ever('last_over_time', RUN, 'max')} * on (experiment, cluster) "
                f"group_left (begin, end) ({time_ranges()})",
                "range",
            ),
        ],
        {"jobs ended": COUNT, "first sample": "dateTimeAsIso", "last sample": "dateTimeAsIso"},
        12,
    )
    for column in ("first sample", "last sample"):
        panel = panel.override_by_name(column, [DynamicConfigValue(id_val="custom.minWidth", value=TIMES)])
    panel = panel.sort_by([TableSortByFieldState().display_name("experiment").desc(True)])
    panel = _linked(panel, "?from=${__data.fields.begin}&to=${__data.fields.end}")
    for column in ("begin", "end", "range"):
        panel = panel.override_by_name(column, HIDDEN)
    return panel


def _linked(panel: Panel, times: str) -> Panel:
    """Give each row links: the experiment to its comparison of policies, the cluster to its machine and queue."""
    for column, screen in (("cluster", "scoreboard"), ("experiment", "policies")):
        link = {"title": "Open in the time of its log", "url": f"/d/shadowtime-{screen}{times}{CHOSEN}"}
        panel = panel.override_by_name(column, [DynamicConfigValue(id_val="links", value=[link])])
    return panel
