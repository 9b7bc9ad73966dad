"""The cells of a campaign."""

from pathlib import Path

import numpy as np

from shadowtime.replayer.campaign.file import read_campaign
from shadowtime.replayer.campaign.grid import grid_of
from shadowtime.replayer.campaign.logs import find_logs, workload_of
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.synthetic.generator import generate

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
