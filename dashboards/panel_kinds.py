"""The panels of all dashboards, in one uniform style.

A panel has a short title, a unit, and chosen thresholds or a neutral colour. Its description is the question that it
answers. It shows a text if it has no data.
"""

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple, TypeVar

from grafana_foundation_sdk.builders import barchart, common, heatmap, prometheus, stat, table, text, timeseries
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders.statetimeline import Panel as StateTimeline
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    LineInterpolation,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from shadowtime.dashboards.queries import Query, last
from shadowtime.shared.messages import DESCRIPTIONS, describe_drift
from shadowtime.shared.text import (
    GROUPING_COLOURS,
    HUES,
    NEUTRAL,
    OTHER_COLOURS,
    POLICY_COLOURS,
    REASON_COLOURS,
    REASON_NAMES,
    STAGE_COLOURS,
    WAITING_COLOURS,
)

STORE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
HEIGHT = 9
FEW = 4
"""Maximum number of series that a list beneath a chart names. More are named by a table beside the chart."""

LEGEND_WIDTH = 250
"""Width in pixels of a legend beside a chart. A long SPEC would take more than half of the panel otherwise."""

NO_RUN = "No run in this time range: choose another range, or click Time of the log"
HOURS = "suffix:h"
"""Unit of waits in charts, whose values are divided by 3,600. Grafana's unit of seconds would mix days with weeks."""

DAYS = "dtdhms"
"""Unit of times in tables: days, hours, minutes and seconds, the same for all rows. The values are in seconds.

A value must not be negative, because Grafana would write "00:00:01 ago"."""

COUNT = "locale"
"""Unit of numbers of jobs: 5,000 and not 5 K."""

FAILURE = "{{failure}}"
"""Legend of a series about predictions that fail."""

COLOURS: Mapping[str, Mapping[str, str]] = {
    FAILURE: {
        **dict(zip(DESCRIPTIONS.values(), OTHER_COLOURS, strict=True)),
        **{describe_drift("wait_bound", grouping): colour for grouping, colour in GROUPING_COLOURS.items()},
    },
    "{{stage}}": STAGE_COLOURS,
    "{{grouping}}": GROUPING_COLOURS,
    "{{reason}}": WAITING_COLOURS,
}
"""Colours of the series that a legend names, by the legend."""

REAL = "real"
"""Legend of what really happened, beside shadows."""

BY_POLICY = ("{{policy}}", "{{shadow}}")

Drawing = TypeVar("Drawing", timeseries.Panel, stat.Panel, StateTimeline, barchart.Panel, table.Panel, heatmap.Panel)
Override = model.DynamicConfigValue


class Asks(NamedTuple):
    """A panel's question, the unit of the answer, and the text to show if there is no data."""

    question: str
    unit: str = "short"
    empty: str = NO_RUN


def chart(
    title: str, asks: Asks, queries: Sequence[Query], *, stacked: bool = False, flowing: bool = False, span: int = 12
) -> timeseries.Panel:
    """Return a chart of lines over time.

    Parameters
    ----------
    stacked
        Whether the series are added up.
    flowing
        Whether values are of a time window, such as rates: then gaps stay gaps. Other values hold until the next
        sample, and are drawn as steps. A single point is drawn as a point.

    The title names the window `$window` if a query sums over it. Then the legend has no last value, because that value
    would be of the window and not of the run.
    """
    panel = timeseries.Panel().span_nulls(not flowing).fill_opacity(70 if stacked else 0)
    if not flowing:
        panel = panel.line_interpolation(LineInterpolation.STEP_AFTER)
    panel = panel.show_points(VisibilityMode.AUTO).line_width(0 if stacked else 2)
    summed = any("[$window" in query.expr for query in queries)
    beside = legend([query.legend for query in queries])
    panel = panel.legend(beside.calcs([]) if summed else beside)
    panel = panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A"))
    panel = finished(panel, f"{title} (over $window)" if summed else title, asks, queries, span)
    if any(query.legend in BY_POLICY for query in queries):
        dashes = Override(id_val="custom.lineStyle", value={"fill": "dash", "dash": [10, 4]})
        panel = panel.override_by_regexp("/^.*:.*$/", [dashes])
    if any(query.legend == "{{grouping}}" for query in queries):
        panel = panel.override_by_name("ensemble", [Override(id_val="custom.lineWidth", value=4)])
    return panel


def columns(title: str, asks: Asks, queries: Sequence[Query], *, span: int = 12) -> timeseries.Panel:
    """Return a chart of bars over time, on an axis that begins at 0."""
    panel = chart(title, asks, queries, span=span, flowing=True).draw_style(GraphDrawStyle.BARS)
    return panel.fill_opacity(70).line_width(1).axis_soft_min(0)


def band(panel: timeseries.Panel, low: str, high: str) -> timeseries.Panel:
    """Fill a chart between two of its series, without drawing their lines, and return the chart."""
    shared = [*fixed(NEUTRAL), Override(id_val="custom.lineWidth", value=0)]
    filled = [Override(id_val="custom.fillBelowTo", value=low), Override(id_val="custom.fillOpacity", value=20)]
    hide = Override(id_val="custom.hideFrom", value={"legend": True, "tooltip": False, "viz": False})
    return panel.override_by_name(low, [*shared, hide]).override_by_name(high, [*shared, *filled, hide])


def target(panel: timeseries.Panel, name: str) -> timeseries.Panel:
    """Draw a series of a chart as a dashed target line for the other series, and return the chart."""
    dashes = Override(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})
    return panel.override_by_name(name, [*fixed(NEUTRAL), dashes, Override(id_val="custom.lineWidth", value=1)])


def dots(panel: timeseries.Panel, name: str) -> timeseries.Panel:
    """Draw a series of a chart as dots, and return the chart."""
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
    step, which would miss the sample that closes a run. Its answer must be one series: two do not fit.

    Parameters
    ----------
    steps
        Colours by the value from which they apply. A lower value is neutral; without steps the figure has no colour.
    texts
        Texts to show in place of values.
    """
    panel = stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    panel = panel.graph_mode(BigValueGraphMode.NONE).text(common.VizTextDisplayOptions().title_size(13))
    panel = panel.color_mode(BigValueColorMode.VALUE if steps else BigValueColorMode.NONE)
    moment = query._replace(expr=query.expr if query.instant else last(query.expr), instant=True, legend=title)
    panel = finished(panel, title, asks, [moment], span, coloured=False).height(4)
    if texts:
        mapped = {
            value: model.ValueMappingResult(text=shown, index=at) for at, (value, shown) in enumerate(texts.items())
        }
        panel = panel.mappings([model.ValueMap(options=mapped)])

    if steps:
        panel = panel.thresholds(thresholds(steps))
    return panel


def lanes(
    title: str, asks: Asks, queries: Sequence[Query], states: Mapping[str, tuple[str, str]] | None = None
) -> StateTimeline:
    """Return a state timeline: one row per series, with a bar for each span in which its value stays the same.

    `states` are the text and the colour of each value.
    """
    panel = finished(StateTimeline().merge_values(True).row_height(0.9), title, asks, queries, 12, coloured=False)
    if states:
        mapped = {
            value: model.ValueMappingResult(text=shown, color=colour, index=at)
            for at, (value, (shown, colour)) in enumerate(states.items())
        }
        panel = panel.mappings([model.ValueMap(options=mapped)]).legend(legend([]))
    return panel


def words(title: str, markdown: str, height: int) -> text.Panel:
    """Return a panel with a text in Markdown."""
    return text.Panel().title(title).content(markdown).transparent(True).span(24).height(height)


def fixed(colour: str) -> list[Override]:
    """Return the override that gives a series a fixed colour."""
    return [Override(id_val="color", value={"mode": "fixed", "fixedColor": colour})]


def legend(legends: Sequence[str]) -> common.VizLegendOptions:
    """Return the legend of a chart: none for one series, a list below for a few, else a table beside the chart.

    A legend that is a template stands for any number of series.
    """
    made = common.VizLegendOptions().show_legend(len(legends) > 1 or any("{{" in name for name in legends))
    if len(legends) <= FEW and not any("{{" in name for name in legends):
        return made.placement(LegendPlacement.BOTTOM).display_mode(LegendDisplayMode.LIST).calcs([])
    made = made.placement(LegendPlacement.RIGHT).display_mode(LegendDisplayMode.TABLE).calcs(["lastNotNull"])
    made = made.width(LEGEND_WIDTH)
    return made.sort_by("Last *").sort_desc(True)


def thresholds(steps: Mapping[float, str]) -> sdk.ThresholdsConfig:
    """Return the colours by the value from which they apply; lower values are neutral."""
    made = [model.Threshold(value=None, color=NEUTRAL), *(model.Threshold(step, steps[step]) for step in sorted(steps))]
    return sdk.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(made)


def _target(query: Query, letter: str, form: PromQueryFormat) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter).datasource(STORE)
    at_one_moment = query.instant or form is PromQueryFormat.TABLE
    return (made.instant() if at_one_moment else made.range()).format(form)


def finished(
    panel: Drawing,
    title: str,
    asks: Asks,
    queries: Sequence[Query],
    span: int,
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
    *,
    coloured: bool = True,
) -> Drawing:
    """Return a panel with its queries, texts, unit and colours.

    Parameters
    ----------
    span
        Width of the panel in columns of Grafana's grid.
    form
        Format of the answers to the queries.
    coloured
        Whether each series has its own colour. Otherwise the thresholds colour the values.
    """
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        panel = panel.with_target(_target(query, letter, form))
    panel = panel.title(title).description(asks.question).unit(asks.unit).no_value(asks.empty).datasource(STORE)
    mode = model.FieldColorModeId.PALETTE_CLASSIC if coloured else model.FieldColorModeId.THRESHOLDS
    panel = panel.color_scheme(sdk.FieldColor().mode(mode)).thresholds(thresholds({})).span(span).height(HEIGHT)
    for matcher, name, colour in colours([query.legend for query in queries]) if coloured else ():
        override = panel.override_by_regexp if matcher == "byRegexp" else panel.override_by_name
        panel = override(name, fixed(colour))
    return panel


def colours(legends: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the colours of the series with these legends: matcher, name, colour.

    A SPEC has the colour of its policy. If no legend is a template, the series have the colours of `HUES`, in order.
    """
    if any(legend in BY_POLICY for legend in legends):
        for name, colour in POLICY_COLOURS.items():
            yield "byRegexp", rf"/^(.*\/)?{name}(:.*)?$/", colour
    if "{{why}}" in legends:
        for name, colour in REASON_COLOURS.items():
            yield "byName", f"start: {REASON_NAMES[name]}", colour
    for legend in legends:
        for name, colour in COLOURS.get(legend, {}).items():
            yield "byName", name, colour
    own = [legend for legend in legends if "{{" not in legend]
    if REAL in legends:
        yield "byName", REAL, NEUTRAL
    elif len(own) == len(legends):
        for name, colour in zip(own, HUES, strict=False):
            yield "byName", name, colour
