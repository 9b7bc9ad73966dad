"""The notebook of the documentation runs; on the log of the paper it gives what the page shows."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.shared.cli.paths import ROOT
from tests.gates.archive import FILES, TRACES, needs_archive

if TYPE_CHECKING:
    import nbformat

NOTEBOOK = ROOT / "docs" / "waits-of-probabilistic-easy.ipynb"


def read() -> "nbformat.NotebookNode":
    import nbformat  # here: it takes seconds, in every process that collects tests

    found: nbformat.NotebookNode = nbformat.read(NOTEBOOK, as_version=4)
    return found


def run(log: Path, folder: Path) -> "list[nbformat.NotebookNode]":
    """Return the cells of code as they are after a run, with another log in place of the named one."""
    from nbclient import NotebookClient

    notebook = read()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert f'"{FILES["KTH"]}.swf.gz"' in cells[0].source
    cells[0].source = cells[0].source.replace(f"{FILES['KTH']}.swf.gz", str(log))
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}).execute()
    return cells


def told(cells: "list[nbformat.NotebookNode]") -> list[str]:
    return [str(each.data["text/plain"]) for cell in cells for each in cell.outputs if "data" in each]


@pytest.mark.nightly
def test_it_runs(tmp_path: Path) -> None:
    cells = run(BUNDLED, tmp_path)
    assert len(told(cells)) == 3
    assert any("image/png" in each.get("data", {}) for cell in cells for each in cell.outputs)


@pytest.mark.archive
@needs_archive
def test_the_log_of_the_paper_gives_what_the_page_shows(tmp_path: Path) -> None:
    saved = [cell for cell in read().cells if cell.cell_type == "code"]
    assert told(run(TRACES / f"{FILES['KTH']}.swf.gz", tmp_path)) == told(saved)
