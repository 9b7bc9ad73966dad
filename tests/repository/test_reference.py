"""The pages of docs/reference/ are what the code says today, and so is what shells complete."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shadowtime.completion import SCRIPTS, SHELLS
from shadowtime.completion_scripts import script
from shadowtime.shared.cli.paths import ROOT

WRITTEN = "run: .venv/bin/python docs/generate.py"

sys.path.append(str(ROOT / "docs"))
GENERATE: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate.py"))
PAGES: dict[str, str] = GENERATE["pages"]()

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
function=$(complete -p shadowtime | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function; echo "${COMPREPLY[*]}"
"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_as_generated(name: str) -> None:
    assert (ROOT / "docs" / "reference" / name).read_text() == PAGES[name], WRITTEN


def test_the_phases_of_a_run_are_as_generated() -> None:
    assert (ROOT / "docs" / "architecture.md").read_text() == GENERATE["architecture"](), WRITTEN


def test_the_map_of_packages_has_each_of_them_once() -> None:
    assert PAGES["packages.md"].count("| `services/scheduler/policies` |") == 1


def test_there_are_no_other_pages() -> None:
    assert {path.name for path in (ROOT / "docs" / "reference").iterdir()} == set(PAGES)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_checkout_makes_what_a_shell_completes(shell: str) -> None:
    command = [sys.executable, "-m", "shadowtime", "completion", shell]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == script(shell)
    assert not SCRIPTS.exists()


def test_without_its_library_a_checkout_says_what_to_do() -> None:
    program = (
        "import sys; sys.modules['shtab'] = None; from shadowtime.__main__ import main;"
        "sys.argv = ['shadowtime', 'completion', 'bash']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: shtab is missing, with which a checkout makes its completions: pip install")


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completions") / "shadowtime.bash"
    file.write_text(script("bash"))
    return file


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("repl", "replay"),
        ("replay --poli", "--policy"),
        ("replay --policy easy-", "easy-sjbf"),
        ("replay --filter a", "align"),
        ("list pol", "policies"),
        ("list ord", "orders"),
        ("serve sched", "scheduler"),
        ("stack sta", "status"),
    ],
)
def test_bash_completes(bash_script: Path, typed: str, offered: str) -> None:
    command = ["bash", "-c", COMPLETE, "bash", str(bash_script), "shadowtime", *typed.split(" ")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == offered
