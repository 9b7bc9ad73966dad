"""What is installed is what was locked: wheels, each by its hash, and nothing is built on the way."""

import ast
import hashlib
import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from shadowtime.shared.paths import ROOT
from shadowtime.stack.lock_file import read_lock
from shadowtime.stack.server import ServerError
from tests.patience import PATIENCE
from tests.test_architecture import PRODUCT, files, name

LOCKS = [ROOT / "requirements.lock", ROOT / "requirements-dev.lock"]
WHEELS = "--only-binary :all:"

lock = pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)


@lock
def test_finding_17_every_requirement_has_hashes_and_none_is_built(path: Path) -> None:
    packages = read_lock(path)
    assert len(packages) > 40
    assert all(package.hashes for package in packages)
    assert WHEELS in path.read_text().splitlines()


def test_what_developers_have_is_what_runs() -> None:
    runs, developed = ({(each.name, each.version): each.hashes for each in read_lock(path)} for path in LOCKS)
    assert runs.items() <= developed.items()


def test_finding_17_pip_takes_wheels_with_hashes_alone() -> None:
    setup = subprocess.run(
        ["make", "--dry-run", "--always-make", "setup"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    calls = [line for line in setup.splitlines() if "pip install" in line]
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a==1\n    # via b\n", "a has no hash"),
        (f"a>=1 \\\n    --hash=sha256:{'0' * 64}\n", "a has no exact version"),
        (f"a==1.* \\\n    --hash=sha256:{'0' * 64}\n", "a has no exact version"),
        ("--index-url https://elsewhere\n", "--index-url https://elsewhere"),
        ("-e .\n", "-e ."),
    ],
)
def test_a_lock_file_that_is_none_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "requirements.lock"
    path.write_text(text)
    with pytest.raises(ServerError, match=rf"{re.escape(str(path))}: .*{re.escape(told)}"):
        read_lock(path)


KNOWN_TO_ALL = {"gettempdir", "gettempdirb", "mktemp", "TMPDIR", "/tmp", "/var/tmp", "/dev/shm"}


def test_finding_15_no_file_has_a_place_in_the_shared_temporary_directory_that_can_be_foretold() -> None:
    """`tempfile` makes folders of 0700 and files of 0600 under names of chance, which nobody can have put there."""
    found = {}
    for path in files(*PRODUCT, "stack", "dashboards"):
        tree = ast.parse(path.read_text())
        documentation = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        used = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Name):
                used.add(node.attr if isinstance(node, ast.Attribute) else node.id)
            elif isinstance(node, ast.alias):
                used.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                used |= {each for each in KNOWN_TO_ALL if node.value == each or node.value.startswith(f"{each}/")}
        if used & KNOWN_TO_ALL:
            found[name(path)] = used & KNOWN_TO_ALL
    assert found == {}, found
