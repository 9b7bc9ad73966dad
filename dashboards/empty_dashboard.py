"""An empty dashboard, with its variables, links and annotations."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.models import dashboard as model

from shadowtime.dashboards.panels import STORE
from shadowtime.dashboards.queries import VARIABLES, Query

TAG = "shadowtime"
REPLAYED = "2024-01-01T00:00:00.000Z", "2024-02-08T00:00:00.000Z"
"""The time range of the bundled trace. The home dashboard links to other runs with their own time ranges."""

WINDOWS = "6h,1d,7d"
WHEN = "$cluster, ${__from:date:MMM YYYY} to ${__to:date:MMM YYYY}"
"""Title of a dashboard's first row. It states the year, because a log may be of any year."""


def board(
    name: str,
    title: str,
    about: str,
    variables: Sequence[str] = (),
    time: tuple[str, str] = REPLAYED,
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
        Start and end of the time range, by default those of the bundled trace.
    several
        Whether several policies can be selected.
    window
        Whether the time window of sums can be selected.
    """
    made = sdk.Dashboard(title).uid(f"shadowtime-{name.replace('_', '-')}").description(about).tags([TAG])
    link = sdk.DashboardLink("Shadowtime").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    made = made.link(link.as_dropdown(True).include_vars(True).keep_time(True))
    made = made.timezone("utc").refresh("5s").tooltip(model.DashboardCursorSync.CROSSHAIR).readonly().time(*time)
    for variable in variables:
        made = made.with_variable(_variable(variable, several=several))
    if window:
        day = model.VariableOption(selected=True, text="1d", value="1d")
        made = made.with_variable(sdk.CustomVariable("window").label("sums over").values(WINDOWS).current(day))
    if "cluster" in variables:
        made = made.with_row(sdk.Row(WHEN))
    return made.annotation(_alerts())


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


def _variable(name: str, *, several: bool) -> sdk.QueryVariable:
    """Return a dashboard variable. Without a preset, Grafana selects the first value: the newest of `experiment`."""
    metric, before = VARIABLES[name]
    label = "policy" if name == "baseline" else name
    made = sdk.QueryVariable(name).label(name).datasource(STORE).refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    newest_first = name == "experiment"
    order = model.VariableSort.ALPHABETICAL_DESC if newest_first else model.VariableSort.NATURAL_ASC
    made = made.query(f"label_values({metric}{{{before}}}, {label})").sort(order)
    if name == "queue":  # preset to the cluster as a whole
        return made.current(model.VariableOption(selected=True, text="all", value="all"))
    if name == "baseline":  # preset to easy; Grafana selects the first policy if there is no easy
        return made.label("compared with").current(model.VariableOption(selected=True, text="easy", value="easy"))
    if name == "policy" and several:
        chosen = model.VariableOption(selected=True, text=["All"], value=["$__all"])
        return made.multi(True).include_all(True).all_value(".+").current(chosen)
    return made


def _alerts() -> sdk.AnnotationQuery:
    source = model.DataSourceRef(type_val="grafana", uid="-- Grafana --")
    query = sdk.AnnotationQuery().name("Alerts").datasource(source)
    return query.enable(True).hide(True).icon_color("red").type("dashboard").built_in(1)
