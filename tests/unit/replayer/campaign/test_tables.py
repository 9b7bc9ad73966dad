"""Tables of a campaign: intervals over what was drawn, rows of all that a star stands for, LaTeX that compiles."""

from types import SimpleNamespace
from typing import cast

import pytest

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
    total_of,
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


def test_a_share_is_taken_month_by_month() -> None:
    """Tang 2013 averages what each month gained: a month of long waits counts no more than another."""
    base = [{"copy": 0, "month": month, "mean_wait": wait} for month, wait in ((1, 10.0), (2, 1000.0), (3, 0.0))]
    ours = [{"copy": 0, "month": month, "mean_wait": wait} for month, wait in ((1, 5.0), (2, 1000.0), (3, 0.0))]
    figure = figure_of(Column(key="mean_wait", of="easy"), ours, "", {"easy": base})
    assert figure.mean == 75.0
    assert figure.half is not None


def test_a_share_is_taken_on_each_copy() -> None:
    """A copy under which all policies wait longer says nothing about their ratio, so it does not widen its interval."""
    base = [{"copy": copy, "mean_wait": wait} for copy, wait in enumerate((10.0, 20.0, 80.0))]
    ours = [{"copy": copy, "mean_wait": wait / 2} for copy, wait in enumerate((10.0, 20.0, 80.0))]
    by_label = {"easy": base, "best": ours}
    column = Column(key="mean_wait", of="easy")
    assert figure_of(column, ours, "", by_label)[:2] == (50.0, 0.0)
    assert figure_of(column, base, "", by_label)[:2] == (100.0, 0.0)


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


def test_a_change_has_its_sign_and_is_near_the_paper_if_what_changed_is() -> None:
    column = Column(key="mean_wait", change_from="easy", digits=1)
    assert (column.shown_unit, column.factor) == ("% from easy", 100)
    by_label = {"easy": [{"copy": 0, "mean_wait": 200.0}]}
    figure = figure_of(column, [{"copy": 0, "mean_wait": wait} for wait in (190.0, 200.0)], "", by_label)
    assert figure.text(1) == "-2.5 ± 31.8"
    assert Figure(-2.5, paper=2.0, signed=True).text(1) == "-2.5 (+2)"
    assert Figure(-2.5, paper=3.0, signed=True).text(1) == "-2.5 (+3) ≠"


def test_the_total_is_the_geometric_mean_over_logs_of_each_draw() -> None:
    campaign = Campaign.model_validate(
        {
            "name": "c",
            "title": "t",
            "logs": ["KTH", "CTC"],
            "total": True,
            "columns": ["mean_wait", {"key": "mean_wait", "name": "change", "change_from": "easy", "digits": 1}],
            "paper": {"KTH": {"best": {"change": -50.0}}, "CTC": {"best": {"change": 100.0}}},
            "reasons": {"KTH": {"best": "why"}, "CTC": {"best": "why"}},
        }
    )
    figures = {
        log: {"easy": [{"copy": 0, "mean_wait": 1.0}], "best": [{"copy": 0, "mean_wait": wait} for wait in waits]}
        for log, waits in {"KTH": (0.5, 2.0), "CTC": (2.0, 8.0)}.items()
    }
    easy, best = total_of(campaign, figures).rows
    assert [figure.mean for figure in easy.figures] == [None, pytest.approx(0.0)]
    assert best.figures[1].mean == pytest.approx(150.0)  # the changes of the draws are 0 and 300 %
    assert (best.figures[1].paper, easy.figures[1].paper) == (0.0, None)
    assert (best.reason, easy.reason) == ("why", None)
    assert easy.figures[1].text(1) == "+0.0"


def test_a_total_with_a_share_of_zero_is_zero() -> None:
    columns = ["mean_wait", {"key": "mean_wait", "name": "share", "of": "easy"}]
    campaign = Campaign.model_validate({"name": "c", "title": "t", "logs": ["KTH", "CTC"], "columns": columns})
    figures = {
        log: {"easy": [{"copy": 0, "mean_wait": 4.0}], "best": [{"copy": 0, "mean_wait": wait}]}
        for log, wait in {"KTH": 0.0, "CTC": 2.0}.items()
    }
    assert [row.figures[1].mean for row in total_of(campaign, figures).rows] == [pytest.approx(100.0), 0.0]


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
