"""Dashboards and alert rules: `shadowtime dashboards generate`, `shadowtime dashboards push`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from shadowtime.dashboards.alerts import ALERTS, provisioned, rule
from shadowtime.dashboards.screens import (
    drift,
    health,
    home,
    policies,
    runtime_distribution,
    scheduler,
    scoreboard,
    twin,
    wait_bound,
    walltime_adjustment,
)
from shadowtime.shared.cli import lasting_imports, run_app, say
from shadowtime.shared.errors import SettingsError

# The dashboards and alert rules as the files that Grafana reads: `dashboards/provisioning`.

PROVISIONING = Path(__file__).parent / "provisioning"
ALERTING = "alerting/alerts.json"

BOARDS = {
    "home": home.dashboard,
    "policies": policies.dashboard,
    "scoreboard": scoreboard.dashboard,
    "runtime_distribution": runtime_distribution.dashboard,
    "walltime_adjustment": walltime_adjustment.dashboard,
    "wait_bound": wait_bound.dashboard,
    "scheduler": scheduler.dashboard,
    "twin": twin.dashboard,
    "drift": drift.dashboard,
    "health": health.dashboard,
}
"""In the order of the flow; that of a stage bears its name."""


def generated() -> dict[str, str]:
    """Return the text of every file, by its path below `provisioning`."""
    boards = {name: make().build() for name, make in BOARDS.items()}
    for board in boards.values():
        for number, panel in enumerate(board.panels or (), 1):
            panel.id_val = number
    rules = [json.loads(_text(rule(each, boards[each.board]))) for each in ALERTS]
    files = {f"dashboards/{name}.json": _text(board) for name, board in boards.items()}
    return files | {ALERTING: _text(provisioned(rules))}


def write(folder: Path = PROVISIONING) -> list[Path]:
    """Write every file; return those that have changed."""
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


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help=__doc__)


@app.command()
def generate() -> None:
    """Write the files below dashboards/provisioning, which Grafana reads, from the code."""
    try:
        with lasting_imports():
            pass
    except ModuleNotFoundError as error:
        raise SettingsError(f"generating takes {error.name}: pip install -r requirements-dev.lock") from None
    changed = write()
    for path in changed:
        say(f"wrote {path}")
    if not changed:
        say("all files are as they should be")


@app.command()
def push(
    url: Annotated[str, typer.Option(metavar="URL", help="Root of a Grafana.")],
    token: Annotated[
        str, typer.Option(metavar="TOKEN", envvar="SHADOWTIME_GRAFANA_TOKEN", help="Of a service account, an admin.")
    ],
    victoria_metrics: Annotated[
        str, typer.Option(metavar="URL", help="Where that Grafana finds VictoriaMetrics.")
    ] = "http://127.0.0.1:8428",
) -> None:
    """Bring folder, data source, dashboards and alert rules into a Grafana; what is there already is left alone."""
    try:
        with lasting_imports():
            from shadowtime.dashboards.push import Push
    except ModuleNotFoundError as error:
        raise SettingsError(f"pushing takes {error.name}: pip install 'shadowtime[grafana]'") from None
    Push(url, token, victoria_metrics).run(lambda each: say(f"{each.what}: {each.outcome}"))


def main() -> None:
    """Run the command line."""
    run_app(app)
