"""Tables that fit the terminal."""

import io

import pytest
from rich.console import Console

from shadowtime.shared.cli import FittedTable
from shadowtime.shared.text import TableColumn


@pytest.mark.parametrize("width", [80, 40, 30])
def test_no_name_and_no_figure_is_cut(width: int) -> None:
    names = [f"easy:queue=gittins,threshold={hours * 3600},runtime=empirical" for hours in (10, 20)]
    columns = [TableColumn("mean", "", ["116.00 ± 2.94", "9"]), TableColumn("draws", "", ["116 117 118 119 120", "9"])]
    written = io.StringIO()
    Console(file=written, width=width).print(FittedTable("title", {"policy": names}, columns))
    assert "…" not in written.getvalue()
    assert "116.00 ± 2.94" in written.getvalue()
    table, _, _ = written.getvalue().partition("columns left out")
    folded = "".join(line.split()[0] for line in table.splitlines()[4:] if line.strip())
    assert folded == "".join(names)
