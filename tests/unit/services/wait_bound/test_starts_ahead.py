"""Starts in futures against EASY played second by second, over plain lists."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.wait_bound.futures.kernels import NEVER, starts_ahead
from shadowtime.shared.kernels.arrays import IntegerTable
from shadowtime.testing.examples import examples

PROCESSORS = 8
LATE = 3_000


class Job(NamedTuple):
    size: int
    limit: int
    run_time: int
    came: int = 0

    def held(self, now: int) -> tuple[int, int, int]:
        return self.size, now + self.limit, now + self.run_time


def jobs(largest: int = PROCESSORS) -> st.SearchStrategy[Job]:
    times = st.tuples(st.integers(1, 40), st.integers(1, 40)).map(lambda pair: (max(pair), min(pair)))
    return st.builds(
        lambda size, pair, came: Job(size, pair[0], pair[1], came), st.integers(1, largest), times, st.integers(1, 90)
    )


def second_by_second(waiting: list[Job], running: list[tuple[int, int, int]], arrivals: list[Job]) -> int:
    """Return when the last of the waiting jobs starts; running jobs are size, latest end and end."""
    queue, held, target = list(waiting), list(running), waiting[-1]
    for now in range(LATE):
        come = [job for job in arrivals if job.came == now and job.size <= PROCESSORS]
        ended = [job for job in held if job[2] <= now]
        held = [job for job in held if job[2] > now]
        queue += come
        if now and not come and not ended:
            continue
        free = PROCESSORS - sum(size for size, _, _ in held)

        while queue and queue[0].size <= free:
            free -= queue[0].size
            if queue[0] is target:
                return now
            held.append(queue.pop(0).held(now))
        if not queue:
            continue
        head = queue[0]
        ends = sorted(max(latest, now) for _, latest, _ in held)
        released = {at: free + sum(size for size, latest, _ in held if max(latest, now) <= at) for at in ends}
        shadow = next(at for at in ends if released[at] >= head.size)
        extra = released[shadow] - head.size
        for job in queue[1:]:  # a copy
            in_time = now + job.limit <= shadow
            if job.size <= free and (in_time or job.size <= extra):
                free -= job.size
                extra -= 0 if in_time else job.size
                if job is target:
                    return now
                held.append(job.held(now))
                del queue[next(place for place, each in enumerate(queue) if each is job)]
    raise AssertionError("it never starts")


def table(found: list[Job]) -> IntegerTable:
    return np.array([[job.size for job in found], [job.limit for job in found]], dtype=np.int64).reshape(2, -1)


@examples(300)
@given(
    waiting=st.lists(jobs(), min_size=1, max_size=6),
    running=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 60), st.integers(1, 60)), max_size=4),
    arrivals=st.lists(jobs(PROCESSORS + 2), max_size=6),
)
def test_it_starts_when_easy_starts_it(
    waiting: list[Job], running: list[tuple[int, int, int]], arrivals: list[Job]
) -> None:
    while sum(size for size, _, _ in running) > PROCESSORS:
        running = running[1:]
    running = [(size, max(latest, end), min(latest, end)) for size, latest, end in running]
    arrivals = sorted(arrivals, key=lambda job: job.came)
    expected = second_by_second(waiting, running, arrivals)
    found = starts_ahead(
        0,
        PROCESSORS,
        PROCESSORS - sum(size for size, _, _ in running),
        table(waiting),
        np.array([[job.run_time for job in waiting]] * 2, dtype=np.int64),
        np.array([[size for size, _, _ in running], [latest for _, latest, _ in running]], dtype=np.int64).reshape(
            2, -1
        ),
        np.array([[end for _, _, end in running]] * 2, dtype=np.int64).reshape(2, -1),
        np.array([[job.came - 50, job.size, job.limit, job.run_time] for job in arrivals], dtype=np.int64).reshape(
            -1, 4
        ),
        np.zeros(2, dtype=np.int64),
        np.full(2, 50),
        1_000_000,
    )
    assert found.tolist() == [expected, expected]


def test_a_future_that_takes_too_long_has_no_start() -> None:
    one = np.array([[8], [60]])
    none, zero = np.empty((0, 4), dtype=np.int64), np.zeros(1, dtype=np.int64)
    run_times, running, ends = np.array([[9]]), np.array([[1], [60]]), np.array([[30]])
    told = [starts_ahead(0, 8, 7, one, run_times, running, ends, none, zero, zero, most).tolist() for most in (1, 99)]
    assert told == [[NEVER], [30]]
