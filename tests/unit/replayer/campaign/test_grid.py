"""The cells of a campaign."""

from pathlib import Path

import numpy as np
import pytest

from shadowtime.replayer.arguments import Preparation, read_cluster
from shadowtime.replayer.campaign.file import read_campaign
from shadowtime.replayer.campaign.grid import grid_of
from shadowtime.replayer.campaign.logs import find_logs, workload_of
from shadowtime.replayer.campaign.run import HERE, How, run_campaign
from shadowtime.replayer.logs import AS_READ
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.shared.errors import TraceError

FILE = """
name = "ceilings"
title = "A policy that knows run times, beside one that does not"
logs = ["small.swf@8"]
policies = ["easy", { label = "ceiling", spec = "easy", requests = "actual" }]
"""


def test_months_are_replayed_each_by_itself(tmp_path: Path) -> None:
    write_swf(tmp_path / "small.swf", *generate(jobs=50, processors=8, seed=1, load=4.0))
    log = '{ log = "small.swf@8", months = [1, 3], sizes = "allocated" }'
    (tmp_path / "months.toml").write_text(FILE.replace('"small.swf@8"', log) + "keep_jobs = true")
    campaign = read_campaign(tmp_path / "months.toml")
    cells = grid_of(campaign, find_logs(campaign, tmp_path))
    assert [(cell.label, cell.month, cell.keeps_jobs) for cell in cells] == [
        ("easy", 1, False),
        ("easy", 3, False),
        ("ceiling", 1, False),
        ("ceiling", 3, False),
    ]
    assert cells[1].name == "small@8, sizes allocated, month 3, easy, seed 0"
    assert len({cell.digest for cell in cells}) == 4
    assert [cell.month for cell in grid_of(campaign, find_logs(campaign, tmp_path, first=20))] == [0, 0]


def test_a_policy_may_know_what_others_do_not(tmp_path: Path) -> None:
    write_swf(tmp_path / "small.swf", *generate(jobs=50, processors=8, seed=1, load=4.0))
    (tmp_path / "ceilings.toml").write_text(FILE)
    campaign = read_campaign(tmp_path / "ceilings.toml")
    plain, ceiling = grid_of(campaign, find_logs(campaign, tmp_path))
    assert (plain.label, plain.log.requests) == ("easy", "as-logged")
    assert (ceiling.label, ceiling.log.requests) == ("ceiling", "actual")
    assert plain.digest != ceiling.digest


def test_a_seed_of_the_grid_stands_in_the_spec(tmp_path: Path) -> None:
    write_swf(tmp_path / "small.swf", *generate(jobs=50, processors=8, seed=1, load=4.0))
    policy = '{ label = "HMM", spec = "probabilistic:runtime=hmm(seed={seed})", seeds = [3, 4] }'
    text = FILE.replace('{ label = "ceiling", spec = "easy", requests = "actual" }', policy)
    (tmp_path / "ceilings.toml").write_text(text)
    campaign = read_campaign(tmp_path / "ceilings.toml")
    _, *cells = grid_of(campaign, find_logs(campaign, tmp_path))
    assert [cell.label for cell in cells] == ["HMM", "HMM"]
    assert [f"seed={seed}" in cell.configuration.runtime for cell, seed in zip(cells, (3, 4), strict=True)] == [
        True
    ] * 2


def test_jobs_put_back_make_another_cell(tmp_path: Path) -> None:
    header, table = generate(jobs=50, processors=8, seed=1, load=4.0)
    write_swf(tmp_path / "small.swf", header, np.delete(table, slice(10, 20), axis=0))
    keys = "first=11,last=20,user=7,request=3600,run_time=60"
    entry = f'{{ log = "small.swf@8", label = "whole", put_back = "{keys}" }}'
    (tmp_path / "ceilings.toml").write_text(FILE.replace('"small.swf@8"', f'"small.swf@8", {entry}'))
    campaign = read_campaign(tmp_path / "ceilings.toml")
    logs = find_logs(campaign, tmp_path)
    assert [len(workload_of(log)) for log in logs] == [40, 50]
    cells = grid_of(campaign, logs)
    assert len({cell.digest for cell in cells}) == len(cells) == 4


def test_jobs_left_out_of_the_beginning_make_another_cell(tmp_path: Path) -> None:
    """A changed `skip` took the results of the whole log, and one entry beside the other was refused."""
    write_swf(tmp_path / "small.swf", *generate(jobs=50, processors=8, seed=1, load=4.0))
    entry = '{ log = "small.swf@8", label = "rest", skip = 10 }'
    (tmp_path / "ceilings.toml").write_text(FILE.replace('"small.swf@8"', f'"small.swf@8", {entry}'))
    campaign = read_campaign(tmp_path / "ceilings.toml")
    cells = grid_of(campaign, find_logs(campaign, tmp_path))
    assert len({cell.digest for cell in cells}) == len(cells) == 4


ACCOUNTING = """JobIDRaw|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|NNodes|User|Account|Partition
101|COMPLETED|1795325473|1795325480|1795325540|60|2|4|4|1|u1|acc|batch
102|FAILED|1795325475|1795325485|1795325495|10|2|4|4|1|u1|acc|batch
103|CANCELLED by 7|1795325510|None|1795325530|0|60|8|0|1|u2|acc|batch
104|COMPLETED|1795325573|1795325580|1795325640|60|2|4|4|1|u1|acc|batch
"""


@pytest.mark.parametrize(
    ("log", "mode", "numbers"),
    [
        ('"jobs.txt"', "closed", [101, 102, 104]),
        ('"jobs.txt"', "recorded", [101, 102, 103, 104]),
        ('{ log = "jobs.txt", completed = [1, 100] }', "closed", [101, 104]),
    ],
)
def test_an_accounting_file_has_the_jobs_of_a_replay(tmp_path: Path, log: str, mode: str, numbers: list[int]) -> None:
    """A campaign left out cancelled jobs of a recorded log, and failed on a log of completed jobs."""
    (tmp_path / "jobs.txt").write_text(ACCOUNTING)
    (tmp_path / "mine.toml").write_text(f'name = "mine"\ntitle = "Mine"\nlogs = [{log}]\nmode = "{mode}"\n')
    (entry,) = find_logs(read_campaign(tmp_path / "mine.toml"), tmp_path)
    workload = workload_of(entry)
    assert workload.columns["job_number"].tolist() == numbers
    assert {len(column) for column in workload.columns.values()} == {len(numbers)}


def test_what_is_left_out_and_assumed_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by other commands: an assumed machine is so large that few jobs wait."""
    (tmp_path / "jobs.txt").write_text(ACCOUNTING)
    (tmp_path / "mine.toml").write_text('name = "mine"\ntitle = "Mine"\nlogs = ["jobs.txt"]\n')
    how = How(tmp_path / "mine.toml", tmp_path, tmp_path / "results", None, HERE, None, None, None, None)
    for reported in (1, 0):
        run_campaign(read_campaign(how.file), how)
        told = " ".join(capsys.readouterr().err.split())
        assert told.count("it does not state the size of its machine; 8 processors are assumed") == reported
        assert told.count("skipped 1 job: 1 never started") == reported


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("queued_at,start,end,processors,limit", "submit=COLUMN"),
        ("submit,start,end,processors,limit", "limit=limit:min"),
    ],
)
def test_an_option_that_a_command_lacks_is_not_advised(tmp_path: Path, header: str, advice: str) -> None:
    """A campaign, a sweep and others advised --columns, which they do not have."""
    rows = [f"{number},{number},{number + 900},4,15" for number in range(20)]
    (tmp_path / "jobs.csv").write_text("\n".join([header, *rows]) + "\n")
    (tmp_path / "mine.toml").write_text('name = "mine"\ntitle = "Mine"\nlogs = ["jobs.csv"]\n')
    (log,) = find_logs(read_campaign(tmp_path / "mine.toml"), tmp_path)
    message = f"{advice}.*; this command has no such option: `shadowtime convert` has it, and writes a log to use here"
    with pytest.raises(TraceError, match=message):
        workload_of(log)
    with pytest.raises(TraceError, match=message):
        read_cluster(str(tmp_path / "jobs.csv"), Preparation(), print, "closed")
    with pytest.raises(TraceError, match=f"{advice}(?!.*this command)"):
        read_cluster(str(tmp_path / "jobs.csv"), Preparation(reading=AS_READ), print, "closed")
