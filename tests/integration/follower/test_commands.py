"""Tests of the commands that are run: what fails, hangs or is not there is named, and nothing stays behind."""

import asyncio
import time
from pathlib import Path

import pytest

from shadowtime.services.follower.io.commands import Commands
from shadowtime.services.follower.io.slurm_commands import ByCommands
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.errors import FollowError


def said(commands: Commands, *command: str) -> str:
    return asyncio.run(commands.text(*command))


def test_what_a_command_prints_does_not_depend_on_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert said(Commands(), "sh", "-c", 'echo "$TZ $LC_ALL $SLURM_TIME_FORMAT"') == "UTC C %s\n"
    monkeypatch.setenv("SQUEUE_PARTITION", "debug")  # by which squeue would leave out other jobs, without a word
    monkeypatch.setenv("SLURM_CLUSTERS", "all")
    monkeypatch.setenv("SCONTROL_FUTURE", "1")  # by which scontrol shows nodes that do not exist yet
    assert said(Commands(), "sh", "-c", 'echo "$SQUEUE_PARTITION$SLURM_CLUSTERS$SCONTROL_FUTURE"') == "\n"
    assert said(Commands(("env", "A=via")), "sh", "-c", "echo $A") == "via\n"


def test_a_command_comes_through_ssh_as_it_is(tmp_path: Path) -> None:
    """As ssh does: all that it is given after the host is one text for a shell."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    for before in ((), ("env", "SSHPASS=secret"), ("timeout", "50")):  # as sshpass, sudo and others run it
        assert said(Commands((*before, str(ssh), "login")), "printf", "%s\n", "JobID:|,Name:|", "a  'b' $HOME") == (
            "JobID:|,Name:|\na  'b' $HOME\n"
        )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("sh", "-c", "echo slurm_load_jobs error: Unable to contact 1>&2; exit 1"), "slurm_load_jobs error: Unable"),
        (("sh", "-c", "exit 3"), "sh: it ended with status 3"),
        (("no-such-command",), "No such file or directory"),
    ],
)
def test_why_a_command_fails_is_said(command: tuple[str, ...], told: str) -> None:
    with pytest.raises(FollowError) as raised:
        said(Commands(), *command)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_command_that_hangs_is_ended_with_all_that_it_has_started() -> None:
    began = time.monotonic()
    with pytest.raises(FollowError, match=r"sh did not answer in 0\.5 s"):
        said(Commands(seconds=0.5), "sh", "-c", "sleep 60 & sleep 60; wait")
    assert time.monotonic() - began < 20


def test_a_command_that_is_no_longer_wanted_is_ended() -> None:
    async def ask() -> None:
        task = asyncio.create_task(Commands().text("sleep", "60"))
        await asyncio.sleep(0.3)
        task.cancel()
        await task

    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ask())
    assert time.monotonic() - began < 20


def test_accounting_is_asked_about_any_number_of_jobs(tmp_path: Path) -> None:
    """With 20,000 jobs in doubt, as after a start of slurmctld without its state, sacct could not be run."""
    asked = tmp_path / "asked"
    login = tmp_path / "login"
    login.write_text(f'#!/bin/sh\nfor each; do [ "$last" = -j ] && echo "$each" >> {asked}; last=$each; done\n')
    login.chmod(0o755)
    jobs = range(1_000_000, 1_020_000)
    assert asyncio.run(ByCommands(FollowOptions(via=(str(login),))).accounted(0, jobs=jobs)) == []
    lists = asked.read_text().split()
    assert len(lists) == 4
    assert [int(job) for each in lists for job in each.split(",")] == list(jobs)
