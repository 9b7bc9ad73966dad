"""Where no Docker engine can be had, its tests skip for all to see; where one is promised, they fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE

TEST = "tests/integration/stack/test_compose_engine.py::test_everything_is_healthy_after_one_command"


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ({}, "1 skipped"),
        pytest.param({"SHADOWTIME_ENGINE": "own"}, "1 skipped", marks=pytest.mark.nightly),
        pytest.param({"CI": "true"}, "1 skipped", marks=pytest.mark.nightly),
        pytest.param({"CI": "true", "SHADOWTIME_ENGINE": "own"}, "1 error", marks=pytest.mark.nightly),
        ({"SHADOWTIME_ENGINE": "required"}, "1 error"),
    ],
)
def test_without_an_engine(tmp_path: Path, told: dict[str, str], outcome: str) -> None:
    for name in ("bash", "dirname", "mkdir", "id", "sed"):  # a machine without docker and without apt-get
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "SHADOWTIME_ENGINE")}
    (tmp_path / "env").symlink_to("/usr/bin/env")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", TEST],
        cwd=ROOT,
        env=kept | told | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert outcome in done.stdout.splitlines()[-1], done.stdout
    assert "engine" in done.stdout


def test_missing_jars_are_named_with_what_brings_them(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "tests" / "integration" / "stack" / "engine" / "engine.sh", "images", tmp_path / "engine"],
        env=os.environ | {"SHADOWTIME_SERVERS": str(tmp_path / "servers")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert f"needs Kafka's jars in {tmp_path / 'servers'}/kafka-" in done.stderr
    assert "run shadowtime stack install" in done.stderr
