"""`shadowtime compare`: the policies worth comparing, and a page."""

import json
import os
import subprocess
import sys
from pathlib import Path

from shadowtime.replayer.commands.compare import CHOICES
from tests.support.patience import PATIENCE


def compare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shadowtime", "compare", *arguments]
    environment = os.environ | {"COLUMNS": "80"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_it_compares_what_is_worth_comparing_and_writes_a_page(tmp_path: Path) -> None:
    done = compare(tmp_path, "--jobs", "100", "--json", "scores.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "scores.json").read_text())["policies"]
    assert [row["policy"] for row in rows] == CHOICES["policy"]
    page = (tmp_path / "comparison.html").read_text()
    assert "<h1>Policies compared" in page
    assert "<pre tabindex=0>shadowtime compare --jobs 100 --json scores.json</pre>" in page, "it repeats the page"
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_what_is_named_counts(tmp_path: Path) -> None:
    done = compare(tmp_path, "--jobs", "50", "--policy", "easy", "--report", "mine.html", "--json", "scores.json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads((tmp_path / "scores.json").read_text())["policies"]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"mine.html", "scores.json"}


def test_an_option_that_its_page_rules_out_is_unknown(tmp_path: Path) -> None:
    done = compare(tmp_path, "--in-pieces")
    assert done.returncode == 2
    assert done.stderr == "error: no such option: --in-pieces; see shadowtime compare --help\n"
