"""What a grid of replays cannot express of a paper: figures of single jobs, and generated data."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape as plain
from rich.table import Table

from shadowtime.replayer.campaign.wait_figures import Findings, artificial_trace, figures_1_to_4
from shadowtime.replayer.report import escape, table, whole
from shadowtime.shared.output import require_places, result_file


class Study(NamedTuple):
    """A study by its title. `carry_out` gets the folder of logs, and how many jobs of each are to be replayed."""

    title: str
    carry_out: Callable[[Path, int | None], Findings]


STUDIES = {
    "P2-figures-1-to-4": Study(
        "Brevik 2006, Figures 1 to 4: waits and their bounds over time",
        figures_1_to_4,
    ),
    "P2-artificial-trace": Study(
        "Brevik 2006, section 3.5: clusters of an artificial trace", lambda *_: artificial_trace()
    ),
}
"""The studies, by the names that `reproduce` takes."""


def carry_out_study(study: Study, folder: Path, first: int | None, report: Path | None) -> None:
    """Carry a study out, print its table, and write its page.

    Raises
    ------
    ShadowtimeError
        If a log is missing or cannot be replayed, or the page cannot be written.
    """
    require_places((report,), ())
    found = study.carry_out(folder, first)
    console = Console(highlight=False)
    shown = Table(title=plain(study.title), title_justify="left")
    for heading in found.head:
        shown.add_column(plain(heading), overflow="fold")
    for row in found.rows:
        shown.add_row(*map(plain, row))
    console.print(shown)
    for note in found.notes:
        console.print(note, markup=False)

    if report is not None:
        notes = "".join(f"<p class=note>{escape(note)}</p>" for note in found.notes)
        body = [list(map(escape, row)) for row in found.rows]
        main = f"{table(list(found.head), body, study.title)}{notes}<div class=figures>{found.drawn}</div>"
        with result_file(report) as file:
            file.write(whole(study.title, "", main).encode())
