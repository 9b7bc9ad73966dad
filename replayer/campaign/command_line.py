"""Run a campaign: `shadowtime campaign FILE.toml`."""

from pathlib import Path
from typing import Annotated

import typer

from shadowtime.replayer.options import CELLS_KEPT
from shadowtime.shared.cli import application, lasting_imports

Out = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder of the results; by default NAME-results, by the campaign's name."),
]
Workers = Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes; by default as many as cores.")]
On = Annotated[
    str,
    typer.Option(
        metavar="cores|dask|dask=ADDRESS",
        help="Where to replay: on this machine's cores, or on Dask, here or at ADDRESS.",
    ),
]
First = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N jobs of each log.")]
Report = Annotated[Path | None, typer.Option(metavar="FILE.html", help="The tables as a page, with charts.")]
Csv = Annotated[Path | None, typer.Option(metavar="FILE.csv", help="The row of every cell as a table.")]
Latex = Annotated[Path | None, typer.Option(metavar="FILE.tex", help="The tables as LaTeX.")]


def campaign(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Logs, policies, settings, seeds, columns.")],
    logs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the logs are; by default the folder of FILE.toml.")
    ] = None,
    out: Out = None,
    workers: Workers = None,
    on: On = "cores",
    first: First = None,
    report: Report = None,
    csv: Csv = None,
    latex: Latex = None,
) -> None:
    """Replay every log under every policy and setting, for every seed. Finished replays are not repeated."""
    with lasting_imports():
        from shadowtime.replayer.campaign.file import read_campaign
    chosen = read_campaign(file)
    with lasting_imports():
        from shadowtime.replayer.campaign.run import How, run_campaign
    how = How(
        file, logs or file.parent, out=out, workers=workers, on=on, first=first, report=report, csv=csv, latex=latex
    )
    run_campaign(chosen, how)


app = application(campaign)
ON_INTERRUPT = CELLS_KEPT
