"""The availability profile against a list of free processors, second by second."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.kernels.profile import FOREVER, begin, earliest, fits, merged, take
from tests.unit.services.scheduler.drawn_jobs import RUNNING, WAITING

SECONDS = 40


@given(running=RUNNING, idle=st.integers(-2, 5), waiting=WAITING, tidy=st.booleans())
def test_jobs_are_put_where_they_first_fit(
    running: list[tuple[int, int]], idle: int, waiting: list[tuple[int, int]], *, tidy: bool
) -> None:
    total = idle + sum(size for size, _ in running)
    sizes, ends = (np.array(each, dtype=np.int64) for each in (list(zip(*running, strict=True)) or [(), ()]))
    times, free = np.zeros(40, dtype=np.int64), np.zeros((1, 40), dtype=np.int64)
    steps = begin(times, free, 0, np.array([idle]), sizes.reshape(-1, 1), ends)
    by_second = [idle + sum(size for size, end in running if end <= second) for second in range(400)]
    for size, run_time in waiting:
        at = earliest(times, free, steps, np.array([size]), run_time, FOREVER)
        fitting = [t for t in range(200) if all(each >= size for each in by_second[t : t + run_time])]
        if size > total and not fitting:
            assert at == FOREVER
            continue
        assert at == fitting[0]
        steps = take(times, free, steps, at, at + run_time, np.array([size]))
        for second in range(at, at + run_time):
            by_second[second] -= size
        if tidy:
            steps = merged(times, free, steps)
        held = [int(free[0, np.searchsorted(times[:steps], second, side="right") - 1]) for second in range(200)]
        assert held == by_second[:200]


@given(running=RUNNING, waiting=WAITING)
def test_what_is_given_back_is_there_again(running: list[tuple[int, int]], waiting: list[tuple[int, int]]) -> None:
    sizes, ends = (np.array(each, dtype=np.int64) for each in (list(zip(*running, strict=True)) or [(), ()]))
    times, free = np.zeros(60, dtype=np.int64), np.zeros((1, 60), dtype=np.int64)
    steps = merged(times, free, begin(times, free, 0, np.array([8]), sizes.reshape(-1, 1), ends))
    before = times[:steps].tolist(), free[:, :steps].tolist()
    for sign in (1, -1):
        for start, (size, run_time) in enumerate(waiting):
            steps = take(times, free, steps, start, start + run_time, np.array([sign * size]))
    steps = merged(times, free, steps)
    assert (times[:steps].tolist(), free[:, :steps].tolist()) == before


def test_a_pool_that_lacks_memory_blocks_only_jobs_that_ask_for_memory() -> None:
    # 4 processors are idle; a job that ends at 50 holds 300 of memory, 100 more than the pool has left
    times, free = np.zeros(9, dtype=np.int64), np.zeros((2, 9), dtype=np.int64)
    steps = begin(times, free, 0, np.array([4, -100]), np.array([[2, 300]]), np.array([50]))
    assert free[:, :steps].tolist() == [[4, 6], [-100, 200]]
    assert earliest(times, free, steps, np.array([4, 0]), 90, FOREVER) == 0
    assert earliest(times, free, steps, np.array([4, 1]), 90, FOREVER) == 50
    assert fits(times, free, steps, np.array([4, 0]), 0, 90)
    assert not fits(times, free, steps, np.array([4, 1]), 0, 90)
