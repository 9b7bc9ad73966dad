"""Generation of the files that Grafana reads, dashboards and alert rules, in `dashboards/provisioning`."""

import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard, GridPos, Panel, RowPanel

from shadowtime.dashboards.alerts import ALERTS, panels_of, prometheus_rules, provisioned, rule
from shadowtime.dashboards.screens import DASHBOARDS

PROVISIONING = Path(__file__).parent / "provisioning"
ALERTING = "alerting/alerts.json"
RULES = "../rules/shadowtime.yml"
"""The alert rules for Prometheus and vmalert, beside those of Grafana. JSON is YAML, too."""

PLUGIN_VERSION = "12.2.0"
"""Version of Grafana for which panels are written. Without it, Grafana migrates panels as if they were older."""

COLUMNS = 24


def generated() -> dict[str, str]:
    """Return the text of every file, by its path relative to `provisioning`."""
    boards = {name: make().build() for name, make in DASHBOARDS.items()}
    for board in boards.values():
        _place(board)
        for number, panel in enumerate([*(board.panels or ()), *_in_rows(board)], 1):
            panel.id_val = number
        for panel in panels_of(board):
            panel.plugin_version = PLUGIN_VERSION
            if panel.repeat is None:
                panel.repeat_direction = None
    rules = [json.loads(_text(rule(alert, boards[alert.board]))) for alert in ALERTS]
    files = {f"dashboards/{name}.json": _text(board) for name, board in boards.items()}
    return files | {ALERTING: _text(provisioned(rules)), RULES: _text(prometheus_rules())}


def _in_rows(board: Dashboard) -> list[Panel]:
    return [panel for row in board.panels or () if isinstance(row, RowPanel) for panel in row.panels]


def _place(board: Dashboard) -> None:
    """Put panels side by side, from left to right and from top to bottom. A collapsed row has height 1.

    The panels of a collapsed row are placed as if the row were open.
    """
    top = 0
    line: list[GridPos] = []
    for panel in board.panels or ():
        if isinstance(panel, RowPanel):
            top += max((at.h for at in line), default=0)
            line = []
            panel.grid_pos = GridPos(x=0, y=top, w=COLUMNS, h=1)
            top += 1
            below, inside = top, list[GridPos]()
            for further in panel.panels:
                below, inside = _next(further, below, inside)
        else:
            top, line = _next(panel, top, line)


def _next(panel: Panel, top: int, line: list[GridPos]) -> tuple[int, list[GridPos]]:
    at = panel.grid_pos or GridPos()
    left = sum(other.w for other in line)
    if left + at.w > COLUMNS:
        top, left, line = top + max(other.h for other in line), 0, []
    at.x, at.y, panel.grid_pos = left, top, at
    return top, [*line, at]


def write(folder: Path = PROVISIONING) -> list[Path]:
    """Write the files that have changed, and return their paths."""
    changed = []
    for path, text in generated().items():
        file = (folder / path).resolve()
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            changed.append(file)

    return changed


def _text(value: Any) -> str:
    return json.dumps(value, cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"
