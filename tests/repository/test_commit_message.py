"""The hook that `make setup` installs: which messages it lets through, and what it leaves alone."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT

HOOK = ROOT / ".ci" / "commit-msg"
OURS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
OURS |= {f"GIT_{who}_{what}": f"{what}@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(command, cwd=folder, env=kept | OURS, capture_output=True, text=True, check=False)


def install(folder: Path) -> subprocess.CompletedProcess[str]:
    done = run(folder, ".ci/commit-msg", "--install")
    assert done.returncode == 0, done.stderr
    return done


def commit(folder: Path, message: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "git", "commit", "--quiet", "--allow-empty", "--message", message)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the hook, which is no checkout."""
    (tmp_path / ".ci").mkdir()
    shutil.copy2(HOOK, tmp_path / ".ci")
    return tmp_path


@pytest.fixture
def checkout(folder: Path) -> Path:
    assert run(folder, "git", "init", "--quiet").returncode == 0
    return folder


@pytest.mark.parametrize(
    "message",
    [
        "scheduler: count each candidate once",
        "services/scheduler: need one pass\n\nA reason.\n",
        "docs: " + "x" * 66,
        "stack: embed the version",
        "# a comment of git\n\nstack: add a guard\n# Please enter the message\n",
        "Merge branch 'walls'\nwhatever follows",
        'Revert "Whatever it was that was committed before, be it as long as it may: it is reverted"',
        "fixup! Whatever",
        "squash! Whatever",
        "",
    ],
)
def test_what_is_let_through(tmp_path: Path, message: str) -> None:
    (tmp_path / "message").write_text(message)
    done = run(tmp_path, str(HOOK), "message")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Fix the scheduler", "the subject 'Fix the scheduler' is not of the form area: imperative"),
        ("Scheduler: fix it", "the subject 'Scheduler: fix it' is not of the form area: imperative"),
        ("scheduler:fix it", "the subject 'scheduler:fix it' is not of the form area: imperative"),
        ("scheduler: ", "the subject 'scheduler:' is not of the form area: imperative"),
        ("scheduler: fixed it", "the verb 'fixed' is not an imperative"),
        ("scheduler: Counting once", "the verb 'Counting' is not an imperative"),
        ("docs: " + "x" * 67, "has 73 characters"),
        ("docs: add a page\nand another", "the second line is 'and another', not empty"),
    ],
)
def test_what_is_refused_and_why(tmp_path: Path, message: str, found: str) -> None:
    (tmp_path / "message").write_text(message)
    done = run(tmp_path, str(HOOK), "message")
    assert done.returncode == 1
    assert "expected: area: imperative, at most 72 characters" in done.stderr
    assert found in done.stderr
    assert "to do:    correct the message: git commit --edit --file=message" in done.stderr


def test_git_calls_it_once_it_is_installed(checkout: Path) -> None:
    assert "installed as" in install(checkout).stdout
    assert install(checkout).stdout == ""
    refused = commit(checkout, "Whatever")
    assert refused.returncode == 1
    assert "is not of the form area: imperative" in refused.stderr
    assert commit(checkout, "docs: add a page").returncode == 0
    assert run(checkout, "git", "log", "--format=%s").stdout == "docs: add a page\n"


def test_a_refused_message_is_there_to_be_corrected(checkout: Path) -> None:
    install(checkout)
    refused = commit(checkout, "Whatever\n\nA long reason.")
    (line,) = (line for line in refused.stderr.splitlines() if "to do:" in line)
    command = line.rpartition("message: ")[2].split()
    corrected = run(checkout, "env", "GIT_EDITOR=sed -i s/Whatever/docs:\\ add/", *command, "--allow-empty")
    assert corrected.returncode == 0, corrected.stderr
    assert run(checkout, "git", "log", "--format=%B").stdout.strip() == "docs: add\n\nA long reason."


def test_a_checkout_of_before_it_commits_as_it_did(checkout: Path) -> None:
    install(checkout)
    (checkout / ".ci" / "commit-msg").unlink()
    assert commit(checkout, "Whatever").returncode == 0


def test_a_second_worktree_has_it_too(checkout: Path) -> None:
    assert run(checkout, "git", "add", ".ci").returncode == 0
    assert commit(checkout, "ci: add the hook").returncode == 0
    assert run(checkout, "git", "worktree", "add", "--quiet", "second").returncode == 0
    assert "installed as" in install(checkout / "second").stdout
    assert commit(checkout / "second", "Whatever").returncode == 1


def test_hooks_of_the_user_are_left_alone(checkout: Path) -> None:
    own = checkout / ".git" / "hooks" / "commit-msg"
    own.parent.mkdir(exist_ok=True)
    own.write_text("#!/bin/sh\n")
    assert f"not installed: {own} is there already" in install(checkout).stderr
    assert own.read_text() == "#!/bin/sh\n"


def test_a_hooks_path_of_the_user_is_left_alone(checkout: Path) -> None:
    run(checkout, "git", "config", "core.hooksPath", "mine")
    assert "not installed: core.hooksPath is mine" in install(checkout).stderr
    assert not (checkout / "mine").exists()
    assert not (checkout / ".git" / "hooks" / "commit-msg").exists()


def test_nothing_is_installed_outside_a_checkout(folder: Path) -> None:
    done = install(folder)
    assert (done.stdout, done.stderr) == ("", "")


def test_nothing_is_installed_into_a_repository_around_the_folder(checkout: Path) -> None:
    inner = checkout / "unpacked"
    shutil.copytree(checkout / ".ci", inner / ".ci")
    install(inner)
    assert not (checkout / ".git" / "hooks" / "commit-msg").exists()


def test_make_setup_installs_it() -> None:
    shown = run(ROOT, "make", "--dry-run", "setup")
    assert ".ci/commit-msg --install" in shown.stdout
