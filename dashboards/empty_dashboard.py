"""An empty dashboard, with its variables, links and annotations, and its rows of panels."""

from collections.abc import Iterable, Mapping, Sequence

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model

from shadowtime.dashboards.panel_kinds import STORE
from shadowtime.dashboards.queries import EVER, VARIABLES, WHERE, Query, time_ranges

TAG = "shadowtime"
Panel = Builder[model.Panel]
Rows = Mapping[str, Sequence[Panel]]
"""Panels by the title of their row."""

LATELY = "now-7d", "now"
"""Default time range of a dashboard. The link *Time of the log* leads to the range of the chosen experiment."""

SOURCE_UID = "victoria-metrics"
WINDOWS = "6h,1d,7d"
WHEN = "${__from:date:D MMM YYYY} to ${__to:date:D MMM YYYY}"
"""Title of a dashboard's first row. It states the year, because a log may be of any year."""


def board(
    name: str,
    title: str,
    about: str,
    variables: Sequence[str] = (),
    time: tuple[str, str] = LATELY,
    *,
    several: bool = False,
    window: bool = False,
) -> sdk.Dashboard:
    """Return a dashboard without panels.

    Parameters
    ----------
    name, title, about
        File name, title and description of the dashboard.
    variables
        Keys of `VARIABLES`: the variables that the panels use.
    time
        Start and end of the time range.
    several
        Whether several policies can be selected.
    window
        Whether the time window of sums can be selected.
    """
    uid = f"shadowtime-{name.replace('_', '-')}"
    made = sdk.Dashboard(title).uid(uid).description(about).tags([TAG])
    of_runs = "experiment" in variables
    if of_runs:
        here = f"/d/{uid}?from=${{begin}}&to=${{end}}"
        link = sdk.DashboardLink("Time of the log").type(model.DashboardLinkType.LINK).icon("time").url(here)
        made = made.link(link.include_vars(True).tooltip("Show the chosen experiment in the time of its log"))
    link = sdk.DashboardLink("Shadowtime").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    made = made.link(link.as_dropdown(True).include_vars(True).keep_time(True))
    made = made.timezone("utc").tooltip(model.DashboardCursorSync.CROSSHAIR).readonly().time(*time)
    made = made.refresh("" if of_runs else "30s").with_variable(_source())
    for variable in variables:
        made = made.with_variable(_variable(variable, several=several))
    if window:
        day = model.VariableOption(selected=True, text="1d", value="1d")
        made = made.with_variable(sdk.CustomVariable("window").label("sums over").values(WINDOWS).current(day))
    if of_runs:
        for label in ("begin", "end"):
            made = made.with_variable(hidden(label, time_ranges(",".join(WHERE)), label))
        of_one = "policy" in variables and not several
        made = made.with_row(sdk.Row(f"$cluster{' under $policy' * of_one}, {WHEN}"))
    return made.annotation(_alerts())


def with_panels(made: sdk.Dashboard, panels: Iterable[Panel], more: Rows | None = None) -> sdk.Dashboard:
    """Return the dashboard with visible `panels`, and with a collapsed row for each title and its panels in `more`."""
    for panel in panels:
        made = made.with_panel(panel)
    for title, further in (more or {}).items():
        row = sdk.Row(title)
        for panel in further:
            row = row.with_panel(panel)
        made = made.with_row(row)
    return made


def mark(name: str, where: Query, title: str, colour: str) -> sdk.AnnotationQuery:
    """Return annotations in all panels: a mark at every time at which the query `where` has a value.

    The title of an annotation is `title`. Its text is the legend of its series.
    """
    made = _Annotation(title, where.legend).name(name).datasource(STORE).enable(True).icon_color(colour)
    return made.expr(where.expr)


class _Annotation(sdk.AnnotationQuery):
    """Annotations with title and text, which the SDK's annotations lack."""

    def __init__(self, title: str, text: str) -> None:
        self._internal = _Worded(title, text)


class _Worded(model.AnnotationQuery):
    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._words: dict[str, object] = {"titleFormat": title, "textFormat": text}

    def to_json(self) -> dict[str, object]:
        """Return the annotation as Grafana stores it."""
        return super().to_json() | self._words


def hidden(name: str, query: str, label: str) -> sdk.QueryVariable:
    """Return a hidden variable for use in links: the value of `label` in the answer to `query`."""
    return _asked(name, query, label).hide(model.VariableHide.HIDE_VARIABLE)


def _asked(name: str, query: str, label: str) -> sdk.QueryVariable:
    """Return a variable with the values of a label in the answer to a query.

    Grafana's `label_values` would list only the values in the selected time range.
    """
    made = sdk.QueryVariable(name).datasource(STORE).refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    return made.query(f"query_result({query})").regex(f'/{label}="([^"]*)"/')


def _source() -> sdk.DatasourceVariable:
    ours = model.VariableOption(selected=True, text="VictoriaMetrics", value=SOURCE_UID)
    return sdk.DatasourceVariable("datasource").label("data source").type("prometheus").current(ours)


def _variable(name: str, *, several: bool) -> sdk.QueryVariable:
    """Return a dashboard variable. Without a preset, Grafana selects its first value: of `experiment`, the newest."""
    metric, label, before = VARIABLES[name]
    newest_first = name == "experiment"
    order = model.VariableSort.ALPHABETICAL_DESC if newest_first else model.VariableSort.NATURAL_ASC
    query = f"count by ({label}) (last_over_time({metric.name}{{{before}}}{EVER}))"
    made = _asked(name, query, label).label(name).sort(order)
    if name == "real":
        return made.label("cluster").regex('/shadow="([^"/]*)/')
    if name == "queue":  # preset to the cluster as a whole
        return made.current(model.VariableOption(selected=True, text="all", value="all"))
    if name == "jobs":
        return made.current(model.VariableOption(selected=True, text="all jobs", value="all jobs"))
    if name == "baseline":  # preset to easy, if it ran; Grafana selects the first policy otherwise: easy with keys
        easy = f'{label}=~"easy(:.*)?",'
        first = query.replace("{", f"{{{easy}", 1)
        made = _asked(name, f"sort_desc(2 * {first} ^ 0 or {query} ^ 0)", label).sort(model.VariableSort.DISABLED)
        return made.label("compared with").current(model.VariableOption(selected=True, text="easy", value="easy"))
    if name == "shadow" or (name == "policy" and several):
        chosen = model.VariableOption(selected=True, text=["All"], value=["$__all"])
        return made.multi(True).include_all(True).all_value(".+").current(chosen)
    return made


def _alerts() -> sdk.AnnotationQuery:
    source = model.DataSourceRef(type_val="grafana", uid="-- Grafana --")
    query = sdk.AnnotationQuery().name("Alerts").datasource(source)
    return query.enable(True).hide(True).icon_color("red").type("dashboard").built_in(1)
