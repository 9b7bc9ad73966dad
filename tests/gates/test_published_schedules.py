"""EASY with actual run times starts every job of two full logs at the published second; so says the command."""

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowtime.replayer.commands.check_schedule import check_schedule
from shadowtime.shared.cli.command_line import application
from tests.gates.archive import needs_archive, path_of, plan, published, start_times

pytestmark = [pytest.mark.archive, needs_archive]


@pytest.mark.parametrize(("trace", "processors", "jobs"), [("KTH", 100, 28_481), ("CTC", 338, 77_199)])
def test_every_start_is_as_published(trace: str, processors: int, jobs: int) -> None:
    run, reference = plan(trace, processors, "easy", "actual"), published(trace)
    assert len(run.workload) == len(reference.start) == jobs
    assert np.array_equal(run.workload.columns["submit_time"], reference.submit)
    assert np.array_equal(run.workload.columns["processors"], reference.processors)
    different = np.flatnonzero(start_times(run) != reference.start)
    assert len(different) == 0, f"job numbers {run.workload.columns['job_number'][different][:10].tolist()}"


def test_check_schedule_says_the_same(tmp_path: Path) -> None:
    theirs, run = published("KTH"), plan("KTH", 100, "easy", "actual")
    with (tmp_path / "theirs.csv").open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["job_number", "submit_time", "start_time", "processors"])
        rows.writerows(
            zip(run.workload.columns["job_number"], theirs.submit, theirs.start, theirs.processors, strict=True)
        )
    arguments = [f"{path_of('KTH')}@100", str(tmp_path / "theirs.csv"), "--requests", "actual"]
    done = CliRunner().invoke(application(check_schedule), arguments)
    assert (done.exit_code, "all 28,481 jobs start as under easy" in done.output) == (0, True), done.output
