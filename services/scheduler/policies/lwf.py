"""Least work first."""

from functools import partial

import numpy as np

from shadowtime.services.scheduler.forecasting import Forecaster, Placed
from shadowtime.services.scheduler.policy import Policy, start_heads
from shadowtime.services.scheduler.settings import PlanSettings
from shadowtime.services.scheduler.tables import Queue, Running, fitting_together
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Start


def by_work(queue: Queue, *, on_requests: bool = False) -> Integers:
    """Return the rows of the queue, least work first; ties are in order of (submit time, job number).

    Work is processors times run time. The run time is the prediction, or the request with `on_requests`. It is at most
    the adjusted request if adjusted requests order the queue.

    >>> queue = Queue()
    >>> queue.add((1, 0, 2, 300, 300, 300, 300, -1))
    >>> queue.add((2, 70, 8, 30, 30, 30, 30, -1))
    >>> by_work(queue).tolist()
    [1, 0]
    """
    run_times = queue.order_request if on_requests else queue.order_time
    return np.argsort(queue.processors * run_times.astype(np.float64), kind="stable")  # integers could overflow


class Lwf(Policy):
    """Start jobs in order of their work, least first. The first job that does not fit blocks all jobs behind it.

    O(queue log queue) per pass.

    References: docs/algorithms.md#least-work-first (Smith 1999, section 2.1.4).
    """

    name = "lwf"
    order_name = "least work"
    Settings = PlanSettings

    def __init__(self, settings: PlanSettings) -> None:
        self.settings = settings
        self.on_requests = settings.plan == "requested"

    def forecaster(self) -> Forecaster | None:
        """Return the forecaster of waits if the key `forecast` asks for one, else None."""
        order = partial(by_work, on_requests=self.on_requests)
        return Forecaster(Placed(order, in_turn=True)) if self.settings.forecast else None

    def served(self, now: int, queue: Queue, idle: Integers) -> Integers:
        """Return the rows of the queue, least work first."""
        return by_work(queue, on_requests=self.on_requests)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start]:
        """Return the starts of the jobs of least work, up to the first that does not fit."""
        if free <= 0 or not len(queue):
            return []
        rows = by_work(queue, on_requests=self.on_requests)
        heads = fitting_together(running.free(free), queue.sizes[rows])
        return start_heads(queue, rows[:heads].tolist())
