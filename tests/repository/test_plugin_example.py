"""The template of a plug-in: built, installed, listed, replayed, tried by its own tests, and obeyed by workers."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.embedded import embedded
from tests.support.patience import PATIENCE
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
ARGUMENTS = ("--jobs", "150", "--policy", "first-fit:patience=3600,runtime=usual-share(weight=0.3)")


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template, as someone who copied the folder has it."""
    copied = tmp_path_factory.mktemp("plug-in") / "source"
    return shutil.copytree(ROOT / "docs" / "plugin-example", copied, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    run(*PIP, "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", "../dist", ".", cwd=source)
    (built,) = (source.parent / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path) -> Path:
    site = wheel.parent.parent / "site"
    run(*PIP, "install", "--no-index", "--no-deps", "--target", str(site), str(wheel), cwd=wheel.parent)
    return site


@pytest.fixture(autouse=True)
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(ROOT)]))


def test_it_is_a_distribution_of_its_own(wheel: Path) -> None:
    folders = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert folders == {"shadowtime_example", "shadowtime_example-1.0.dist-info"}


def blocks(language: str) -> list[str]:
    """Return the code of the page about plug-ins that is in a language."""
    page = (ROOT / "docs" / "plugins.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_page_shows_what_the_template_has(source: Path) -> None:
    assert blocks("python")[2:] == [(source / "shadowtime_example" / "usual_share.py").read_text()]
    (settings,) = blocks("toml")
    assert settings in (source / "pyproject.toml").read_text()
    suite, _, order, _ = blocks("py")  # the others are no part of the template
    assert suite in (source / "tests/test_plug_ins.py").read_text()
    assert order in (source / "shadowtime_example/tallest.py").read_text()


@pytest.mark.parametrize(
    "command",
    [
        *re.findall(r"^    shadowtime (.*)", (ROOT / "docs/plugin-example/README.md").read_text(), re.MULTILINE),
        *(line.removeprefix("shadowtime ") for block in blocks("text") for line in block.splitlines()),
    ],
)
def test_commands_of_its_page_and_readme_run(command: str, tmp_path: Path) -> None:
    few = ("--jobs", "150") if command.startswith("replay") else ()
    told = run(sys.executable, "-m", "shadowtime", *shlex.split(command), *few, cwd=tmp_path)
    named = re.search(r"first-fit|usual-share|tallest", command)
    assert named is not None
    assert named[0] in "".join(told.split())


def test_its_own_tests_pass(source: Path) -> None:
    told = run(sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests", cwd=source)
    assert int(told.splitlines()[-1].split(" passed")[0]) > 50


def test_workers_decide_by_it_byte_for_byte(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    with Workers(kafka, redis_server, tmp_path, typed=True) as workers:
        workers.finish(workers.replay("plug-in", tmp_path / "kafka.jsonl", *ARGUMENTS))
        decisions = (tmp_path / "kafka.jsonl").read_bytes()
    assert decisions == embedded(*ARGUMENTS), workers.logs()
    assert b'"policy":"first-fit(patience=3600)"' in decisions
