"""Whatever ends is started again: at once, then after pauses that double."""

import errno
import os
import threading
from pathlib import Path

import pytest

from shadowtime.stack.local import restart_loop, state
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.local.restart_loop import RestartLoop
from shadowtime.stack.local.state import StackState, read_state
from shadowtime.stack.local.supervisor import Supervisor
from shadowtime.stack.servers.server import Server, ServerError
from tests.support.patience import PATIENCE
from tests.support.processes import wait_until


class Script(Server):
    """A server that is a shell script, and healthy when its folder has a file `healthy`."""

    name = "script"

    def __init__(self, folder: Path, script: str) -> None:
        super().__init__(folder)
        self.script = script

    @classmethod
    def available(cls) -> str | None:
        return None

    def answers(self) -> bool:
        return (self.folder / "healthy").exists()

    def _command(self) -> list[str]:
        return ["/bin/sh", "-c", f"echo started >> starts; {self.script}"]

    @property
    def starts(self) -> int:
        starts = self.folder / "starts"
        return starts.read_text().count("started") if starts.exists() else 0


def read_state_of(folder: Path) -> StackState | None:
    return read_state(folder) if (folder / "state.json").is_file() else None


def test_a_watchdog_status_leads_to_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_loop, "FIRST_PAUSE", 0.01)
    script = Script(tmp_path, "exit 75")
    kept = RestartLoop(script)
    kept.start()
    wait_until(lambda: script.starts >= 3, "the script is not started again")
    kept.stop_within(1)
    kept.join()
    assert kept.failure == "ended with status 75"
    assert kept.restarts >= 2


def test_a_start_that_the_system_refuses_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_loop, "FIRST_PAUSE", 0.01)
    script = Script(tmp_path, "exec sleep 60")
    (tmp_path / "server.log").mkdir()  # the log cannot be opened, as on a full disk
    kept = RestartLoop(script)
    kept.start()
    wait_until(lambda: kept.restarts >= 1, "the start is not tried again")
    assert (kept.pid, kept.healthy) == (None, False)
    assert "server.log" in kept.failure
    (tmp_path / "server.log").rmdir()
    wait_until(lambda: kept.pid is not None, "the script does not run")
    kept.stop_within(5)
    kept.join(PATIENCE)


def test_a_supervisor_whose_state_cannot_be_written_goes_on(tmp_path: Path) -> None:
    supervisor = Supervisor(StackPlan(str(tmp_path), ()))
    (tmp_path / "state.json").mkdir()
    supervisor._publish_state()  # noqa: SLF001
    assert read_state_of(tmp_path) is None
    (tmp_path / "state.json").rmdir()
    supervisor._publish_state()  # noqa: SLF001
    assert read_state_of(tmp_path) is not None


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(state.fcntl, "flock", refuse)
    message = r"lock cannot be locked: No locks available; choose a local disk with --folder$"
    with pytest.raises(ServerError, match=message), state.hold_lock(tmp_path):
        pass
    with pytest.raises(ServerError, match=message):
        state.supervisor_of(tmp_path)


def test_pauses_double_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_loop, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(restart_loop, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(restart_loop, "MAX_PAUSE", 0.04)
    pauses: list[float] = []
    kept = RestartLoop(Script(tmp_path, "exit 1"))
    wait = threading.Event.wait

    def noted(event: threading.Event, seconds: float | None = None) -> bool:
        if seconds not in {None, 0.001} and threading.current_thread() is kept:
            pauses.append(seconds)
        return wait(event, seconds)

    monkeypatch.setattr(threading.Event, "wait", noted)
    kept.start()
    wait_until(lambda: len(pauses) >= 5, "the script is not started again")
    kept.stop_within(1)
    kept.join()
    assert pauses[:5] == [0.01, 0.02, 0.04, 0.04, 0.04]


def test_health_is_what_the_server_answers(tmp_path: Path) -> None:
    kept = RestartLoop(Script(tmp_path, "exec sleep 60"))
    kept.start()
    wait_until(lambda: kept.pid is not None, "the script does not run")
    assert not kept.healthy
    (tmp_path / "healthy").touch()
    wait_until(lambda: kept.healthy, "health is not noticed")
    kept.stop_within(5)
    kept.join(PATIENCE)
    assert not kept.is_alive()
    assert not kept.healthy


def test_what_does_not_obey_is_killed(tmp_path: Path) -> None:
    script = Script(tmp_path, "trap '' TERM; touch deaf; while :; do sleep 0.05; done")
    kept = RestartLoop(script)
    kept.start()
    wait_until((tmp_path / "deaf").exists, "the script does not run")
    kept.stop_within(0.2)
    kept.join()
    assert not script.running
    assert "did not stop within 0.2 s and was killed" in kept.failure
