"""Shapes of moldable jobs."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.policies.shapes import LONG, Mode, Shapes, shape_of, sizes
from shadowtime.services.scheduler.tables.job_table import NEVER
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.messages.speedup import Amdahl, Downey

JOBS = st.lists(
    st.tuples(
        st.integers(1, 100),
        st.none() | st.integers(1, 100_000),
        st.booleans(),
        st.sampled_from([None, Amdahl(serial=0.2), Downey(parallelism=0.5, sigma=1)]),
    ),
    max_size=8,
).map(
    lambda rows: [
        JobSubmitted(
            time=0, job_number=n, requested_processors=size, requested_time=time, moldable=moldable, speedup=speedup
        )
        for n, (size, time, moldable, speedup) in enumerate(rows, 1)
    ]
)


@pytest.mark.parametrize("mode", get_args(Mode))
@given(jobs=JOBS)
def test_columns_equal_the_shapes_one_by_one(mode: Mode, jobs: list[JobSubmitted]) -> None:
    shapes = Shapes(mode, widen=False)
    for job in jobs:
        shapes.observe(job)
    numbers, asked = np.arange(1, len(jobs) + 1), np.array([job.requested_processors for job in jobs], dtype=np.int64)
    times = np.array([job.requested_time or NEVER for job in jobs], dtype=np.int64)
    every_size, run_times = shapes.columns(numbers, np.column_stack((asked, numbers)), times)
    for row, job in enumerate(jobs):
        every = sizes(mode, job.requested_processors, job.requested_time) if job.moldable else (asked[row],)
        assert [n for n in every_size[:, row, 0].tolist() if n] == list(every)
        assert set(every_size[:, row, 1].tolist()) == {row + 1}  # on any number of processors it takes the same else
        for place, size in enumerate(every):
            assert run_times[place, row] == shape_of(job, int(size)).seconds(int(times[row]))


@pytest.mark.parametrize("mode", get_args(Mode))
def test_a_sequential_job_has_one_shape_unless_it_may_grow(mode: Mode) -> None:
    assert set(sizes(mode, 1, 100)) == ({1, 2} if mode == "greedy" else {1})


def test_long_jobs_are_not_narrowed_greedily() -> None:
    assert sizes("greedy-narrow", 16, LONG + 1) == (16,)
    assert sizes("greedy-narrow", 16, LONG) == (16, 8, 4)
    assert sizes("greedy", 16, LONG + 1) == (16, 8, 32)


@pytest.mark.parametrize(
    ("mode", "requested", "expected"),
    [("half", 8, [8, 16]), ("quarter", 8, [4, 8, 16]), ("requested", 8, [16]), ("half", 5, [6]), ("half", 1, [2])],
)
def test_a_job_is_widened_to_twice_its_request_at_most(mode: Mode, requested: int, expected: list[int]) -> None:
    shapes = Shapes(mode, widen=True)
    shapes.observe(JobSubmitted(time=0, job_number=1, requested_processors=requested, requested_time=100))
    assert [each.processors for each in shapes.wider(1, shapes.of(1, requested)[0])] == expected


def test_a_job_that_would_not_end_sooner_is_not_widened() -> None:
    shapes = Shapes("half", widen=True)
    speedup = Downey(parallelism=0.5, sigma=0)
    shapes.observe(JobSubmitted(time=0, job_number=1, requested_processors=8, requested_time=100, speedup=speedup))
    assert list(shapes.wider(1, shapes.of(1, 8)[0])) == []


def test_a_job_that_is_not_moldable_keeps_its_shape() -> None:
    shapes = Shapes("half", widen=True)
    shapes.observe(JobSubmitted(time=0, job_number=1, requested_processors=8, requested_time=100, moldable=False))
    assert [each.processors for each in shapes.of(1, 8)] == [8]
    assert list(shapes.wider(1, shapes.of(1, 8)[0])) == []


def test_jobs_that_have_ended_are_forgotten() -> None:
    shapes = Shapes("half", widen=True)
    shapes.observe(JobSubmitted(time=0, job_number=1, requested_processors=8, requested_time=100))
    shapes.observe(JobEnded(time=5, job_number=1, run_time=5, requeued=True))
    assert shapes.jobs
    shapes.observe(JobEnded(time=9, job_number=1, run_time=2))
    assert (shapes.jobs, shapes.shapes) == ({}, {})
