"""What is installed: one package, `shadowtime`, light without its extras, that writes where it is called."""

import os
import shutil
import signal
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from shadowtime.__main__ import COMMANDS
from shadowtime.completion import SHELLS
from shadowtime.completion_scripts import script
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.shared.cli.paths import ROOT
from tests.support.patience import PATIENCE

WITHOUT_STREAM = """
import sys
from itertools import chain
from shadowtime.shared.cli.start_up import EXTRAS
lacking = [*chain.from_iterable(EXTRAS.values()), "grafana_client"]
sys.modules.update(dict.fromkeys(lacking))  # None in the place of a module: it cannot be imported
from shadowtime.__main__ import main
sys.argv[0] = "shadowtime"
main()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE)
    (built,) = folder.glob("*.whl")
    return built


def test_a_build_is_reproducible_bit_for_bit(tmp_path: Path) -> None:
    """Two copies of the tree differ in place, times, rights and what lies beside the sources."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    built = []
    for name, mode in (("one", 0o644), ("another-place", 0o600)):
        tree = tmp_path / name
        for line in listed.splitlines():
            (tree / line).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / line, tree / line, follow_symlinks=False)
            if not (tree / line).is_symlink():
                (tree / line).chmod(mode)
                os.utime(tree / line, (mode * 1_000_000,) * 2)
        if mode == 0o600:
            (tree / "shared" / "__pycache__").mkdir()
            (tree / "shared" / "__pycache__" / "left.pyc").write_bytes(b"left")
        dist = tmp_path / f"dist-{name}"
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(dist)]
        environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": str(mode)}
        subprocess.run(command, cwd=tree, check=True, capture_output=True, timeout=PATIENCE, env=environment)
        built.append({path.name: sha256(path.read_bytes()).hexdigest() for path in dist.iterdir()})
    assert built[0] == built[1]
    assert sorted(path.rpartition(".")[2] for path in built[0]) == ["gz", "whl"]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package alone, unpacked as an installer does, and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def called(
    installed: Path,
    home: Path,
    *arguments: str,
    interpreter: tuple[str, ...] = (),
    compiled: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Call the command as installed, with the core's libraries alone; to compile kernels takes it minutes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHADOWTIME_")}
    if not compiled:
        environment["NUMBA_DISABLE_JIT"] = "1"
    return subprocess.run(
        [sys.executable, *interpreter, "-c", WITHOUT_STREAM, *arguments],
        cwd=home,
        env=environment | {"PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(home / "cache"), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_nothing_but_the_package_lands_in_site_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "shadowtime",
        f"{wheel.name[: wheel.name.index('-py3')]}.dist-info",
    }
    assert len(names) == len(set(names))


def test_the_wheel_has_every_file_of_the_folders_and_nothing_compiled(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "services", "shared", "replayer", "dashboards", "stack", "campaigns", "shadowtime/testing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    packed = {name.removeprefix("shadowtime/") for name in zipfile.ZipFile(wheel).namelist()}
    assert {name.removeprefix("shadowtime/") for name in listed.stdout.split()} <= packed
    assert not [name for name in packed if name.endswith((".pyc", ".nbc", ".nbi"))]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_wheel_has_what_shells_complete(installed: Path, tmp_path: Path, shell: str) -> None:
    done = called(installed, tmp_path, "completion", shell, interpreter=("-X", "importtime"))
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout == script(shell) == (installed / "shadowtime" / "completions" / f"shadowtime.{shell}").read_text()
    )
    assert "shtab" not in {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


@pytest.mark.archive  # it compiles every kernel anew
def test_replays_and_reports_need_neither_kafka_nor_grafana(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    before = {path: path.stat().st_mtime_ns for path in installed.rglob("*.py")}
    typed = "replay --jobs 40 --policy easy --policy best --report r.html"
    done = called(installed, home, *typed.split(), compiled=True)
    assert done.returncode == 0, done.stderr
    assert "best" in done.stdout
    assert sorted(path.name for path in home.iterdir()) == ["cache", "r.html"]
    assert {path: path.stat().st_mtime_ns for path in installed.rglob("*.py")} == before
    assert not list(installed.rglob("*.nbc"))
    assert list((home / "cache" / "shadowtime" / "kernels").rglob("*.nbc"))


@pytest.mark.archive  # it compiles every kernel anew
def test_a_wheel_with_kernels_compiles_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = os.environ | {"SHADOWTIME_KERNELS": "yes"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE, env=environment)
    (built,) = tmp_path.glob("*-linux_x86_64.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path / "installed")
    typed = "replay --jobs 40 --policy easy --policy best --report r.html"
    done = called(tmp_path / "installed", tmp_path, *typed.split(), compiled=True)
    assert (done.returncode, "compiling" in done.stderr) == (0, False), done.stderr
    assert not list((tmp_path / "cache").rglob("*.nbc"))


@pytest.mark.parametrize(
    "arguments",
    [["watch", "decisions"], ["serve", "scheduler"], ["replay", "--transport", "kafka"], ["ask", "--cluster", "k"]],
    ids=" ".join,
)
def test_what_takes_the_stream_names_the_extra(installed: Path, tmp_path: Path, arguments: list[str]) -> None:
    done = called(installed, tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: this command needs ")
    assert done.stderr.endswith("pip install 'shadowtime[stream]'\n")


@pytest.mark.parametrize("option", ["--results", "--schedule"])
def test_parquet_without_its_library_names_the_extra_before_the_work(
    installed: Path, tmp_path: Path, option: str
) -> None:
    done = called(installed, tmp_path, "replay", option, "out.parquet")
    assert (done.returncode, done.stderr) == (
        2,
        "error: this command needs pyarrow, which is not installed: pip install 'shadowtime[frames]'\n",
    )
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    ("typed", "missing"),
    [
        ("campaign nope.toml", "nope.toml: "),
        ("campaign mine.toml", "nope.swf"),
        ("replay nope.swf --results out.parquet", "nope.swf: "),
        ("convert nope.swf out.parquet", "nope.swf: "),
    ],
)
def test_a_missing_file_is_told_before_a_missing_extra(
    installed: Path, tmp_path: Path, typed: str, missing: str
) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\ntitle = "Mine"\nlogs = ["nope.swf"]\npolicies = ["easy"]\n')
    done = called(installed, tmp_path, *typed.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert missing in done.stderr
    assert "pip install" not in done.stderr


def test_a_campaign_names_the_extra_that_is_called_so(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\ntitle = "Mine"\nlogs = ["log.swf"]\npolicies = ["easy"]\n')
    write_swf(tmp_path / "log.swf", *generate(jobs=20, processors=8, seed=1))
    done = called(installed, tmp_path, "campaign", "mine.toml")
    told = "error: this command needs pyarrow, which is not installed: pip install 'shadowtime[campaign]'\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_a_missing_extra_is_named_to_whoever_has_ctrl_c_ignored(installed: Path, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = called(installed, tmp_path, "watch", "decisions")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_help_names_every_command_at_once() -> None:
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "shadowtime", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(f"\n  {name} " in told.stdout for name in COMMANDS)
    assert all(len(line) <= 80 for line in told.stdout.splitlines())
    imported = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert not imported & {"numpy", "numba", "pydantic", "typer"}


WITHIN = ("stack up", "stack down", "stack status", "serve scheduler", "serve metrics", "dashboards push")
HEAVY = {"asyncio", "numba", "numpy", "pydantic", "scipy", "ssl"}
"""What help need not: with them it takes up to 3 s of processor time, without some 0.2."""


@pytest.mark.few(12)
@pytest.mark.parametrize("name", [*sorted(COMMANDS), *WITHIN])
def test_every_command_of_a_plain_installation_has_help_at_once(installed: Path, tmp_path: Path, name: str) -> None:
    done = called(installed, tmp_path, *name.split(), "--help", interpreter=("-X", "importtime"))
    assert done.returncode == 0, done.stderr
    assert f"shadowtime {name}" in done.stdout
    assert "<bool>" not in done.stdout
    assert not HEAVY & {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_the_doctor_of_a_plain_installation_tells_what_to_type_for_each_extra(installed: Path, tmp_path: Path) -> None:
    done = called(installed, tmp_path, "doctor")
    assert not done.stderr
    assert done.stdout.startswith("shadowtime ")
    for section in ("installed", "servers of the settings", "programs for", "ports of"):
        assert f"\n{section}" in done.stdout
    assert "cannot be checked without " in done.stdout
    assert "pip install 'shadowtime[stream]'" in done.stdout


def test_an_unknown_command_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shadowtime", "relpay"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown command 'relpay'; did you mean 'replay'? known: replay, ")
    assert done.stderr.count("\n") == 1
