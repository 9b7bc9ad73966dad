"""EASY backfilling over a queue in order of the WFP score."""

import numpy as np

from shadowtime.services.scheduler.easy import Easy
from shadowtime.services.scheduler.job_table import Queue
from shadowtime.services.scheduler.policy_settings import PolicySettings
from shadowtime.shared.arrays import Floats, Integers


def scores(now: int, queue: Queue) -> Floats:
    """Return the WFP score of each waiting job: the cube of its wait over its run time, times its processors.

    A job that has not waited scores 0, one without any request next to it.

    >>> queue = Queue()
    >>> queue.add((1, 0, 2, 300, 300, 300, 300, -1))
    >>> queue.add((2, 70, 2, 30, 30, 30, 30, -1))
    >>> scores(100, queue).round(3).tolist()
    [0.074, 2.0]
    """
    ratio = (now - queue.submit_time) / queue.order_time
    return ratio * ratio * ratio * queue.processors


def by_score(now: int, queue: Queue) -> Integers:
    """Return the rows of the queue, highest score first, ties in order of (submit time, job number)."""
    return np.argsort(-scores(now, queue), kind="stable")


class Wfp(Easy):
    """EASY over a queue sorted anew at each pass: long waits, short requests and large sizes go first.

    Jobs go by their scores, over predicted run times or requests, adjusted ones where those order the queue. The first
    that does not fit is the head, which backfilling must not delay; candidates are tried in the same order.
    O(queue log queue + running log running) per pass.

    References
    ----------
    docs/algorithms.md#wfp (Tang 2013, section 6.1, equation 5).
    """

    name = "wfp"
    Settings = PolicySettings

    def forecaster(self) -> None:
        """Return None: its order changes as time passes, which running ahead does not follow."""

    def rows(self, now: int, queue: Queue) -> Integers:
        """Return the rows by score."""
        return by_score(now, queue)
