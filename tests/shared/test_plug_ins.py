"""Plug-ins: classes that installed distributions bring are seen by commands and stages; faulty ones are one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

GOOD = """
from shadowtime.services.scheduler.fcfs import Fcfs
class Mine(Fcfs):
    "Serve as it likes."
    name = "mine"
class Easy(Fcfs):
    name = "easy"
class Bare:
    name = "bare"
"""
WORKER = """
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.events import ClusterOpened, Envelope
from shadowtime.shared.stage import StageRun
import sys
stage = StageRun(next(each for each in STAGES if each.name == "scheduler"))
opened = ClusterOpened(time=0, cluster="c", processors=4, policy=sys.argv[1])
print(repr(stage.push(Envelope(run="r", sequence=0, event=opened)).event))
"""
SMALL = ("replay", "--jobs", "20", "--policy")


def install(folder: Path, name: str, points: str) -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[shadowtime.policies]\n{points}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "acme.py").write_text(GOOD)
    (tmp_path / "acme_broken.py").write_text("raise RuntimeError('out of order')")
    install(tmp_path, "acme", "mine = acme:Mine\neasy = acme:Easy\nbare = acme:Bare\nbroken = acme_broken:Any")
    return tmp_path


def ran(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def command(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return ran(folder, "-m", "shadowtime", *arguments)


def test_an_installed_policy_is_replayed_listed_and_run_by_a_stage(folder: Path) -> None:
    done = command(folder, *SMALL, "mine")
    assert done.returncode == 0, done.stderr
    listed = command(folder, "list", "policies", "mine")
    assert "Serve as it likes." in listed.stdout
    assert "policy='mine" in ran(folder, "-c", WORKER, "mine").stdout
    assert "Rejected" not in repr(ran(folder, "-c", WORKER, "mine").stdout)


def test_faulty_plug_ins_are_named_and_stop_nobody_else(folder: Path) -> None:
    listed = command(folder, "list", "policies")
    assert listed.returncode == 0
    assert listed.stderr.splitlines() == [
        "warning: policy 'bare' of acme 1.0 (entry point bare = acme:Bare) is no policy: its `Settings` is no subclass "
        "of PolicySettings",
        "warning: policy 'broken' of acme 1.0 (entry point broken = acme_broken:Any) cannot be imported: RuntimeError: "
        "out of order",
        "warning: policy 'easy' is there twice: shadowtime itself and acme 1.0 (entry point easy = acme:Easy)",
    ]
    done = command(folder, *SMALL, "broken")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "acme 1.0 (entry point broken" in done.stderr
    assert "acme 1.0 (entry point broken" in ran(folder, "-c", WORKER, "broken").stdout


def test_two_plug_ins_of_one_name_are_an_error_that_names_both(folder: Path) -> None:
    install(folder, "zenith", "mine = acme:Mine")
    done = command(folder, *SMALL, "mine")
    assert done.returncode == 2
    assert "acme 1.0" in done.stderr
    assert "zenith 1.0" in done.stderr


def test_what_nobody_names_is_neither_read_nor_imported(folder: Path) -> None:
    script = (
        "import sys; from shadowtime.services.catalogue import configure; configure('easy'); "
        "from shadowtime.services.scheduler.policies import POLICIES; "
        "print(POLICIES.classes['easy'].__module__, POLICIES.classes._points, 'acme' in sys.modules)"
    )
    assert ran(folder, "-c", script).stdout.split() == ["shadowtime.services.scheduler.easy", "None", "False"]
