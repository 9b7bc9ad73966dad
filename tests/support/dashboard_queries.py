"""Everything that the committed dashboards and alerts ask of the store, and the questions put as Grafana puts them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shadowtime.dashboards.generate import ALERTING, PROVISIONING
from shadowtime.dashboards.panel_kinds import NO_RUN
from shadowtime.dashboards.screens.health import UNSCRAPED
from shadowtime.dashboards.screens.home import NOTHING
from shadowtime.shared.metric_names import ANSWERS, METRICS
from shadowtime.stack.servers.servers import VictoriaMetrics
from tests.support.metric_store import ask

NEVER_EMPTY = {NO_RUN, UNSCRAPED, NOTHING}
"""What panels say that have data as soon as there is a run, or a worker."""

ALPHABETICAL_DESC = 2

SPECIAL = r"[\\^$*+?.()|\[\]{}/]"
"""The characters that Grafana escapes where a query asks for a regular expression."""

NAMES = re.compile(r"\bshadowtime_\w+|\bup\b")


class Asked(NamedTuple):
    """A query; `empty` is what its panel says without data, `instant` whether it is about the last moment only."""

    board: str
    panel: str
    expr: str
    empty: str
    instant: bool
    legend: str = ""

    @property
    def metrics(self) -> set[str]:
        return set(NAMES.findall(self.expr))

    @property
    def may_be_empty(self) -> bool:
        return self.empty not in NEVER_EMPTY

    @property
    def variables(self) -> list[str]:
        return [name for name in dict.fromkeys(re.findall(r"\$\{?([a-z_]\w*)", self.expr)) if not name.startswith("__")]


def known(name: str) -> bool:
    """Return whether a metric of this name is emitted, or is the store's own; those of a histogram are three."""
    if ANSWERS.startswith(f"{name}{{"):
        return True
    return any(name.removesuffix(end) == each.name for each in METRICS for end in ("", "_bucket", "_sum", "_count"))


def boards() -> dict[str, dict[str, Any]]:
    files = sorted((PROVISIONING / "dashboards").glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in files}


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the panels of a dashboard, also those in collapsed rows, and the rows."""
    found: list[dict[str, Any]] = board["panels"]
    return [*found, *(panel for row in found for panel in row.get("panels") or ())]


def seen_at_once(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the panels outside collapsed rows that draw something."""
    return [panel for panel in board["panels"] if panel["type"] not in ("row", "text")]


def alert_rules() -> list[dict[str, Any]]:
    (group,) = json.loads((PROVISIONING / ALERTING).read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def asked() -> Iterator[Asked]:
    """Yield every query of every panel, of every annotation and of every alert."""
    for name, board in boards().items():
        for panel in panels(board):
            for target in panel.get("targets", []):
                if "expr" in target:
                    empty, legend = panel["fieldConfig"]["defaults"]["noValue"], target["legendFormat"]
                    yield Asked(name, panel["title"], target["expr"], empty, target["instant"], legend)
        for each in board["annotations"]["list"]:
            if "expr" in each:
                yield Asked(name, each["name"], each["expr"], "none was found", instant=False)
    for rule in alert_rules():
        for query in rule["data"]:
            if "expr" in query["model"]:
                yield Asked("alerts", rule["title"], query["model"]["expr"], NO_RUN, instant=True)


def variables(board: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in board["templating"].get("list", [])}


def values(
    server: VictoriaMetrics, variable: Mapping[str, Any], chosen: Mapping[str, str], start: int, end: int
) -> list[str]:
    """Return what Grafana offers for a variable, given what the variables before it are."""
    if variable["type"] == "custom":
        offered: list[str] = variable["query"].split(",")
        return offered
    if variable["type"] == "datasource":
        return [variable["current"]["value"]]
    asked_for = re.fullmatch(r"query_result\((.*)\)", variable["query"])
    assert asked_for is not None
    pattern = re.compile(variable["regex"].strip("/").replace("\\/", "/"))
    series = ask(server, "query", query=filled(asked_for[1], chosen, end - start, 0), time=end)["result"]
    found = [pattern.search(shown(each)) for each in series]
    offered = list(dict.fromkeys(match[1] for match in found if match))
    return sorted(offered, reverse=variable["sort"] == ALPHABETICAL_DESC) if variable.get("sort") else offered


def shown(series: Mapping[str, Any]) -> str:
    """Return a series of `query_result` as Grafana writes it before it applies the regular expression."""
    labels = ",".join(f'{name}="{value}"' for name, value in series["metric"].items())
    return f"{{{labels}}} {series['value'][1]} {series['value'][0] * 1000}"


def at_first(variable: Mapping[str, Any], offered: list[str]) -> str:
    """Return what Grafana has chosen when a dashboard is opened: what it says, if that is offered, or the first."""
    if variable.get("includeAll"):
        return ".+"
    said: str = variable.get("current", {}).get("value", "")
    return said if said in offered else offered[0]


def regular(value: str) -> str:
    """Return a value of a variable that may have several, as Grafana writes it into a query."""
    return re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value.replace("\\", "\\\\\\\\"))


def filled(expr: str, chosen: Mapping[str, str], span: int, step: int) -> str:
    """Return the query with all variables in their places; times in seconds."""
    everything = {"__range": f"{span}s", "__interval": f"{step}s", **chosen}
    expr = re.sub(r"\$\{(\w+):regex\}", lambda found: re.sub(SPECIAL, r"\\\g<0>", everything[found[1]]), expr)
    return re.sub(r"\$([a-z_]\w*)", lambda found: everything[found[1]], expr)


def step_of(start: int, end: int) -> int:
    """Return how many seconds lie between two points of a chart over a time range."""
    return max((end - start) // 500, 5)


def answered(server: VictoriaMetrics, query: Asked, chosen: Mapping[str, str], start: int, end: int) -> list[Any]:
    """Return the series that a query gives over a time range, as its panel asks for them.

    Grafana cuts both ends of a range to multiples of the step, down to whole seconds since 1970; a single moment it
    leaves as it is.
    """
    step = step_of(start, end)
    expr = filled(query.expr, chosen, end - start, step)
    if query.instant:
        return list(ask(server, "query", query=expr, time=end, latency_offset="1s")["result"])
    span = {"start": start // step * step, "end": end // step * step, "step": step}
    return list(ask(server, "query_range", query=expr, **span, latency_offset="1s")["result"])
