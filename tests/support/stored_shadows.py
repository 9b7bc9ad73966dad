"""Shadows whose state is stored in memory."""

from collections.abc import Awaitable

import orjson

from shadowtime.services.shadows.comparison.side_by_side import REAL, SHADOW, SideBySide
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages.job_events import JobSubmitted
from shadowtime.shared.streaming.protocols import Transaction
from tests.support.memory_reader import MemoryReader


def stored(days: int) -> bytes:
    """Return what a shadow keeps in which each job waits 10 minutes, and really 20."""
    both = SideBySide()
    both.capacity(0, 16)
    for number in range(days * 10):
        time = number * DAY // 10
        job = JobSubmitted(
            time=time, job_number=number, requested_processors=9, requested_time=7_200, user_id=number % 30
        )
        both.submitted(job)
        for which, wait in ((REAL, 1_200), (SHADOW, 600)):
            both.started(which, number, time + wait)
            both.ended(which, number, time + wait + 900, 900, 9)
        both.at(time)
    opened = {"cluster": "kth", "policy": "best", "name": "best", "unix_start": 843_436_800}
    return orjson.dumps({"opened": opened, "source": {"side_by_side": both.snapshot(), "real": "kth/live"}})


BEST, FCFS = "kth/shadow/best", "kth/shadow/fcfs"


def keeping(reader: MemoryReader, run: str, snapshot: bytes, expected: int = -1) -> Awaitable[None]:
    return reader.commit(Transaction(run, expected, expected + 1, 0, 0, snapshot, [], [], 0))
