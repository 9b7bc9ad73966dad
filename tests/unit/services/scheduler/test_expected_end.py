"""When a running job is expected to end, before and after it has outlived its prediction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.tables.expected_end import CORRECTIONS, RunningJobs, expected_ends
from shadowtime.services.scheduler.tables.job_table import NEVER
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, instances
from tests.support.textbook_easy import expected_end


@given(instance=instances(max_running=10), now=st.integers(60, 500))
@examples(400)
def test_expected_ends_are_those_of_the_textbook(instance: Instance, now: int) -> None:
    _, running = instance.tables()
    jobs = running.jobs(on_requests=False)
    ends = expected_ends(now, jobs).tolist()
    truncate = instance.uses.running
    assert ends == [expected_end(job, now, instance.corrections, truncate=truncate) for job in instance.running]
    assert all(end > now for end in ends)


def expected(fallback: str, now: int, predicted: int, requested: int, adjusted: int | None = None) -> int:
    """Return seconds from the start to the expected end."""
    start = 1000
    times = (np.array([each]) for each in (start, predicted, adjusted or requested, requested))
    corrections = np.array(CORRECTIONS[fallback], dtype=np.int64)
    ends = expected_ends(start + now, RunningJobs._make((np.array([[1]]), *times, corrections)))
    assert ends.dtype == np.int64
    return int(ends[0]) - start


@pytest.mark.parametrize(
    ("now", "end"),
    [(0, 100), (99, 100), (100, 900), (899, 900), (900, 901), (5000, 5001)],
)
def test_fallback_to_the_request(now: int, end: int) -> None:
    assert expected("request", now, 100, 900) == end


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (99, 100),
        (100, 160),  # predicted, and a minute
        (159, 160),
        (160, 400),  # predicted, and five: each correction replaces the one before
        (400, 1000),
        (1000, 1900),
        (1900, 3700),
        (3700, 5000),  # at most the request
        (5000, 5001),
        (9000, 9001),
    ],
)
def test_incremental_fallback(now: int, end: int) -> None:
    assert expected("incremental", now, 100, 5000) == end


def test_when_the_corrections_are_used_up_the_request_counts() -> None:
    longest = 100 + CORRECTIONS["incremental"][-1]
    assert expected("incremental", longest - 1, 100, 10**7) == longest
    assert expected("incremental", longest, 100, 10**7) == 10**7
    assert expected("incremental", longest, 100, NEVER) == NEVER


@pytest.mark.parametrize(
    ("now", "end"),
    [(0, 100), (99, 100), (100, 400), (101, 401), (399, 699), (599, 899), (600, 900), (899, 900), (900, 901)],
)
def test_five_minutes_are_given_again_and_again_up_to_the_request(now: int, end: int) -> None:
    assert expected("request", now, 100, 900, adjusted=100) == end


@pytest.mark.parametrize(("now", "end"), [(99, 100), (100, 500), (499, 500), (500, 800)])
def test_an_outlived_prediction_falls_back_to_the_adjusted_request(now: int, end: int) -> None:
    assert expected("request", now, 100, 900, adjusted=500) == end


@pytest.mark.parametrize(("now", "end"), [(100, 160), (400, 1000), (999, 1000)])
def test_five_minutes_come_after_the_corrections(now: int, end: int) -> None:
    assert expected("incremental", now, 100, 5000, adjusted=100) == end
    longest = 100 + CORRECTIONS["incremental"][-1]
    assert expected("incremental", longest, 100, NEVER, adjusted=100) == longest + 300


def test_corrections_rise() -> None:
    for seconds in CORRECTIONS.values():
        assert list(seconds) == sorted(set(seconds))


def test_the_corrections_of_easy_plus_plus_are_those_of_the_paper() -> None:
    """Tsafrir 2007, section 5: 1, 5, 15 and 30 minutes, then 1, 2, 5, 10, 20, 50 and 100 hours."""
    minutes = (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)
    assert CORRECTIONS["incremental"] == tuple(60 * each for each in minutes)
