"""What every dashboard is made of: queries over known metrics, panels of one look, variables."""

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, NamedTuple, TypeVar

from grafana_foundation_sdk.builders import barchart, common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import GraphDrawStyle, LegendPlacement, StackingMode, VisibilityMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from shadowtime.shared.metric_names import Metric

STORE = model.DataSourceRef(type_val="prometheus", uid="victoria-metrics")
GRAFANA = model.DataSourceRef(type_val="datasource", uid="grafana")
TAG = "shadowtime"
HEIGHT = 8
REPLAYED = "2024-01-01T00:00:00.000Z", "2024-02-08T00:00:00.000Z"
"""The time range of the bundled trace; other runs are linked with theirs on `policies`."""

VARIABLES = {
    "cluster": ("shadowtime_run_info", ""),
    "policy": ("shadowtime_run_info", 'cluster="$cluster"'),
    "run": ("shadowtime_run_info", 'cluster="$cluster",policy=~"$policy"'),
    "queue": ("shadowtime_queued_jobs", 'cluster="$cluster",run=~"$run"'),
    "grouping": ("shadowtime_wait_bound_predictions_total", 'cluster="$cluster",run=~"$run"'),
}
"""Of each variable, the metric whose label it is and what the variables before it choose."""

WINDOWS = "6h,1d,7d"
OF_RUN = 'cluster="$cluster",policy=~"$policy",run=~"$run"'


Drawing = TypeVar("Drawing", timeseries.Panel, stat.Panel, StateTimeline)


class Query(NamedTuple):
    """What a panel asks, and how its series are called; `instant` asks for the last moment only."""

    expr: str
    legend: str
    instant: bool = False


def of(metric: Metric, **labels: str) -> str:
    """Return the selector of a result of the chosen runs; the value of a label is a regular expression.

    >>> from shadowtime.shared.metric_names import QUEUED_JOBS
    >>> of(QUEUED_JOBS, queue="$queue")
    'shadowtime_queued_jobs{cluster="$cluster",policy=~"$policy",run=~"$run",queue=~"$queue"}'
    """
    chosen = [f'{name}=~"{value}"' for name, value in labels.items()]
    return f"{metric.name}{{{','.join([OF_RUN, *chosen])}}}"


def last(metric: Metric, **labels: str) -> str:
    """Return the last value in the chosen time range, for queries of one moment."""
    return _last(of(metric, **labels))


def grown(metric: Metric, **labels: str) -> str:
    """Return by how much a sum has grown within the chosen window."""
    return f"increase({of(metric, **labels)}[$window])"


def chart(
    title: str, queries: Sequence[Query], about: str, unit: str = "short", *, stacked: bool = False, span: int = 12
) -> timeseries.Panel:
    """Return lines over time; gaps between samples are bridged, as nothing has changed in them."""
    panel = timeseries.Panel().unit(unit).span_nulls(True).fill_opacity(20 if stacked else 0)
    panel = panel.show_points(VisibilityMode.NEVER).line_width(1).legend(_legend())
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    return _finished(panel, title, queries, about, span)


def dots(title: str, queries: Sequence[Query], about: str, unit: str = "short", points: str = "") -> timeseries.Panel:
    """Return lines over time, those whose name matches `points` as dots."""
    panel = chart(title, queries, about, unit, span=24)
    draw = model.DynamicConfigValue(id_val="custom.drawStyle", value=GraphDrawStyle.POINTS)
    show = model.DynamicConfigValue(id_val="custom.showPoints", value=VisibilityMode.ALWAYS)
    return panel.override_by_regexp(points, [draw, show])


def number(title: str, query: Query, about: str, unit: str = "short", span: int = 4) -> stat.Panel:
    """Return the last value of a selector in the chosen time range as a large figure.

    Asked for at the very end of the range: Grafana cuts the ends of other queries to multiples of their step, and the
    sample that closes a run lies on none.
    """
    panel = stat.Panel().unit(unit).reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    moment = query._replace(expr=_last(query.expr), instant=True)
    return _finished(panel, title, [moment], about, span).height(4)


def lanes(title: str, queries: Sequence[Query], about: str) -> StateTimeline:
    """Return one row per series, a bar for as long as its value stays the same; -1 is shown as free."""
    free = model.ValueMap(options={"-1": model.ValueMappingResult(text="free", color="transparent", index=0)})
    panel = StateTimeline().merge_values(True).mappings([free]).row_height(0.9)
    color = sdk.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_BL_PU)
    return _finished(panel.color_scheme(color), title, queries, about, 24).height(12)


def rows(title: str, queries: Sequence[Query], about: str, units: dict[str, str] | None = None) -> table.Panel:
    """Return a table, one column per query beside the labels that they share; its columns are named as the queries."""
    panel = table.Panel()
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        panel = panel.with_target(_target(query, letter, PromQueryFormat.TABLE))
    for transformation in (model.DataTransformerConfig(id_val="merge", options={}), _named(queries)):
        panel = panel.with_transformation(transformation)
    for column, unit in (units or {}).items():
        panel = panel.override_by_name(column, [model.DynamicConfigValue(id_val="unit", value=unit)])
    return panel.title(title).description(about).datasource(STORE).span(24).height(HEIGHT)


def bars(title: str, queries: Sequence[Query], about: str, over: str, unit: str = "percentunit") -> barchart.Panel:
    """Return bars over the values of the label `over`, one colour per query."""
    panel = barchart.Panel().unit(unit).x_field(over).legend(_legend())
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        panel = panel.with_target(_target(query, letter, PromQueryFormat.TABLE))
    for transformation in (
        model.DataTransformerConfig(id_val="merge", options={}),
        model.DataTransformerConfig(id_val="sortBy", options={"sort": [{"field": over}]}),
        _named(queries),
    ):
        panel = panel.with_transformation(transformation)
    return panel.title(title).description(about).datasource(STORE).span(12).height(HEIGHT)


def live(title: str, measurement: str, about: str) -> table.Panel:
    """Return the last rows of a stream of Grafana Live."""
    panel = table.Panel().with_target(_LiveTarget(measurement)).datasource(GRAFANA)
    unknown = model.ValueMap(options={"-1": model.ValueMappingResult(text="-", index=0)})
    return panel.mappings([unknown]).title(title).description(about).span(24).height(HEIGHT)


class _LiveTarget(Builder[variants.Dataquery], variants.Dataquery):
    """A query of Grafana's own data source for a stream; the SDK has no builder for it."""

    def __init__(self, measurement: str) -> None:
        self._measurement = measurement

    def build(self) -> "_LiveTarget":
        """Return itself."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return what Grafana stores."""
        channel = f"stream/shadowtime/{self._measurement}"
        return {"refId": "A", "queryType": "measurements", "channel": channel, "datasource": GRAFANA.to_json()}


def board(
    name: str,
    title: str,
    about: str,
    variables: Sequence[str] = (),
    time: tuple[str, str] = REPLAYED,
    *,
    window: bool = False,
) -> sdk.Dashboard:
    """Return an empty dashboard, by default over trace time, with the variables that its panels use."""
    made = _bare(name, title, about).time(*time)
    for variable in variables:
        made = made.with_variable(_variable(variable))
    if window:
        day = model.VariableOption(selected=True, text="1d", value="1d")
        made = made.with_variable(sdk.CustomVariable("window").label("window").values(WINDOWS).current(day))
    return made.annotation(_alerts())


def annotation(name: str, mark: Query, title: str, color: str) -> sdk.AnnotationQuery:
    """Return marks over all panels wherever a query has a value; each bears a title and the legend of its series."""
    made = _Annotation(title, mark.legend).name(name).datasource(STORE).enable(True).icon_color(color)
    return made.expr(mark.expr)


class _Annotation(sdk.AnnotationQuery):
    """Marks that say something; the SDK's have no words."""

    def __init__(self, title: str, text: str) -> None:
        self._internal = _Worded(title, text)


class _Worded(model.AnnotationQuery):
    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._words: dict[str, object] = {"titleFormat": title, "textFormat": text}

    def to_json(self) -> dict[str, object]:
        """Return what Grafana stores."""
        return super().to_json() | self._words


def _last(selector: str) -> str:
    return f"last_over_time({selector}[$__range])"


def _bare(name: str, title: str, about: str) -> sdk.Dashboard:
    link = sdk.DashboardLink("Shadowtime").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    made = sdk.Dashboard(title).uid(f"shadowtime-{name.replace('_', '-')}").description(about).tags([TAG])
    made = made.link(link.as_dropdown(True).include_vars(True).keep_time(True))
    return made.timezone("utc").refresh("5s").tooltip(model.DashboardCursorSync.CROSSHAIR).readonly()


def _variable(name: str) -> sdk.QueryVariable:
    metric, before = VARIABLES[name]
    variable = (
        sdk.QueryVariable(name).label(name).datasource(STORE).refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    variable = variable.query(f"label_values({metric}{{{before}}}, {name})").sort(model.VariableSort.NATURAL_ASC)
    if name == "cluster":
        return variable
    chosen = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    if name == "queue":  # the cluster as a whole
        chosen = model.VariableOption(selected=True, text=["all"], value=["all"])
    return variable.multi(True).include_all(True).all_value(".+").current(chosen)


def _alerts() -> sdk.AnnotationQuery:
    query = (
        sdk.AnnotationQuery().name("Alerts").datasource(model.DataSourceRef(type_val="grafana", uid="-- Grafana --"))
    )
    return query.enable(True).hide(True).icon_color("red").type("dashboard").built_in(1)


def _legend() -> common.VizLegendOptions:
    return common.VizLegendOptions().placement(LegendPlacement.BOTTOM).show_legend(True)


def _target(query: Query, letter: str, form: PromQueryFormat = PromQueryFormat.TIME_SERIES) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter).datasource(STORE)
    return (made.instant() if query.instant else made.range()).format(form)


def _named(queries: Sequence[Query]) -> model.DataTransformerConfig:
    """Return what names the columns of a table as its queries, and leaves out their time."""
    names = {f"Value #{letter}": query.legend for letter, query in zip(ascii_uppercase, queries, strict=False)}
    options = {"excludeByName": {"Time": True}, "renameByName": names | {"Value": queries[0].legend}}
    return model.DataTransformerConfig(id_val="organize", options=options)


def _finished(panel: Drawing, title: str, queries: Sequence[Query], about: str, span: int) -> Drawing:
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        panel = panel.with_target(_target(query, letter))
    return panel.title(title).description(about).datasource(STORE).span(span).height(HEIGHT)
