"""What is installed is what was locked: wheels, each by its hash, and nothing is built on the way."""

import ast
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from tests.repository.tree import PRODUCT, files, name, nodes
from tests.support.patience import PATIENCE

LOCKS = [ROOT / f"requirements{part}.lock" for part in ("", "-dev", "-mutants", "-jupyterhub")]
WHEELS = "--only-binary :all:"

lock = pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)


def packages(path: Path) -> dict[tuple[str, str], set[str]]:
    """Return the hashes of each package of a lock file, by its name and its exact version."""
    blocks = re.findall(r"^([\w.-]+)==([^\s;]+).*\n((?: .*\n)*)", path.read_text(), flags=re.MULTILINE)
    return {(name, version): set(re.findall("--hash=sha256:([0-9a-f]{64})", rest)) for name, version, rest in blocks}


@lock
def test_finding_17_every_requirement_has_hashes_and_none_is_built(path: Path) -> None:
    locked = packages(path)
    assert len(locked) > 20
    assert all(locked.values())
    assert WHEELS in path.read_text().splitlines()


def test_what_developers_have_is_what_runs() -> None:
    runs, developed, *_ = map(packages, LOCKS)
    assert runs.items() <= developed.items()


def made(*targets: str) -> str:
    """Return what make would do for these targets on a fresh clone."""
    command = ["make", "--dry-run", "--always-make", *targets]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_a_first_replay_needs_no_packages_of_tests() -> None:
    assert "requirements.lock" in made("setup", "run")
    assert "requirements-dev.lock" not in made("setup", "run")
    assert "requirements-dev.lock" in made("test")


def test_finding_17_pip_takes_wheels_with_hashes_alone() -> None:
    calls = [line for line in made("setup", "check").splitlines() if "pip install" in line]
    for path in [*ROOT.glob("*/Dockerfile"), *ROOT.glob("*/*.Dockerfile"), *(ROOT / ".ci").iterdir()]:
        text = re.sub(r"\\\n\s*", " ", path.read_text())
        calls += [line for line in text.splitlines() if re.search(r"\b(pip3?|uv) +(pip +)?install\b", line)]
    assert len(calls) >= 3
    for call in calls:
        if call.endswith(" --editable ."):  # the project itself: nothing is fetched for it
            assert " --no-deps --no-build-isolation " in call, call
            continue
        assert f" {WHEELS} " in call, call
        assert " --require-hashes " in call, call


@pytest.mark.parametrize("target", ["test", "gates", "nightly", "stack"])
def test_finding_17_no_target_installs_system_packages_unasked(target: str) -> None:
    called = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (install,) = (line for line in called.splitlines() if "stack.install" in line)
    assert not {"--yes", "SHADOWTIME_APT", "CI"} & set(re.split(r"[\s=]", install.partition("#")[0]))
    assert "apt-get" not in called


def test_continuous_integration_is_asked_nothing() -> None:
    assert 'export SHADOWTIME_APT="${SHADOWTIME_APT-yes}"' in (ROOT / ".ci" / "run").read_text()


@lock
def test_finding_17_a_source_package_does_not_run_its_code(path: Path, tmp_path: Path) -> None:
    """The lock file says so itself: pip is called without an option here."""
    ran = tmp_path / "ran"
    script = f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='evil', version='1')\n".encode()
    source = tmp_path / "evil-1.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        for file, body in (("PKG-INFO", b"Metadata-Version: 2.1\nName: evil\nVersion: 1\n"), ("setup.py", script)):
            entry = tarfile.TarInfo(f"evil-1/{file}")
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    options = [line for line in path.read_text().splitlines() if line.startswith("--")]
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    wanted = tmp_path / "requirements.lock"
    wanted.write_text("\n".join([*options, f"evil==1 --hash=sha256:{digest}"]))
    command = [sys.executable, "-m", "pip", "download", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--find-links", str(tmp_path), "-r", str(wanted), "--dest", str(tmp_path / "taken")],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode != 0
    assert "No matching distribution found for evil==1" in done.stderr
    assert not ran.exists()


def bill(folder: Path) -> bytes:
    """Return the bill of materials that `make sbom` writes."""
    recipe = subprocess.run(["make", "--dry-run", "sbom"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in recipe.splitlines() if "cyclonedx-py" in line)  # `make` of another may name its folder
    _, *options = shlex.split(line)
    written = folder / options.pop()
    done = subprocess.run(
        [sys.executable, "-m", "cyclonedx_py", *options, str(written)],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return written.read_bytes()


@pytest.mark.nightly
def test_finding_17_the_bill_of_materials_names_what_is_locked(tmp_path: Path) -> None:
    """The tool validates the document against the schema of CycloneDX itself, as `--validate` says."""
    first = bill(tmp_path)
    document = json.loads(first)
    assert document["specVersion"] == "1.6"
    assert document["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    found = {}
    for part in document["components"]:
        (files,) = part["externalReferences"]
        assert part["purl"].partition("?")[0] == f"pkg:pypi/{part['name']}@{part['version']}"
        found[part["name"], part["version"]] = {each["content"] for each in files["hashes"]}
    assert found == packages(LOCKS[0])
    assert bill(tmp_path) == first


PRIVATE = re.findall(r"^\| \[?`([a-z-]+)`", (ROOT / "docs" / "private-parts.md").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("library", dict.fromkeys(PRIVATE))
def test_a_library_whose_private_parts_are_used_has_an_upper_bound(library: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    bounds = [found[1] for each in wanted if (found := re.fullmatch(rf"{library}(?:\[.*\])?([^a-z\[].*)", each))]
    assert bounds
    assert all(re.search(r"<\d|==\d", bound) for bound in bounds)


def test_the_page_of_private_parts_names_files_that_are_there() -> None:
    page = (ROOT / "docs" / "private-parts.md").read_text()
    named = set(re.findall(r"`([\w/]+\.py)`", page))
    assert len(PRIVATE) >= 10
    assert not [path for path in named if not (ROOT / path).is_file()]


KNOWN_TO_ALL = {"gettempdir", "gettempdirb", "mktemp", "TMPDIR", "/tmp", "/var/tmp", "/dev/shm"}


def test_finding_15_no_file_has_a_place_in_the_shared_temporary_directory_that_can_be_foretold() -> None:
    """`tempfile` makes folders of 0700 and files of 0600 under names of chance, which nobody can have put there."""
    found = {}
    for path in files(*PRODUCT, "stack", "dashboards"):
        documentation = {
            id(node.value)
            for node in nodes(path)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        used = set()
        for node in nodes(path):
            if isinstance(node, ast.Attribute | ast.Name):
                used.add(node.attr if isinstance(node, ast.Attribute) else node.id)
            elif isinstance(node, ast.alias):
                used.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                used |= {each for each in KNOWN_TO_ALL if node.value == each or node.value.startswith(f"{each}/")}
        if used & KNOWN_TO_ALL:
            found[name(path)] = used & KNOWN_TO_ALL
    assert found == {}, found
