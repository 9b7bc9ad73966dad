"""A scheduling policy that plugs into Shadowtime."""

from pydantic import Field

from shadowtime.services.scheduler import FITS_NOW, Policy, PolicySettings, Queue, Running, start
from shadowtime.shared.messages import Start


class FirstFitSettings(PolicySettings):
    """Settings of `FirstFit`."""

    patience: int = Field(86_400, ge=0, description="seconds of waiting after which nobody overtakes a job any more")


class FirstFit(Policy):
    """Start whatever fits, in order of submission; nobody overtakes a job that has waited too long."""

    name = "first-fit"
    Settings = FirstFitSettings

    def __init__(self, settings: FirstFitSettings) -> None:
        self.settings = settings
        self._patience = settings.patience

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start]:
        """Return the jobs that start now; `free` is below zero when the machine has shrunk."""
        starts: list[Start] = []
        for row in range(len(queue)):
            if queue.processors[row] <= free:
                starts.append(start(queue, row, FITS_NOW))
                free -= int(queue.processors[row])
            elif now - queue.submit_time[row] >= self._patience:
                break

        return starts
