"""Capacity of a machine whose size changes, also after the last job has ended."""

import random

import orjson
import pytest

from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.scores import capacity as module
from shadowtime.services.scoreboard.scores.capacity import Capacity
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
)


def test_capacity_is_the_sum_over_all_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SIZES", 5)
    for seed in range(40):
        chance = random.Random(seed)
        sizes, last_end, capacity = [8] * 300, 0, Capacity()
        capacity.begin(0, 8)
        changes = sorted(chance.sample(range(1, 300), 20))
        for at, time in enumerate(changes):
            size = chance.randint(0, 9)
            sizes[time:] = [size] * (300 - time)
            capacity.change(time, size, last_end)
            if chance.random() < 0.5:
                last_end = chance.randint(max(last_end, changes[max(at - 3, 0)]), max(last_end, time))
            copy = Capacity()
            copy.restore(orjson.loads(orjson.dumps(capacity.snapshot())))
            assert copy.until(last_end) == capacity.until(last_end) or last_end < capacity.sizes[0][0]
            if last_end >= capacity.sizes[0][0]:
                assert capacity.until(last_end) == sum(sizes[:last_end])
        assert len(capacity.sizes) <= 5
        assert capacity.until(300) == sum(sizes)


def test_there_is_no_utilization_before_a_job_has_ended() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=8))
    job = JobSubmitted(time=100, job_number=1, requested_processors=8, requested_time=100)
    board.handle(Envelope(run="r", sequence=1, event=job))
    assert board.tally.scores().policy.utilization is None  # it was -0.0


def test_utilization_before_second_0_is_that_of_the_same_events_after_it() -> None:
    for second in (0, -1000):
        board = Scoreboard(ClusterOpened(time=second, cluster="c", processors=8))
        job = JobSubmitted(time=second, job_number=1, requested_processors=4, requested_time=100)
        started = JobStarted(time=second, job_number=1, processors=4)
        ended = JobEnded(time=second + 100, job_number=1, run_time=100)
        sizes = [CapacityChanged(time=second + 200 + at, processors=8 - at) for at in (0, 1, 2)]
        events: list[Event] = [job, started, ended, *sizes]
        for sequence, event in enumerate(events, 1):
            board.handle(Envelope(run="r", sequence=sequence, event=event))
        assert board.tally.scores().policy.utilization == 0.5
