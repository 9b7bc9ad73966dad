"""Plug-ins: classes that installed distributions bring are seen by commands and stages; faulty ones are one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

GOOD = """
from shadowtime.services.scheduler.policies.fcfs import Fcfs
class Mine(Fcfs):
    "Serve as it likes."
    name = "mine"
class Easy(Fcfs):
    name = "easy"
class Bare:
    name = "bare"
"""
OTHERS = """
from shadowtime.services.runtime_distribution.simple import LastTwo
from shadowtime.services.walltime_adjustment.handler import Unadjusted
from shadowtime.services.wait_bound.bounder import Unbounded
from shadowtime.replayer.simulation.machine import Machine
class Predictor(LastTwo):
    "Predict as it likes."
    name = "mine"
class Adjuster(Unadjusted):
    "Adjust as it likes."
    name = "mine"
class Bounder(Unbounded):
    "Bound as it likes."
    name = "mine"
class Origin(Machine):
    "Tell as it likes."
    name = "mine"
"""
WORKER = """
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope
from shadowtime.shared.stages.stage import StageRun
import os, sys
field, spec = sys.argv[1:3]
settings = {"policy": "easy", "runtime": "last-two", "adjustment": "none", "wait_bound": "none", field: spec}
opened = ClusterOpened(time=0, cluster="c", processors=4, **settings)
for stage in map(StageRun, STAGES):
    if len(sys.argv) > 3 and os.path.exists(f"{sys.argv[3]}/{stage.stage.name}"):
        try:
            stage.restore(open(f"{sys.argv[3]}/{stage.stage.name}", "rb").read())
            print("restored")
        except ShadowtimeError as error:
            print(f"{type(error).__name__}: {error}")
        continue
    print(repr(stage.push(Envelope(run="r", sequence=0, event=opened)).event))
    if len(sys.argv) > 3:
        open(f"{sys.argv[3]}/{stage.stage.name}", "wb").write(stage.snapshot())
print("imported", sorted(each for each in sys.modules if each.startswith("acme")))
"""
KINDS = {
    "policies": ("policy", "scheduler", "policy"),
    "predictors": ("runtime", "runtime_distribution", "run-time predictor"),
    "adjusters": ("adjustment", "walltime_adjustment", "walltime adjustment"),
    "bounders": ("wait_bound", "wait_bound", "wait bound"),
}
"""Of each group the field of `ClusterOpened`, the stage that opens it, and what messages call it."""

GROUPS = ["policies", *(pytest.param(each, marks=pytest.mark.nightly) for each in KINDS if each != "policies")]
"""All groups; those whose code is that of the first are tried in nightly."""
CLASSES = {"policies": "acme:Mine", "predictors": "acme_others:Predictor", "adjusters": "acme_others:Adjuster"}
CLASSES |= {"bounders": "acme_others:Bounder", "sources": "acme_others:Origin"}
SMALL = ("replay", "--jobs", "20", "--policy")


def install(folder: Path, name: str, points: str, group: str = "policies") -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[shadowtime.{group}]\n{points}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "acme.py").write_text(GOOD)
    (tmp_path / "acme_broken.py").write_text("raise RuntimeError('out of order')")
    install(tmp_path, "acme", "mine = acme:Mine\neasy = acme:Easy\nbare = acme:Bare\nbroken = acme_broken:Any")
    return tmp_path


@pytest.fixture
def every_kind(tmp_path: Path) -> Path:
    """A plug-in named `mine` of each kind."""
    (tmp_path / "acme.py").write_text(GOOD)
    (tmp_path / "acme_others.py").write_text(OTHERS)
    for group, value in CLASSES.items():
        install(tmp_path, f"acme_{group}", f"mine = {value}", group)
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


LEAVING = """
import sys
from pydantic import field_validator
from shadowtime.services.scheduler.policies.fcfs import Fcfs
class Leaves(Fcfs):
    "Leave as it likes."
    name = "leaves"
    def schedule(self, *state):
        sys.exit(0)
class Settings(Fcfs.Settings):
    @field_validator("forecast")
    @classmethod
    def fails(cls, value):
        raise RuntimeError("out of order")
class Fails(Fcfs):
    "Fail as it likes."
    name = "fails"
    Settings = Settings
"""


@pytest.mark.parametrize(
    ("policy", "why"),
    [("leaves", "SystemExit: 0"), ("fails:forecast=yes", "its settings failed: RuntimeError: out of order")],
)
def test_a_policy_that_leaves_or_whose_settings_fail_is_named(tmp_path: Path, policy: str, why: str) -> None:
    (tmp_path / "acme.py").write_text(LEAVING)
    install(tmp_path, "acme", "leaves = acme:Leaves\nfails = acme:Fails")
    done = command(tmp_path, *SMALL, policy)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_an_installed_policy_is_replayed_listed_and_run_by_a_stage(folder: Path) -> None:
    done = command(folder, *SMALL, "mine")
    assert done.returncode == 0, done.stderr
    listed = command(folder, "list", "policies", "mine")
    assert "Serve as it likes." in listed.stdout
    opened = ran(folder, "-c", WORKER, "policy", "mine").stdout
    assert opened.count("policy='mine") == 5
    assert "Rejected" not in opened


def test_a_plug_in_that_others_can_change_is_not_imported(folder: Path) -> None:
    for place, mode in ((folder / "acme.py", 0o666), (folder, 0o777)):
        before = place.stat().st_mode
        place.chmod(mode)
        done = command(folder, *SMALL, "mine")
        place.chmod(before)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert f"UntrustedFile: other users can change {place} (its mode is {mode:04o}); run: chmod go-w" in done.stderr


def test_faulty_plug_ins_are_named_and_stop_nobody_else(folder: Path) -> None:
    listed = command(folder, "list", "policies")
    assert listed.returncode == 0
    assert listed.stderr.splitlines() == [
        "warning: policy 'bare' of acme 1.0 (entry point bare = acme:Bare) is not a valid policy: its `Settings` is "
        "not a subclass of PolicySettings",
        "warning: policy 'broken' of acme 1.0 (entry point broken = acme_broken:Any) cannot be imported: RuntimeError: "
        "out of order",
        "warning: policy 'easy' exists twice: shadowtime itself and acme 1.0 (entry point easy = acme:Easy)",
    ]
    done = command(folder, *SMALL, "broken")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "acme 1.0 (entry point broken" in done.stderr
    assert "acme 1.0 (entry point broken" in ran(folder, "-c", WORKER, "policy", "broken").stdout


def test_a_plug_in_whose_settings_make_no_schema_is_named_where_all_are_listed(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(
        "from shadowtime.services.scheduler.policies.fcfs import Fcfs\n"
        "class Settings(Fcfs.Settings):\n"
        "    odd: type('Odd', (), {}) = None\n"
        "class Odd(Fcfs):\n"
        "    name, Settings = 'odd', Settings\n"
    )
    install(tmp_path, "acme", "odd = acme:Odd")
    told = command(tmp_path, "list", "policies").stderr
    assert "policy 'odd' of acme 1.0 (entry point odd = acme:Odd) cannot be imported: PydanticSchemaGeneration" in told


def test_two_plug_ins_of_one_name_are_an_error_that_names_both(folder: Path) -> None:
    install(folder, "zenith", "mine = acme:Mine")
    done = command(folder, *SMALL, "mine")
    assert done.returncode == 2
    assert "acme 1.0" in done.stderr
    assert "zenith 1.0" in done.stderr


def test_what_nobody_names_is_neither_read_nor_imported(every_kind: Path) -> None:
    script = (
        "import sys; sys.argv = ['shadowtime', 'replay', '--jobs', '20', '--policy', 'easy']; "
        "from shadowtime.__main__ import main; from shadowtime.replayer.options import KINDS\n"
        "from shadowtime.replayer.presentation.catalogue import classes_of\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([classes_of(each)._points for each in KINDS], 'acme' in sys.modules, 'acme_others' in sys.modules)"
    )
    assert ran(every_kind, "-c", script).stdout.splitlines()[-1] == "[None, None, None, None, None] False False"


@pytest.mark.parametrize("group", GROUPS)
def test_a_plug_in_of_each_kind_is_opened_by_its_stage_and_no_other_imports_it(every_kind: Path, group: str) -> None:
    field, _, kind = KINDS[group]
    opened = ran(every_kind, "-c", WORKER, field, "mine")
    assert opened.stdout.count(f"{field}='mine'") == 5, opened.stderr
    done = ran(every_kind, "-c", WORKER, field, "mien")
    assert done.stdout.count("Rejected(") == 1
    assert f"unknown {kind} 'mien'; did you mean 'mine'? known: " in done.stdout
    assert "mine" in done.stdout.partition("known: ")[2]
    assert done.stdout.splitlines()[-1] == "imported []", "a name that nobody knows imports what others wrote"


@pytest.mark.parametrize("group", GROUPS)
def test_a_run_under_a_plug_in_that_is_gone_is_told_by_its_stage(every_kind: Path, group: str, tmp_path: Path) -> None:
    field, stage, kind = KINDS[group]
    states = tmp_path / "states"
    states.mkdir()
    ran(every_kind, "-c", WORKER, field, "mine", str(states))
    assert ran(every_kind, "-c", WORKER, field, "mine", str(states)).stdout.count("restored") == 5
    (every_kind / f"acme_{group}-1.0.dist-info" / "entry_points.txt").unlink()
    told = ran(every_kind, "-c", WORKER, field, "mine", str(states)).stdout.splitlines()
    gone = f"SnapshotMismatch: {stage}: the run cannot be opened here: unknown {kind} 'mine'; known: "
    assert [line.startswith(gone) for line in told].count(True) == 1
    assert told.count("restored") == 4
    assert f"unknown {kind} 'mine'; known: " in ran(every_kind, "-c", WORKER, field, "mine").stdout


@pytest.mark.parametrize("group", GROUPS)
def test_a_plug_in_that_cannot_be_imported_is_a_rejection_that_names_it(every_kind: Path, group: str) -> None:
    field, _, kind = KINDS[group]
    (every_kind / "acme.py").write_text("raise RuntimeError('out of order')")
    (every_kind / "acme_others.py").write_text("import acme")
    told = ran(every_kind, "-c", WORKER, field, "mine").stdout
    assert told.count("Rejected(") == 1
    assert f"{kind} 'mine' of acme_{group} 1.0 (entry point mine = {CLASSES[group]}) cannot be imported" in told


def test_a_source_that_nobody_knows_is_named_with_those_that_are_there(every_kind: Path) -> None:
    done = command(every_kind, "replay", "--jobs", "20", "--mode", "mien")
    assert done.returncode == 2
    assert "'mien' is not one of 'closed', 'mine', 'recorded'" in " ".join(done.stderr.split())
    assert command(every_kind, "replay", "--jobs", "20", "--mode", "mine").returncode == 0


def test_doctor_tells_plug_ins_and_what_is_wrong_with_them(folder: Path, every_kind: Path) -> None:
    told = command(folder, "doctor")
    assert told.returncode == 1
    section = " ".join(told.stdout.partition("\nplug-ins\n")[2].partition("\n\n")[0].split())
    assert "ok predictors mine" in section
    assert "no policies policy 'bare' of acme 1.0 (entry point bare = acme:Bare) is not a valid policy" in section
    assert "no policies policy 'mine' exists twice: acme 1.0" in section


FORMAT = """
from shadowtime.shared.accounting import AccountingRows

NAME = "ours"

def begins(head):
    return head.startswith(b"ours,")

def read(path, reading):
    rows = AccountingRows()
    numbers = {"job_number": [7], "submit": [0], "start": [5], "end": [65], "limit": [600], "processors": [4]}
    rows.extend([2], numbers | {"status": [1]}, {"user": ["eve"]})
    return rows
"""


def test_a_log_format_is_read_and_told_by_doctor(tmp_path: Path) -> None:
    (tmp_path / "acme_format.py").write_text(FORMAT)
    (tmp_path / "acme_broken.py").write_text("raise RuntimeError('out of order')")
    install(tmp_path, "acme", "ours = acme_format\ntheirs = acme_broken", "log_formats")
    log = tmp_path / "jobs.csv"
    log.write_text("ours,of,acme\n7\n")
    written = tmp_path / "out.swf"
    done = command(tmp_path, "convert", str(log), str(written))
    assert done.returncode == 0, done.stderr
    assert written.read_text().splitlines()[-1].split()[:4] == ["7", "0", "5", "60"]
    section = " ".join(command(tmp_path, "doctor").stdout.partition("\nplug-ins\n")[2].partition("\n\n")[0].split())
    assert "ok log formats ours" in section
    assert "no log formats log format 'theirs' of acme 1.0" in section
