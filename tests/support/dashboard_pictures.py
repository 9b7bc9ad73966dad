"""Pictures of whole dashboards, drawn by Grafana's own packages from a store with results."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.browser import Page
from tests.support.dashboard_queries import boards
from tests.support.dashboard_store import Filled, chosen_for, questions, shown_time

WIDTH = 1_280


def drawing(filled: Filled, name: str) -> dict[str, Any]:
    """Return what `draw` of page.jsx takes: a dashboard as it opens at the time of its log."""
    start, end = shown_time(filled, name)
    at_once = {panel["id"] for panel in boards()[name]["panels"]}
    asked = {each["panel"]["id"]: each for each in questions(filled, name) if each["panel"]["id"] in at_once}
    days = {f"__{end}": f"{datetime.fromtimestamp(at, UTC):%-d %b %Y}" for end, at in (("from", start), ("to", end))}
    chosen = chosen_for(filled, name) | days
    return {
        "title": boards()[name]["title"],
        "theme": "dark",
        "width": WIDTH,
        "from": start * 1_000,
        "to": end * 1_000,
        "panels": [
            asked.get(panel["id"], {"panel": panel, "answers": {}}) | {"panel": filled_in(panel, chosen)}
            for panel in boards()[name]["panels"]
        ],
    }


def filled_in(panel: dict[str, Any], chosen: dict[str, str]) -> dict[str, Any]:
    """Return a panel with the values of variables in its title, legends and words, as Grafana shows them."""

    def shown(text: str) -> str:
        return re.sub(r"\$\{?(\w+)(:percentencode|:[^}]*)?\}?", value, text)

    def value(of: re.Match[str]) -> str:
        plain = chosen.get(of[1], of[0]).replace("\\", "")
        return quote(plain) if of[2] == ":percentencode" else plain

    changed: dict[str, Any] = {"title": shown(panel.get("title", ""))}
    if "targets" in panel:
        changed["targets"] = [each | {"legendFormat": shown(each.get("legendFormat", ""))} for each in panel["targets"]]
    if "content" in panel.get("options", {}):
        changed["options"] = panel["options"] | {"content": shown(panel["options"]["content"])}
    return panel | changed


async def draw(page: Page, file: Path, board: dict[str, Any]) -> dict[str, Any]:
    """Draw a dashboard on a page of `grafana.build_page`. Return what a person sees of each panel."""
    await page.open(file.as_uri())
    seen: dict[str, Any] = await page.evaluate(f"draw({json.dumps(board)})")
    failures = [error for error in page.errors if "/public/" not in error]  # fonts and icons of its server
    assert not failures, board["title"]
    return seen
