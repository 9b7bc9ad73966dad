"""The cells of a campaign."""

from pathlib import Path

from shadowtime.replayer.campaign.file import read_campaign
from shadowtime.replayer.campaign.grid import grid_of
from shadowtime.replayer.campaign.logs import find_logs
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.synthetic.generator import generate

FILE = """
name = "ceilings"
title = "A policy that knows run times, beside one that does not"
logs = ["small.swf@8"]
policies = ["easy", { label = "ceiling", spec = "easy", requests = "actual" }]
"""


def test_a_policy_may_know_what_others_do_not(tmp_path: Path) -> None:
    write_swf(tmp_path / "small.swf", *generate(jobs=50, processors=8, seed=1, load=4.0))
    (tmp_path / "ceilings.toml").write_text(FILE)
    campaign = read_campaign(tmp_path / "ceilings.toml")
    plain, ceiling = grid_of(campaign, find_logs(campaign, tmp_path))
    assert (plain.label, plain.log.requests) == ("easy", "as-logged")
    assert (ceiling.label, ceiling.log.requests) == ("ceiling", "actual")
    assert plain.digest != ceiling.digest
