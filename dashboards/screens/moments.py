"""Panels for values at one moment: tables, sentences, bars over categories; and heat maps."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import barchart, heatmap, table
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from shadowtime.dashboards.panel_kinds import HEIGHT, HOURS, Asks, Drawing, Override, finished, legend
from shadowtime.dashboards.queries import Query
from shadowtime.shared.text import BAD, GOOD, HUES, NEUTRAL

GRAFANA = model.DataSourceRef(type_val="datasource", uid="grafana")
LABEL_LENGTH = 24
"""Maximum number of letters of a name under a bar."""

LOWEST = -1e9
"""A limit below all values, because Grafana takes null for 0 in the thresholds of a column."""

WIDTHS = {"policy": 170, "experiment": 200, "shadow": 200, "failure": 300}
"""Minimum widths in pixels of columns with names. Grafana would give every column 150, and cut the last columns."""

NARROWEST, LETTER = 32, 8
"""Width in pixels of a column without a heading, and of a letter of its heading."""

DECIMALS = {HOURS: 2, "percentunit": 1}
NO_CELL = "\N{EN DASH}"
FILLED = Override(id_val="custom.cellOptions", value={"type": "color-background", "mode": "basic"})
GAUGE = Override(id_val="custom.cellOptions", value={"type": "gauge", "mode": "basic"})


def rows(
    title: str, asks: Asks, queries: Sequence[Query], units: Mapping[str, str], height: int = HEIGHT, span: int = 24
) -> table.Panel:
    """Return a table with a column per label and a column per query. The legend of a query names its column.

    `units` are the units of columns, by name.
    """
    panel = _transformed(table.Panel(), [_named(queries)])
    panel = finished(panel, title, asks, queries, span, PromQueryFormat.TABLE, coloured=False).height(height)
    panel = _with_empty_cells(panel)
    widths = WIDTHS | {query.legend: NARROWEST + LETTER * len(query.legend) for query in queries}
    for column, width in widths.items():
        panel = panel.override_by_name(column, [Override(id_val="custom.minWidth", value=width)])
    for column, unit in units.items():
        decimals = [Override(id_val="decimals", value=DECIMALS[unit])] if unit in DECIMALS else []
        panel = panel.override_by_name(column, [Override(id_val="unit", value=unit), *decimals])
    return panel


def sentences(title: str, asks: Asks, query: Query) -> table.Panel:
    """Return a table of sentences: the legends of the series of one query. The figures are in labels of the query."""
    reduced = model.DataTransformerConfig(
        id_val="reduce", options={"reducers": ["lastNotNull"], "mode": "seriesToRows"}
    )
    named = {"excludeByName": {"Last *": True}, "renameByName": {"Field": "in words"}}
    panel = table.Panel().with_transformation(reduced)
    panel = panel.with_transformation(model.DataTransformerConfig(id_val="organize", options=named)).show_header(False)
    wrapped = Override(id_val="custom.cellOptions", value={"type": "auto", "wrapText": True})
    panel = finished(panel, title, asks, [query._replace(instant=True)], 24, coloured=False).height(5)
    return panel.override_by_name("in words", [wrapped])


def bars(title: str, asks: Asks, queries: Sequence[Query], over: str) -> barchart.Panel:
    """Return bars over the values of the label `over`, one colour per query."""
    in_order = model.DataTransformerConfig(id_val="sortBy", options={"sort": [{"field": over}]})
    panel = _transformed(barchart.Panel(), [in_order, _named(queries)]).x_field(over)
    panel = panel.legend(legend([query.legend for query in queries])).x_tick_label_max_length(LABEL_LENGTH)
    return finished(panel, title, asks, queries, 12, PromQueryFormat.TABLE)


def shares(title: str, asks: Asks, query: Query, over: str, by: str = "policy", span: int = 12) -> table.Panel:
    """Return a table of one query: a row for each value of the label `over`, a column for each of the label `by`.

    Values of at least 5 % are coloured as bad, values below -5 % as good. `span` is as in `finished`.
    """
    panel = _crossed(table.Panel(), over, by)
    panel = finished(panel, title, asks, [query], span, PromQueryFormat.TABLE, coloured=False).decimals(0)
    panel = _with_empty_cells(panel).override_by_name(over, [Override(id_val="unit", value="string")])
    steps = [{"value": LOWEST, "color": GOOD}, {"value": -0.05, "color": "transparent"}, {"value": 0.05, "color": BAD}]
    shades = Override(id_val="thresholds", value={"mode": "absolute", "steps": steps})
    return panel.override_by_field_type("number", [FILLED, shades])


def bars_by(title: str, asks: Asks, query: Query, over: str) -> barchart.Panel:
    """Return bars of one query over the values of the label `over`, a colour for each policy."""
    panel = _crossed(barchart.Panel(), over, "policy").x_field(over).legend(legend([query.legend]).calcs([]))
    panel = panel.x_tick_label_max_length(LABEL_LENGTH)
    return finished(panel, title, asks, [query], 12, PromQueryFormat.TABLE)


def matrix(title: str, asks: Asks, query: Query, over: str, by: str, words: Mapping[str, str]) -> table.Panel:
    """Return a table of one query: a row for each value of the label `over`, a column for each of the label `by`.

    `words` has the headings of the columns, in order, by the value of `by`.
    """
    order = {name: at for at, name in enumerate([over, *words.values()])}
    panel = _crossed(table.Panel(), over, by, words)
    ordered = model.DataTransformerConfig(id_val="organize", options={"indexByName": order})
    panel = panel.with_transformation(ordered)
    return _with_empty_cells(finished(panel, title, asks, [query], 24, PromQueryFormat.TABLE, coloured=False))


def heat(title: str, asks: Asks, query: Query) -> heatmap.Panel:
    """Return a heat map over time of the buckets of a histogram, whose upper limits are the label `le`, in seconds."""
    panel = heatmap.Panel().calculate(False).y_axis(heatmap.YAxisConfig().unit("s"))
    panel = panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.OPACITY).fill(HUES[0]).steps(64))
    return finished(panel, title, asks, [query], 12, PromQueryFormat.HEATMAP, coloured=False)


def live(title: str, asks: Asks, measurement: str) -> table.Panel:
    """Return a table of the last rows of the Grafana Live stream of `measurement`."""
    unknown = model.ValueMap(options={"-1": model.ValueMappingResult(text="none", index=0)})
    panel = finished(table.Panel().mappings([unknown]), title, asks, [], 24, coloured=False)
    return panel.with_target(_LiveTarget(measurement)).datasource(GRAFANA)


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


def against(panel: table.Panel, column: str, limit: float) -> table.Panel:
    """Colour a column of a table, values below `limit` as bad, others as good, and return the table."""
    steps = [{"value": LOWEST, "color": BAD}, {"value": limit, "color": GOOD}]
    shades = Override(id_val="thresholds", value={"mode": "absolute", "steps": steps})
    return panel.override_by_name(column, [FILLED, shades])


def gauge(panel: table.Panel, column: str) -> table.Panel:
    """Draw a column of shares as bars from 0 to 100 %, and return the table."""
    neutral = Override(id_val="thresholds", value={"mode": "absolute", "steps": [{"value": LOWEST, "color": NEUTRAL}]})
    limits = [Override(id_val="min", value=0), Override(id_val="max", value=1)]
    return panel.override_by_name(column, [GAUGE, neutral, *limits, Override(id_val="unit", value="percentunit")])


def _with_empty_cells(panel: table.Panel) -> table.Panel:
    """Show a dash without a colour in a cell without a value. The panel's own text is for a table without rows."""
    shown = {"type": "special", "options": {"match": "null+nan", "result": {"text": NO_CELL, "color": "transparent"}}}
    for kind in ("number", "string", "time"):
        empty = [Override(id_val="noValue", value=NO_CELL), Override(id_val="mappings", value=[shown])]
        panel = panel.override_by_field_type(kind, empty)
    return panel


def _transformed(panel: Drawing, more: Sequence[model.DataTransformerConfig]) -> Drawing:
    for transformation in (model.DataTransformerConfig(id_val="merge", options={}), *more):
        panel = panel.with_transformation(transformation)
    return panel


def _crossed(panel: Drawing, over: str, by: str, words: Mapping[str, str] | None = None) -> Drawing:
    """Lay out one query as a matrix. Grafana names the first column after both labels; rename it to `over`."""
    crossed = {"columnField": by, "rowField": over, "valueField": "Value", "emptyValue": "null"}
    named = {"renameByName": {f"{over}\\{by}": over} | dict(words or {})}
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
