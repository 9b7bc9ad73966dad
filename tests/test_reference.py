"""The pages of docs/reference/, and what shells complete, are what the code says today."""

import runpy
import shutil
import subprocess
import sys
from typing import Any

import pytest

from shadowtime.completion import SCRIPTS
from shadowtime.shared.paths import ROOT

WRITTEN = "run: .venv/bin/python docs/generate.py"

sys.path.append(str(ROOT / "docs"))
GENERATE: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate.py"))
PAGES: dict[str, str] = GENERATE["pages"]()
COMPLETIONS: dict[str, str] = GENERATE["scripts"]()

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
function=$(complete -p shadowtime | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function; echo "${COMPREPLY[*]}"
"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_as_generated(name: str) -> None:
    assert (ROOT / "docs" / "reference" / name).read_text() == PAGES[name], WRITTEN


def test_there_are_no_other_pages() -> None:
    assert {path.name for path in (ROOT / "docs" / "reference").iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", COMPLETIONS)
def test_what_a_shell_completes_is_as_generated(name: str) -> None:
    shell = name.removeprefix("shadowtime.")
    command = [sys.executable, "-m", "shadowtime", "completion", shell]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == (SCRIPTS / name).read_text() == COMPLETIONS[name], WRITTEN


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("repl", "replay"),
        ("replay --poli", "--policy"),
        ("replay --policy easy-", "easy-sjbf"),
        ("replay --filter a", "align"),
        ("list pol", "policies"),
        ("serve sched", "scheduler"),
        ("stack sta", "status"),
    ],
)
def test_bash_completes(typed: str, offered: str) -> None:
    command = ["bash", "-c", COMPLETE, "bash", str(SCRIPTS / "shadowtime.bash"), "shadowtime", *typed.split(" ")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == offered
