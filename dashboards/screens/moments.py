"""Panels for values at one moment: tables, bars over categories, and scatter plots."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import barchart, table, xychart
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.xychart import SeriesMapping, XYShowMode

from shadowtime.dashboards.panels import HEIGHT, Asks, Drawing, Override, finished, fixed, legend
from shadowtime.dashboards.queries import Query
from shadowtime.shared.text import BAD, GOOD, NEUTRAL, POLICY_COLOURS

GRAFANA = model.DataSourceRef(type_val="datasource", uid="grafana")


def rows(
    title: str, asks: Asks, queries: Sequence[Query], units: Mapping[str, str], height: int = HEIGHT
) -> table.Panel:
    """Return a table with a column per label and a column per query. The legend of a query names its column."""
    panel = _transformed(table.Panel(), [_named(queries)])
    for column, unit in units.items():
        panel = panel.override_by_name(column, [Override(id_val="unit", value=unit)])
    return finished(panel, title, asks, queries, 24, PromQueryFormat.TABLE).height(height)


def bars(title: str, asks: Asks, queries: Sequence[Query], over: str) -> barchart.Panel:
    """Return bars over the values of the label `over`, one colour per query."""
    in_order = model.DataTransformerConfig(id_val="sortBy", options={"sort": [{"field": over}]})
    panel = _transformed(barchart.Panel(), [in_order, _named(queries)]).x_field(over).legend(legend())
    return finished(panel, title, asks, queries, 12, PromQueryFormat.TABLE)


def shares(title: str, asks: Asks, query: Query, over: str, by: str = "policy") -> table.Panel:
    """Return a table of one query: a row for each value of the label `over`, a column for each of the label `by`.

    Values above zero are coloured as bad, values below zero as good.
    """
    panel = _crossed(table.Panel(), over, by)
    filled = Override(id_val="custom.cellOptions", value={"type": "color-background", "mode": "basic"})
    panel = finished(panel, title, asks, [query], 12, PromQueryFormat.TABLE)
    panel = panel.override_by_name(over, [Override(id_val="unit", value="string")])
    steps = [{"value": None, "color": GOOD}, {"value": 0, "color": "transparent"}, {"value": 1e-9, "color": BAD}]
    shades = Override(id_val="thresholds", value={"mode": "absolute", "steps": steps})
    return panel.override_by_field_type("number", [filled, shades])


def bars_by(title: str, asks: Asks, query: Query, over: str, by: str = "policy", *, span: int = 12) -> barchart.Panel:
    """Return bars of one query over the values of the label `over`, a colour for each value of the label `by`."""
    panel = _crossed(barchart.Panel(), over, by).x_field(over).legend(legend())
    return finished(panel, title, asks, [query._replace(legend=f"{{{{{by}}}}}")], span, PromQueryFormat.TABLE)


def dots_of(title: str, asks: Asks, across: Query, up: Query, units: tuple[str, str]) -> xychart.Panel:
    """Return a scatter plot with a dot for each policy. The legends of the queries name the axes."""
    panel = _transformed(xychart.Panel(), [_named([across, up])])
    apart = {"fields": ["policy"], "keepFields": False, "naming": {"asLabels": False}}
    panel = panel.with_transformation(model.DataTransformerConfig(id_val="partitionByValues", options=apart))
    panel = finished(_scattered(panel, across.legend), title, asks, [across, up], 12, PromQueryFormat.TABLE)
    for query, unit in zip((across, up), units, strict=True):
        panel = panel.override_by_name(query.legend, [Override(id_val="unit", value=unit)])
    for name, colour in POLICY_COLOURS.items():  # a frame's name precedes that of its field
        panel = panel.override_by_name(f"{name} {up.legend}", fixed(colour))
    return panel


def reliability(title: str, asks: Asks, stated: Query, happened: Query, over: str) -> xychart.Panel:
    """Return a reliability diagram: a dot for each value of the label `over`, and the perfect diagonal."""
    queries = [stated, happened, stated._replace(legend="as it should be")]
    in_order = model.DataTransformerConfig(id_val="sortBy", options={"sort": [{"field": over}]})
    panel = _scattered(_transformed(xychart.Panel(), [in_order, _named(queries)]), stated.legend)
    line = [Override(id_val="custom.show", value=XYShowMode.LINES), Override(id_val="custom.lineWidth", value=1)]
    panel = finished(panel, title, asks, queries, 12, PromQueryFormat.TABLE).min(0).max(1)
    return panel.override_by_name("as it should be", [*line, *fixed(NEUTRAL)])


def _scattered(panel: xychart.Panel, across: str) -> xychart.Panel:
    """Draw dots: all number fields against the field `across`."""
    x = xychart.XychartXYSeriesConfigX().matcher(xychart.MatcherConfig().id("byName").options(across))
    panel = panel.mapping(SeriesMapping.AUTO).series([xychart.XYSeriesConfig().x(x)]).show(XYShowMode.POINTS)
    return panel.point_size(xychart.XychartFieldConfigPointSize().fixed(12)).legend(legend().calcs([]))


def live(title: str, asks: Asks, measurement: str) -> table.Panel:
    """Return a table of the last rows of the Grafana Live stream of `measurement`."""
    unknown = model.ValueMap(options={"-1": model.ValueMappingResult(text="none", index=0)})
    panel = table.Panel().mappings([unknown])
    return finished(panel, title, asks, [], 24).with_target(_LiveTarget(measurement)).datasource(GRAFANA)


class _LiveTarget(Builder[variants.Dataquery], variants.Dataquery):
    """A query of Grafana's own data source for a stream; the SDK has no builder for it."""

    def __init__(self, measurement: str) -> None:
        self._measurement = measurement

    def build(self) -> "_LiveTarget":
        """Return this object, which is its own builder."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the query as Grafana stores it."""
        channel = f"stream/shadowtime/{self._measurement}"
        return {"refId": "A", "queryType": "measurements", "channel": channel, "datasource": GRAFANA.to_json()}


def _transformed(panel: Drawing, more: Sequence[model.DataTransformerConfig]) -> Drawing:
    for transformation in (model.DataTransformerConfig(id_val="merge", options={}), *more):
        panel = panel.with_transformation(transformation)
    return panel


def _crossed(panel: Drawing, over: str, by: str) -> Drawing:
    """Lay out one query as a matrix. Grafana names the first column after both labels; rename it to `over`."""
    crossed = {"columnField": by, "rowField": over, "valueField": "Value", "emptyValue": "null"}
    named = {"renameByName": {f"{over}\\{by}": over}}
    return _transformed(
        panel,
        [
            model.DataTransformerConfig(id_val="groupingToMatrix", options=crossed),
            model.DataTransformerConfig(id_val="organize", options=named),
        ],
    )


def _named(queries: Sequence[Query]) -> model.DataTransformerConfig:
    """Return the transformation that names a table's columns by the queries' legends, and leaves out the time."""
    names = {f"Value #{letter}": query.legend for letter, query in zip(ascii_uppercase, queries, strict=False)}
    options = {"excludeByName": {"Time": True}, "renameByName": names | {"Value": queries[0].legend}}
    return model.DataTransformerConfig(id_val="organize", options=options)
