"""Reproduce a table of a paper, or all: `shadowtime reproduce NAME --logs FOLDER`."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from shadowtime.replayer.campaign.command_line import Csv, First, Latex, On, Out, Report, Workers
from shadowtime.replayer.options import CELLS_KEPT
from shadowtime.shared.cli import application, lasting_imports
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import among, quote

CAMPAIGNS = Path(__file__).parents[2] / "campaigns"
"""Folder of the campaigns that ship with the project, one for each table of a paper."""

OF_A_PAPER = r"P\d-"
"""Beginning of the name of each campaign for a table or figure of a paper, as a regular expression."""


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A table, or RESULT.json of replay --json; without NAME, all are listed."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Reproduce every table whose logs are in --logs.")] = False,
    logs: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of the logs; by default the current one.")
    ] = Path(),
    out: Out = None,
    workers: Workers = None,
    on: On = "cores",
    first: First = None,
    report: Report = None,
    csv: Csv = None,
    latex: Latex = None,
) -> None:
    """Reproduce a table of a paper beside the paper's figures, or repeat the replays of a result file."""
    with lasting_imports():
        from shadowtime.replayer.campaign.file import read_campaign
        from shadowtime.replayer.campaign.studies import STUDIES, carry_out_study
    known = {path.stem: path for path in sorted(CAMPAIGNS.glob("*.toml"))}
    if every and name is not None:
        raise SettingsError(f"{quote(name)} and --all exclude each other: name one table, or none")
    if name is None and not every:
        titles = {table: _title(path) for table, path in known.items()}
        titles |= {key: study.title for key, study in STUDIES.items()}
        width = max(map(len, titles)) + 2
        for table, title in sorted(titles.items()):
            typer.echo(f"{table:{width}}{title}")
        return

    of_grids: dict[str, object] = {"--out": out, "--workers": workers, "--csv": csv, "--latex": latex}
    of_grids["--on"] = None if on == "cores" else on
    if name is not None and name.endswith(".json"):
        others: dict[str, object] = {"--first": first, "--report": report}
        _require_none(f"{name}: a result is repeated as it was made", of_grids | others)
        with lasting_imports():
            from shadowtime.replayer.campaign.reproduce_result import reproduce_result
        reproduce_result(Path(name), logs)
        return
    if name in STUDIES:
        _require_none(f"{name} is no grid of replays", of_grids)
        carry_out_study(STUDIES[name], logs, first, report)
        return
    if name is not None and name not in known:
        raise SettingsError(f"unknown campaign {quote(name)}{among(name, sorted((*known, *STUDIES)))}")
    with lasting_imports():
        from shadowtime.replayer.campaign.all_papers import reproduce_all
        from shadowtime.replayer.campaign.run import How, run_campaign
    how = How(CAMPAIGNS, logs, out=out, workers=workers, on=on, first=first, report=report, csv=csv, latex=latex)
    if name is None:
        reproduce_all({table: path for table, path in known.items() if re.match(OF_A_PAPER, table)}, how)
    else:
        run_campaign(read_campaign(known[name]), replace(how, file=known[name]))


def _title(path: Path) -> str:
    """Return the title of a campaign, and the names of its logs in brackets. Its SPECs may be of no use here."""
    campaign = tomllib.loads(path.read_text())
    logs = (entry if isinstance(entry, str) else entry["log"] for entry in campaign["logs"])
    return f"{campaign['title']} [{', '.join(dict.fromkeys(log.partition('@')[0] for log in logs))}]"


def _require_none(why: str, options: Mapping[str, object]) -> None:
    """Raise `SettingsError` if one of the options has a value, because none of them has an effect."""
    if without_effect := [option for option, value in options.items() if value is not None]:
        raise SettingsError(f"{why}, so leave out {', '.join(without_effect)}")


app = application(reproduce)
ON_INTERRUPT = CELLS_KEPT
