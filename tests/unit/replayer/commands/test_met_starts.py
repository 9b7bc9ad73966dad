"""How near policies come to real starts, and settings fitted to them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from shadowtime.replayer.analysis.schedule_difference import starts_of
from shadowtime.replayer.analysis.slurm_fit import fit
from shadowtime.replayer.analysis.start_accuracy import measure_start_accuracy, met_by
from shadowtime.replayer.commands.check_starts import check_starts
from shadowtime.replayer.commands.fit_slurm import command as fit_slurm
from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.other_schedule import real_starts
from shadowtime.replayer.logs.swf import read_swf, write_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, of_rows, prepare
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli.command_line import application
from shadowtime.shared.errors import TraceError
from tests.support.small_logs import generated, job, trace_of, workload_of


def recorded_under(policy: str, jobs: int = 60) -> Workload:
    """Return a generated log whose waits are those of a policy."""
    workload = generated(jobs)
    starts = starts_of(RunPlan("x", "x", workload, configure(policy)))
    waits = starts - workload.columns["submit_time"]
    return replace(workload, columns={**workload.columns, "wait_time": waits})


def test_starts_of_the_policy_that_really_ran_are_all_met() -> None:
    workload = recorded_under("slurm")
    found = met_by(RunPlan("slurm", "x", workload, configure("slurm")))
    assert (found.within_minute, found.within_ten_minutes, found.mean_off) == (1.0, 1.0, 0.0)
    assert found.mean_wait == found.real_mean_wait
    assert (found.stepped_within_minute, found.stepped_within_ten_minutes) == (1.0, 1.0)
    other = met_by(RunPlan("fcfs", "x", workload, configure("fcfs")))
    assert other.within_minute < 1
    assert other.stepped_within_minute < 1


def test_on_the_bundled_trace_the_policy_that_really_decided_is_met_both_ways_and_another_is_not() -> None:
    workload = of_rows(prepare(read_swf(BUNDLED)), slice(300))
    starts = starts_of(RunPlan("easy", "x", workload, configure("easy")))
    waits = starts - workload.columns["submit_time"]
    recorded = replace(workload, columns={**workload.columns, "wait_time": waits})
    easy, fcfs = (met_by(RunPlan(name, "x", recorded, configure(name))) for name in ("easy", "fcfs"))
    assert (easy.within_minute, easy.stepped_within_minute, easy.stepped_within_ten_minutes) == (1.0, 1.0, 1.0)
    assert fcfs.within_minute < fcfs.stepped_within_minute < 1


def test_shares_count_starts_up_to_a_minute_and_ten_minutes_off() -> None:
    workload = workload_of(*(job(number, wait_time=100) for number in range(1, 5)))
    real = real_starts(workload)
    found = measure_start_accuracy("p", workload, real + np.array([0, -60, 61, 601]), real + np.array([0, 0, -601, 60]))
    assert (found.within_minute, found.within_ten_minutes) == (0.5, 0.75)
    assert (found.stepped_within_minute, found.stepped_within_ten_minutes) == (0.75, 0.75)
    assert (found.mean_off, found.median_off, found.real_mean_wait) == (180.5, 60.5, 100)
    assert measure_start_accuracy("p", workload, real, real, np.arange(4) > 1).jobs == 2


def test_a_log_without_waits_is_refused() -> None:
    with pytest.raises(TraceError, match="1 jobs have no wait time"):
        real_starts(workload_of(job(1)))


def test_what_is_fitted_comes_nearer_and_sees_the_first_half_alone() -> None:
    workload = recorded_under("slurm:backfill=no,weight_age=1000")
    said: list[str] = []
    best = fit(workload, 1000, said.append)
    assert best.keys["backfill"] is False
    assert best.loss == pytest.approx(0, abs=0.01)
    waits = workload.columns["wait_time"].copy()
    waits[len(waits) // 2 :] = 7
    other = replace(workload, columns={**workload.columns, "wait_time": waits})
    assert fit(other, 1000, said.append) == best
    assert len(of_rows(workload, slice(5))) == 5


def test_the_command_tells_each_policy(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    jobs = [job(number, submit_time=number, processors=4, run_time=50, wait_time=0) for number in range(1, 4)]
    trace = trace_of(*jobs)
    write_swf(log, trace.header, trace.table)
    result = CliRunner().invoke(application(check_starts), [str(log), "--policy", "fcfs", "--policy", "easy", "--json"])
    assert result.exit_code == 0, result.output
    rows = [orjson.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    assert [row["policy"] for row in rows] == ["fcfs", "easy"]
    assert rows[0]["within_minute"] == 2 / 3
    assert rows[0]["stepped_within_minute"] == 1, "on a machine that is really too full each job is 49 s late"


def fitted(workload: Workload, folder: Path) -> tuple[int, str, bool]:
    """Fit a log with the command. Return its exit status, its output, and whether it wrote the file."""
    names = ("job_number", "submit_time", "processors", "run_time", "requested_time", "wait_time")
    rows = zip(*(workload.columns[name].tolist() for name in names), strict=True)
    trace = trace_of(*(job(number, **dict(zip(names[1:], row, strict=True))) for number, *row in rows))
    write_swf(folder / "log.swf", trace.header, trace.table)
    arguments = [f"{folder / 'log.swf'}@{workload.processors}", "-o", str(folder / "site.toml")]
    result = CliRunner().invoke(application(fit_slurm), arguments)
    return result.exit_code, result.output + str(result.exception), (folder / "site.toml").exists()


def test_a_fit_that_is_worse_than_easy_is_not_written(tmp_path: Path) -> None:
    """The site had no backfilling in the first half of the log, to which the settings are fitted."""
    before, after = recorded_under("slurm:backfill=no", 140), recorded_under("easy", 140)
    waits = np.where(np.arange(140) < 70, *(part.columns["wait_time"] for part in (before, after)))
    status, text, written = fitted(replace(after, columns={**after.columns, "wait_time": waits}), tmp_path)
    assert (status, written) == (1, False), text
    assert "no file was written" in text


def test_a_fit_that_is_better_is_written(tmp_path: Path) -> None:
    status, text, written = fitted(recorded_under("slurm:backfill=no,weight_age=1000"), tmp_path)
    assert (status, written) == (0, True), text
