"""Generation of the files that Grafana reads, dashboards and alert rules, in `dashboards/provisioning`."""

import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from shadowtime.dashboards.alerts import ALERTS, provisioned, rule
from shadowtime.dashboards.screens import DASHBOARDS

PROVISIONING = Path(__file__).parent / "provisioning"
ALERTING = "alerting/alerts.json"


def generated() -> dict[str, str]:
    """Return the text of every file, by its path below `provisioning`."""
    boards = {name: make().build() for name, make in DASHBOARDS.items()}
    for board in boards.values():
        for number, panel in enumerate(board.panels or (), 1):
            panel.id_val = number
    rules = [json.loads(_text(rule(alert, boards[alert.board]))) for alert in ALERTS]
    files = {f"dashboards/{name}.json": _text(board) for name, board in boards.items()}
    return files | {ALERTING: _text(provisioned(rules))}


def write(folder: Path = PROVISIONING) -> list[Path]:
    """Write the files that have changed, and return their paths."""
    changed = []
    for path, text in generated().items():
        file = folder / path
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            changed.append(file)

    return changed


def _text(value: Any) -> str:
    return json.dumps(value, cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"
