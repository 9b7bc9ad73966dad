"""Sliding windows hold what a list searched from the start would hold, at every instant."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.walltime_adjustment.keys import Traits
from shadowtime.services.walltime_adjustment.sliding_ratios import LET_GO, SlidingRatios
from tests.support.memory_size import memory_size

NAMES = ("user", "user+request", "project")

WINDOWS = (10.0, 25.0, float("inf"))

STEPS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 2), st.sampled_from([0.1, 0.2, 0.5, 0.5, 1.0]), st.booleans()),
    max_size=60,
)


def job(user: int) -> Traits:
    return Traits(user=user, project=user, request=60)


@given(steps=STEPS, restart=st.integers(0, 60))
def test_every_window_equals_the_batch(steps: list[tuple[int, int, float, bool]], restart: int) -> None:
    ratios, added, now = SlidingRatios(NAMES, WINDOWS), list[tuple[int, int, float]](), 0
    for step, (gap, key, ratio, seen) in enumerate(steps):
        now += gap
        for at, window in enumerate(WINDOWS):
            for each in range(3):
                kept = sorted(r for time, k, r in added if k == each and time > now - window)
                sample = ratios.sample("user", at, job(each), now)
                assert list(sample) == kept
        if seen:
            ratios.expire(now)
        ratios.add(job(key), now, ratio)
        added.append((now, key, ratio))
        if step == restart:
            again = SlidingRatios(NAMES, WINDOWS)
            again.add(job(9), 0, 0.3)  # to be forgotten
            again.restore(orjson.loads(orjson.dumps(ratios.snapshot())))
            assert again.snapshot() == ratios.snapshot()
            ratios = again


def test_what_has_aged_out_of_all_windows_is_let_go() -> None:
    ratios = SlidingRatios(NAMES, (10.0, 20.0))
    empty, largest = memory_size(ratios), 0
    for time in range(1000):
        ratios.add(job(time % 7), time, 0.5)
        ratios.expire(time)
        assert len(ratios.snapshot()["entries"]) <= 20
        if time < 100:
            largest = max(largest, memory_size(ratios))
        assert memory_size(ratios) < 1.2 * largest
    ratios.expire(2000)
    assert ratios.snapshot() == {"entries": [], "first": [0, 0]}
    assert memory_size(ratios) < empty + 20


def test_a_long_silence_is_made_up_for_bit_by_bit() -> None:
    """All that had aged out was taken out of every sorted list within the next event: 2 s for 200,000 jobs."""
    ratios = SlidingRatios(NAMES, (10.0, 20.0))
    empty = memory_size(ratios)
    for number in range(5000):
        ratios.add(job(number % 2000), 0, number / 5000)
    full = memory_size(ratios)
    ratios.expire(30)
    assert 0.9 * full < memory_size(ratios) < full
    assert len(ratios.sample("user", 1, job(7), 30)) == 0
    for _ in range(5000 // LET_GO + 1):
        ratios.expire(30)
    assert memory_size(ratios) < empty + 20


def test_so_many_are_remembered_however_long_the_window_is() -> None:
    ratios, largest = SlidingRatios(NAMES, (float("inf"),), most=100), 0
    for number in range(1000):
        ratios.add(job(number % 2), number, number / 1000)
        ratios.expire(number)
        if number < 400:
            largest = max(largest, memory_size(ratios))
        assert memory_size(ratios) < 1.2 * largest
    sample = ratios.sample("user", 0, job(0), 1000)
    assert [sample[0], sample[49]] == [0.9, 0.998]
    assert len(ratios.snapshot()["entries"]) == 100
