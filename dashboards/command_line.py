"""Dashboards and alert rules: `shadowtime dashboards generate`, `shadowtime dashboards push`."""

from typing import Annotated

import typer

from shadowtime.shared.cli import lasting_imports, say
from shadowtime.shared.errors import SettingsError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help=__doc__)


@app.command()
def generate() -> None:
    """Generate the dashboards and alert rules, in dashboards/provisioning and dashboards/rules, from the code."""
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
    url: Annotated[str, typer.Option(metavar="URL", help="Root URL of Grafana.")],
    token: Annotated[
        str, typer.Option(metavar="TOKEN", envvar="SHADOWTIME_GRAFANA_TOKEN", help="Token of an admin service account.")
    ],
    victoria_metrics: Annotated[
        str, typer.Option(metavar="URL", help="VictoriaMetrics, as Grafana reaches it.")
    ] = "http://127.0.0.1:8428",
) -> None:
    """Create or update folder, data source, dashboards, home page and alert rules in Grafana.

    A home page that the organisation has chosen itself is left unchanged.
    """
    try:
        with lasting_imports():
            from shadowtime.dashboards.push import Push
    except ModuleNotFoundError as error:
        raise SettingsError(f"push needs {error.name}: pip install 'shadowtime[grafana]'") from None
    Push(url, token, victoria_metrics).run(lambda pushed: say(f"{pushed.what}: {pushed.outcome}"))
