"""Cells of a campaign whose plug-in changes."""

import os
import subprocess
import sys
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from tests.support.campaign_files import GOOD, write
from tests.support.patience import PATIENCE

PLUG_IN = """
from shadowtime.services.scheduler.policies.fcfs import Fcfs
class Mine(Fcfs):
    "Serve as it likes."
    name = "mine"
"""


DIGEST = """
import sys
from pathlib import Path
from shadowtime.replayer.campaign.file import read_campaign
from shadowtime.replayer.campaign.grid import grid_of
from shadowtime.replayer.campaign.logs import CampaignLog
log = CampaignLog("KTH", "KTH", "/nowhere", "0" * 64, None, "drop", "as-logged", None)
(mine, easy) = grid_of(read_campaign(Path("c.toml")), [log])
print(mine.digest, easy.digest)
"""


def test_a_plug_in_whose_code_changed_is_another_cell(tmp_path: Path) -> None:
    """Whoever works on a policy carries the same campaign out again, and has not given it another version."""
    site = tmp_path / "site"
    for folder in ("acme", "acme-1.0.dist-info"):
        (site / folder).mkdir(parents=True)
    (site / "acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (site / "acme-1.0.dist-info" / "entry_points.txt").write_text("[shadowtime.policies]\nmine = acme.policy:Mine\n")
    (site / "acme" / "policy.py").write_text(PLUG_IN)
    write(tmp_path, GOOD + 'policies = ["mine", "easy"]\n')
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}

    def digests() -> list[str]:
        call = [sys.executable, "-c", DIGEST]
        return subprocess.check_output(call, cwd=tmp_path, env=environment, text=True, timeout=PATIENCE).split()

    before = digests()
    assert digests() == before
    (site / "acme" / "weights.json").write_text("[1]")
    after = digests()
    assert after[0] != before[0]
    assert after[1] == before[1]
