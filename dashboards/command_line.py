"""Dashboards and alert rules: `shadowtime dashboards generate`, `shadowtime dashboards push`."""

from typing import Annotated

import typer

from shadowtime.shared.cli import lasting_imports, say
from shadowtime.shared.errors import SettingsError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help=__doc__)


@app.command()
def generate() -> None:
    """Write the files below dashboards/provisioning, which Grafana reads, from the code."""
    try:
        with lasting_imports():
            from shadowtime.dashboards.generate import write
    except ModuleNotFoundError as error:
        raise SettingsError(f"generate needs {error.name}: pip install -r requirements-dev.lock") from None

    changed = write()
    for path in changed:
        say(f"wrote {path}")
    if not changed:
        say("all files are up to date")


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
    """Create or update folder, data source, dashboards and alert rules in a Grafana. Up-to-date ones stay unchanged."""
    try:
        with lasting_imports():
            from shadowtime.dashboards.push import Push
    except ModuleNotFoundError as error:
        raise SettingsError(f"push needs {error.name}: pip install 'shadowtime[grafana]'") from None
    Push(url, token, victoria_metrics).run(lambda pushed: say(f"{pushed.what}: {pushed.outcome}"))
