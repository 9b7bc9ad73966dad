"""Sweeps: their campaigns, rows and winners."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shadowtime.replayer.api.sweeps import sweep
from shadowtime.replayer.campaign.cell_run import carry_out_cell
from shadowtime.replayer.campaign.file import Campaign
from shadowtime.replayer.campaign.grid import grid_of
from shadowtime.replayer.campaign.logs import find_logs
from shadowtime.replayer.campaign.run import HERE, How, replayed, write_files
from shadowtime.replayer.campaign.tables import Figure
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.sweep.command_line import app
from shadowtime.replayer.sweep.grid_sweep import Constraint, Grid, Point, campaign_of, points_of, print_sweep, winners
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.shared.errors import ShadowtimeError
from tests.support.small_logs import generated, job, write_log


@pytest.fixture
def log(tmp_path: Path) -> str:
    write_swf(tmp_path / "small.swf", *generate(jobs=80, processors=8, seed=1, load=4.0))
    return str(tmp_path / "small.swf")


def how(log: str, out: Path, report: Path | None = None) -> How:
    return How(Path(log), Path(), out, None, HERE, None, report, None, None)


def test_a_grid_has_sizes_loads_and_the_baseline(log: str) -> None:
    grid = Grid(log, ["easy:queue={srf,fcfs}", "fcfs"], processors="8..16 step 8", load="1,1.5", copies=2)
    campaign = campaign_of(grid)
    assert [entry.label for entry in campaign.logs] == [
        "small@8",
        "small@8, load 1.5",
        "small@16",
        "small@16, load 1.5",
    ]
    assert [policy.spec for policy in campaign.policies] == ["easy", "easy:queue=srf", "fcfs"], "equal SPECs once"
    assert len(grid_of(campaign, find_logs(campaign, Path()))) == 4 * 3 * 3


def test_compiled_cells_equal_those_of_the_pipeline(log: str, tmp_path: Path) -> None:
    campaign = campaign_of(Grid(log, ["easy:queue={srf,saf}", "tuned"]))
    cells = grid_of(campaign, find_logs(campaign, Path()))
    stages = grid_of(campaign.model_copy(update={"compiled": False}), find_logs(campaign, Path()))
    for cell, through_stages in zip(cells, stages, strict=True):
        assert cell.digest != through_stages.digest
        row, expected = carry_out_cell(cell).row, carry_out_cell(through_stages).row
        assert "decisions_sha256" not in row
        same = {key for key in row if not key.startswith(("cpu", "elapsed", "schedule_sha256"))}
        same.discard("wait_bound_milliseconds_per_job")
        assert {key: row[key] for key in same} == {key: expected[key] for key in same}


def test_a_sweep_continues_and_shows_its_winners(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = campaign_of(Grid(log, ["easy:queue={srf,saf}"], copies=1))
    done = replayed(campaign, how(log, tmp_path / "out", tmp_path / "page.html"))
    write_files(done, how(log, tmp_path / "out", tmp_path / "page.html"))
    assert "easy:queue=srf" in (tmp_path / "page.html").read_text()
    again = replayed(campaign, how(log, tmp_path / "out"))
    assert again.rows == done.rows
    assert "6 of them done before" in capsys.readouterr().err
    print_sweep(done, Constraint(1.1, 1.15), most=2)
    text = capsys.readouterr().out
    assert "and 1 more" in text
    assert "no constraint: easy" in text


def test_winners_keep_their_constraints() -> None:
    points = [
        Point("fast", (Figure(1.0),), 3.0, 1.0),
        Point("fair", (Figure(2.0),), 1.0, 1.0),
        Point("easy", (Figure(3.0),), 1.0, 1.0),
        Point("unfair", (Figure(1.5),), 1.0, 2.0),
    ]
    points.sort(key=lambda point: point.slowdown)
    named = [point.policy for _, point in winners(points, Constraint(1.1, 1.15))]
    assert named == ["fast", "unfair", "fair"]


@pytest.mark.parametrize("options", [{"processors": 128}, {"load": 1.2}])
def test_a_range_is_a_text(options: dict[str, Any]) -> None:
    with pytest.raises(ShadowtimeError, match="expected a text, such as '80,96'"):
        sweep(None, ["easy"], jobs=50, **options)


def test_a_size_given_twice_is_refused(log: str) -> None:
    with pytest.raises(ShadowtimeError, match="@PROCESSORS and --processors exclude each other"):
        campaign_of(Grid(f"{log}@8", ["fcfs"], processors="8..16 step 8"))


def test_a_wait_that_the_baseline_does_not_have_keeps_no_constraint(log: str, tmp_path: Path) -> None:
    done = replayed(campaign_of(Grid(log, ["fcfs"])), how(log, tmp_path / "out"))
    key = "users.longest_mean_wait"
    easy, fcfs = ({**row, key: wait} for row, wait in zip(done.rows, (0.0, 3600.0), strict=True))
    (points,) = points_of(done._replace(rows=[easy, fcfs])).values()
    assert {point.policy: point.worst_user for point in points} == {"easy": 1.0, "fcfs": float("inf")}


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        (Grid("x.swf", ["nonsense"]), "nonsense"),
        (Grid("x.swf", ["easy:queue={srf,nothing}"]), "unknown order"),
        (Grid("x.swf", ["easy"], processors="1.5,2"), "expected whole numbers"),
        (Grid("x.swf", ["easy"], processors="0,2"), "at least 1"),
        (Grid("x.swf", ["easy"], load="many"), "expected numbers"),
        (Grid("x.swf", ["easy"], load="0..2"), "expected factors"),
        (Grid("x.swf", ["easy:threshold={1..5000}"], copies=100), "at most 100,000"),
    ],
)
def test_a_bad_sweep_is_refused(grid: Grid, problem: str) -> None:
    with pytest.raises(ShadowtimeError, match=problem):
        campaign_of(grid)


def test_figures_of_events_are_not_asked_of_the_machine() -> None:
    settings = {"name": "x", "title": "x", "logs": ["KTH"], "compiled": True, "columns": ["log.jobs"]}
    with pytest.raises(ValueError, match="needs the events of a run"):
        Campaign.model_validate(settings)


def test_a_frame_has_a_row_for_each_replay(log: str) -> None:
    frame = sweep(log, ["easy:queue={srf,saf}"], processors="8,16,8", load="1,1.0", copies=1)
    assert len(frame) == 3 * 2 * 2
    assert set(frame["processors"]) == {8, 16}
    with pytest.raises(ShadowtimeError, match="give the path"):
        sweep(generated(20), ["easy"])  # type: ignore[arg-type]


def test_what_is_left_out_of_the_log_is_reported(tmp_path: Path) -> None:
    log = write_log(tmp_path, job(1, user_id=1), job(2, processors=99))
    shown = CliRunner().invoke(
        app, [str(log), "--policy", "fcfs", "--processors", "4", "--out", str(tmp_path / "out"), "--workers", "1"]
    )
    assert shown.exit_code == 0
    assert "skipped 1 job: 1 larger than the machine" in shown.stderr


def test_an_assumed_size_is_reported_with_options_of_the_command(tmp_path: Path) -> None:
    (log := tmp_path / "log.swf").write_text("1 0 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n")
    shown = CliRunner().invoke(app, [str(log), "--policy", "fcfs", "--out", str(tmp_path / "out"), "--workers", "1"])
    assert "give its size with --processors or LOG@PROCESSORS\n" in shown.stderr
