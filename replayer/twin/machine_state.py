"""Who waits and who runs in a shadow, and what is free there."""

from collections.abc import Sequence
from math import inf
from typing import Any

from shadowtime.replayer.room_left import RoomLeft
from shadowtime.replayer.twin.life import Life
from shadowtime.shared.decisions import Start
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.events import CapacityChanged, ClusterOpened, JobStarted


class MachineState:
    """The jobs of a shadow that wait and run, by number; one that was suspended, or is presumed over, is among these.

    Such a one holds its memory and GPUs, but no processors, as one that is suspended.
    """

    def __init__(self, opened: ClusterOpened) -> None:
        self.waiting: dict[int, Life] = {}
        self.running: dict[int, Life] = {}
        self._rooms = RoomLeft(opened.processors, opened.pools or ())

    def __contains__(self, job_number: int) -> bool:
        return job_number in self.waiting or job_number in self.running

    def resize(self, event: CapacityChanged) -> None:
        """Let a pool have so much from now on."""
        self._rooms.change(event)

    def carry_out(self, decided: Start, now: int) -> JobStarted:
        """Start a job as decided, and return that as an event.

        Raises
        ------
        ReplayError
            If it does not wait, or does not fit.
        """
        life = self.waiting.get(decided.job_number)
        if life is None:
            raise ReplayError(f"job {decided.job_number} is to start at {now} but does not wait")
        life.start, life.on, life.limit = now, decided.processors, decided.limit
        execution = life.execution()
        if lacking := self._rooms.lacking(execution.job, decided.processors):
            raise ReplayError(f"job {decided.job_number} is to start at {now} on {lacking} free")
        self.place(life)
        return execution.started()

    def place(self, life: Life) -> None:
        """Let a job that waits hold what it asks for, on as many processors as it was started on."""
        number = life.job.job_number
        self.running[number] = self.waiting.pop(number)
        self._rooms.take(life.execution().job, life.on)

    def remove(self, life: Life) -> None:
        """Take a job off the machine."""
        if life.freed is not None:
            self.give_processors(life)
        self._rooms.take(life.execution().job, life.on, -1)
        del self.running[life.job.job_number]

    def wait_again(self, life: Life) -> None:
        """Put a job that was on the machine back among those that wait."""
        life.start = life.limit = life.freed = None
        self.waiting[life.job.job_number] = life

    def give_processors(self, life: Life, times: int = 1) -> None:
        """Let a job have its processors, -1 times: without anything else."""
        self._rooms.free[life.job.pool or 0][0] -= times * life.on

    def snapshot(self, places: dict[int, int]) -> Any:
        """Return it as plain values; `places` has a number for each life."""
        return {
            "waiting": [places[id(life)] for life in self.waiting.values()],
            "running": [places[id(life)] for life in self.running.values()],
            "rooms": self._rooms.rooms.snapshot(),
            "free": [[None if each == inf else each for each in free] for free in self._rooms.free],
        }

    def restore(self, state: Any, lives: Sequence[Life]) -> None:
        """Take on what `snapshot` returned, of the same lives."""
        self.waiting = {lives[at].job.job_number: lives[at] for at in state["waiting"]}
        self.running = {lives[at].job.job_number: lives[at] for at in state["running"]}
        self._rooms.rooms.restore(state["rooms"])
        self._rooms.free = [[inf if each is None else each for each in free] for free in state["free"]]
