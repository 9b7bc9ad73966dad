"""Tables of a campaign: intervals over what was drawn, rows of all that a star stands for, LaTeX that compiles."""

from types import SimpleNamespace
from typing import cast

from shadowtime.replayer.campaign.columns import Column
from shadowtime.replayer.campaign.file import Campaign
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.campaign.tables import (
    Figure,
    LogTable,
    Row,
    as_latex,
    figure_of,
    reasons_of,
    remarks_of,
    rows_of,
    tables_of,
)


def test_seeds_that_change_nothing_do_not_narrow_the_interval_over_copies() -> None:
    """Ten seeds of a policy that draws nothing are one replay ten times."""
    once = [{"mean_wait": wait, "copy": copy} for copy, wait in enumerate((1.0, 2.0, 4.0))]
    often = [row for row in once for _ in range(10)]
    column = Column(key="mean_wait")
    assert figure_of(column, often, "", {}) == figure_of(column, once, "", {})


def test_seeds_without_copies_are_draws() -> None:
    figure = figure_of(Column(key="mean_wait"), [{"mean_wait": float(seed), "copy": 0} for seed in range(4)], "", {})
    assert figure.mean == 1.5
    assert figure.half is not None


def test_a_star_stands_for_what_any_draw_has() -> None:
    campaign = Campaign.model_validate({"name": "c", "title": "t", "logs": ["KTH"], "columns": ["slowdown.*"]})
    draws = [{"copy": 0, "slowdown.SN": 1.0}, {"copy": 1, "slowdown.SN": 1.0, "slowdown.LW": 2.0}]
    assert [row.label for row in rows_of(campaign, {"easy": draws}, "KTH")] == ["SN", "LW"]


def test_whatever_a_label_has_is_text_in_latex() -> None:
    title = "a\n\\input{x}"
    campaign = Campaign.model_validate({"name": "c", "title": "t", "logs": ["KTH"], "columns": ["mean_wait"]})
    row = Row("R^2 <b> \\frac{1}\n\n$x$", (Figure(1.0),))
    latex = as_latex(campaign, [LogTable(title, (row,))]).splitlines()
    assert latex[0] == r"% c: a \input{x}"
    assert latex[5] == (r"R\textasciicircum{}2 \textless{}b\textgreater{} \textbackslash{}frac\{1\}  \$x\$ & 1.00 \\")


def test_a_row_that_differs_from_the_paper_is_marked_and_explained() -> None:
    campaign = Campaign.model_validate(
        {
            "name": "c",
            "title": "t",
            "logs": ["KTH"],
            "columns": [{"key": "mean_wait", "digits": 1}],
            "paper": {"KTH": {name: {"mean wait": 10.0} for name in ("near", "far", "why")}},
            "reasons": {"KTH": {"why": "another log"}},
        }
    )
    draws = {name: [{"copy": 0, "mean_wait": wait}] for name, wait in {"near": 10.5, "far": 10.6, "why": 1.0}.items()}
    rows = tuple(rows_of(campaign, draws, "KTH"))
    assert [row.figures[0].text(1) for row in rows] == ["10.5 (10)", "10.6 (10) ≠", "1.0 (10) ≠"]
    assert reasons_of(campaign, LogTable("KTH", rows)) == ["≠ far: not explained", "≠ why: another log"]


def test_what_the_paper_prints_is_shown_also_for_a_log_that_is_not_here() -> None:
    campaign = Campaign.model_validate(
        {
            "name": "c",
            "title": "t",
            "logs": ["KTH", {"log": "SDSC-DS", "optional": True}],
            "columns": [{"key": "wait_bounds.*.plain.coverage", "name": "plain", "digits": 1}],
            "paper": {"KTH": {"all": {"plain": 96.0}}, "SDSC-DS": {"high": {"plain": 95.1}}},
            "bold": {"SDSC-DS": {"high": ["plain"]}},
            "labels": {"SDSC-DS": {"high": "high*"}},
            "notes": {"SDSC-DS": "another year"},
            "remarks": ["*: short"],
        }
    )
    cell = SimpleNamespace(log=SimpleNamespace(label="KTH"), label="easy")
    row = {"wait_bounds.all.plain.coverage": 96.0, "copy": 0, "processors": 100, "jobs": 3}
    here, missing = tables_of(campaign, [cast("Cell", cell)], [row])
    assert [(row.label, row.figures[0].text(1)) for row in here.rows] == [("all", "96.0 (96)")]
    assert [(row.label, row.figures[0].text(1)) for row in missing.rows] == [("high*", "- (**95.1**)")]
    assert (here.note, reasons_of(campaign, missing)) == (None, ["another year"])
    assert remarks_of(campaign)[1:] == ["**: bold in the paper.", "*: short"]
