"""First come, first served."""

import numpy as np

from shadowtime.services.scheduler.forecasting import Forecaster, Placed, as_submitted
from shadowtime.services.scheduler.policy import Policy, start_heads
from shadowtime.services.scheduler.settings import ForecastSettings
from shadowtime.services.scheduler.tables import Queue, Running, fitting_together
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Start


class Fcfs(Policy):
    """Start jobs strictly in order of submission. The first job that does not fit blocks all behind it.

    O(starts).
    """

    name = "fcfs"
    Settings = ForecastSettings

    def __init__(self, settings: ForecastSettings) -> None:
        self.settings = settings

    def forecaster(self) -> Forecaster | None:
        """Return the forecaster of waits if the key `forecast` asks for one, else None."""
        return Forecaster(Placed(as_submitted, in_turn=True)) if self.settings.forecast else None

    def served(self, now: int, queue: Queue, idle: Integers) -> Integers:
        """Return the rows of the queue in order of submission."""
        return np.arange(len(queue))

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start]:
        """Return the starts at the front of the queue, up to the first job that does not fit."""
        heads = fitting_together(running.free(free), queue.sizes)
        return start_heads(queue, range(heads))
