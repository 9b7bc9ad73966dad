"""The panels of all dashboards, in one uniform style.

A panel has a short title, a unit, and chosen thresholds or a neutral colour. Its description is the question that it
answers. It shows a text if it has no data.
"""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple, TypeVar

from grafana_foundation_sdk.builders import barchart, common, prometheus, stat, table, text, timeseries, xychart
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from shadowtime.dashboards.queries import Query, last
from shadowtime.shared.text import NEUTRAL, POLICY_COLOURS

STORE = model.DataSourceRef(type_val="prometheus", uid="victoria-metrics")
HEIGHT = 8
NO_RUN = "No run here: choose another, or another time range"

Drawing = TypeVar("Drawing", timeseries.Panel, stat.Panel, StateTimeline, barchart.Panel, table.Panel, xychart.Panel)
Override = model.DynamicConfigValue


class Asks(NamedTuple):
    """A panel's question, the unit of the answer, and the text to show if there is no data."""

    question: str
    unit: str = "short"
    empty: str = NO_RUN


def chart(
    title: str, asks: Asks, queries: Sequence[Query], *, stacked: bool = False, span: int = 12
) -> timeseries.Panel:
    """Return a chart of lines over time. Lines span the gaps between samples, because values do not change there."""
    panel = timeseries.Panel().span_nulls(True).fill_opacity(30 if stacked else 0)
    panel = panel.show_points(VisibilityMode.NEVER).line_width(2).legend(legend())
    panel = panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    return finished(panel, title, asks, queries, span)


def columns(title: str, asks: Asks, queries: Sequence[Query], *, span: int = 12) -> timeseries.Panel:
    """Return a chart of bars over time, side by side."""
    return chart(title, asks, queries, span=span).draw_style(GraphDrawStyle.BARS).fill_opacity(70).line_width(1)


def band(panel: timeseries.Panel, low: str, high: str, colour: str = NEUTRAL) -> timeseries.Panel:
    """Fill a chart between two of its series, without drawing their lines."""
    shared = [*fixed(colour), Override(id_val="custom.lineWidth", value=0)]
    filled = [Override(id_val="custom.fillBelowTo", value=low), Override(id_val="custom.fillOpacity", value=20)]
    return panel.override_by_name(low, shared).override_by_name(high, [*shared, *filled])


def target(panel: timeseries.Panel, name: str) -> timeseries.Panel:
    """Draw a series of a chart as a dashed target line for the other series."""
    dashes = Override(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})
    return panel.override_by_name(name, [*fixed(NEUTRAL), dashes, Override(id_val="custom.lineWidth", value=1)])


def dots(panel: timeseries.Panel, name: str) -> timeseries.Panel:
    """Draw a series of a chart as dots."""
    draw = Override(id_val="custom.drawStyle", value=GraphDrawStyle.POINTS)
    show = Override(id_val="custom.showPoints", value=VisibilityMode.ALWAYS)
    return panel.override_by_name(name, [draw, show, Override(id_val="custom.pointSize", value=4)])


def number(
    title: str,
    asks: Asks,
    query: Query,
    *,
    steps: Mapping[float, str] | None = None,
    texts: Mapping[str, str] | None = None,
    span: int = 4,
) -> stat.Panel:
    """Return the last value of a selector in the selected time range as a large figure.

    The query is instant, at the very end of the range. Grafana aligns the ends of range queries to multiples of their
    step, which would miss the sample that closes a run.

    Parameters
    ----------
    steps
        Colours by the value from which they apply. A lower value is neutral; without steps the figure has no colour.
    texts
        Texts to show in place of values.
    """
    panel = stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    panel = panel.graph_mode(BigValueGraphMode.NONE).text(common.VizTextDisplayOptions().value_size(32).title_size(13))
    panel = panel.color_mode(BigValueColorMode.VALUE if steps else BigValueColorMode.NONE)
    moment = query._replace(expr=query.expr if query.instant else last(query.expr), instant=True)
    panel = finished(panel, title, asks, [moment], span).height(4)
    if texts:
        mapped = {
            value: model.ValueMappingResult(text=shown, index=at) for at, (value, shown) in enumerate(texts.items())
        }
        panel = panel.mappings([model.ValueMap(options=mapped)])

    if steps:
        panel = panel.thresholds(_thresholds(steps))
        panel = panel.color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
    return panel


def lanes(title: str, asks: Asks, queries: Sequence[Query]) -> StateTimeline:
    """Return a state timeline: one row per series, with a bar for each span in which its value stays the same."""
    panel = StateTimeline().merge_values(True).row_height(0.9)
    return finished(panel, title, asks, queries, 12)


def words(title: str, markdown: str, height: int, span: int = 24) -> text.Panel:
    """Return a panel with a text in Markdown."""
    return text.Panel().title(title).content(markdown).transparent(True).span(span).height(height)


def fixed(colour: str) -> list[Override]:
    """Return the override that gives a series a fixed colour."""
    return [Override(id_val="color", value={"mode": "fixed", "fixedColor": colour})]


def legend() -> common.VizLegendOptions:
    """Return a legend as a table with the mean and the last value, in descending order of the last."""
    made = common.VizLegendOptions().placement(LegendPlacement.BOTTOM).show_legend(True)
    made = made.display_mode(LegendDisplayMode.TABLE).calcs(["mean", "lastNotNull"])
    return made.sort_by("Last *").sort_desc(True)


def _thresholds(steps: Mapping[float, str]) -> sdk.ThresholdsConfig:
    thresholds = [
        model.Threshold(value=None, color=NEUTRAL),
        *(model.Threshold(step, steps[step]) for step in sorted(steps)),
    ]
    return sdk.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(thresholds)


def _target(query: Query, letter: str, form: PromQueryFormat) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter).datasource(STORE)
    return (made.instant() if query.instant else made.range()).format(form)


def finished(
    panel: Drawing,
    title: str,
    asks: Asks,
    queries: Sequence[Query],
    span: int,
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> Drawing:
    """Return a panel with its queries, texts, unit and colours. `span` is its width in columns of Grafana's grid."""
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        panel = panel.with_target(_target(query, letter, form))
    panel = panel.title(title).description(asks.question).unit(asks.unit).no_value(asks.empty).datasource(STORE)
    panel = panel.color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    panel = panel.thresholds(_thresholds({})).span(span).height(HEIGHT)
    if any("policy" in query.legend for query in queries):
        for name, colour in POLICY_COLOURS.items():
            panel = panel.override_by_name(name, fixed(colour))
    return panel
