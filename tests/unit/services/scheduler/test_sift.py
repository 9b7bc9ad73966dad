"""Kernels that sift candidates, against the arrays they took the place of."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.policies.easy import pass_as_submitted
from shadowtime.services.scheduler.probabilistic.pass_state import PassState
from shadowtime.services.scheduler.probabilistic.prefilter import filter_candidates, room_by, sift_by_deadline
from shadowtime.services.scheduler.tables.expected_end import expected_ends
from shadowtime.services.scheduler.tables.job_table import Queue, Running
from shadowtime.services.scheduler.tables.resources import fits_each, fitting_together, front
from shadowtime.shared.kernels.easy_backfill import easy_pass

few = st.integers(0, 6)


@given(data=st.data(), jobs=st.integers(0, 8), resources=st.integers(1, 3))
def test_front_is_heads_and_who_fits_behind_the_next(data: st.DataObject, jobs: int, resources: int) -> None:
    sizes = np.array([[data.draw(few) for _ in range(resources)] for _ in range(jobs)], dtype=np.int64)
    sizes = sizes.reshape(jobs, resources)
    free = np.array([data.draw(st.integers(-2, 12)) for _ in range(resources)])
    served = np.array(data.draw(st.permutations(range(jobs))), dtype=np.int64)
    heads, rows = front(free, sizes, served)
    assert heads == fitting_together(free, sizes[served])
    left = free - sizes[served[:heads]].sum(axis=0)
    behind = served[heads + 1 :]
    assert rows.tolist() == np.sort(behind[fits_each(left, sizes, behind)]).tolist()


@given(data=st.data(), jobs=st.integers(0, 8), resources=st.integers(1, 3), running=st.integers(0, 5))
def test_sifting_is_its_plain_twin(data: st.DataObject, jobs: int, resources: int, running: int) -> None:
    def table(rows: int) -> np.ndarray:
        drawn = [[data.draw(few) for _ in range(resources)] for _ in range(rows)]
        return np.array(drawn, dtype=np.int64).reshape(rows, resources)

    sizes, held = table(jobs), table(running)
    requested = np.array([data.draw(st.integers(1, 9)) for _ in range(jobs)], dtype=np.int64)
    ends = np.array([data.draw(st.integers(1, 9)) for _ in range(running)], dtype=np.int64)
    extra, idle, size = (np.array([data.draw(st.integers(-2, 6)) for _ in range(resources)]) for _ in range(3))
    rows = np.array(data.draw(st.permutations(range(jobs))), dtype=np.int64)
    now, shadow, deadline = 0, data.draw(few), float(data.draw(st.sampled_from([2, 5, math.inf])))

    in_time = now + requested[rows] <= shadow
    safe = in_time | fits_each(extra, sizes, rows)
    for plain in (False, True):
        kept = safe | (not plain)
        left, found = filter_candidates(now, rows, sizes, requested, shadow, extra, plain)
        assert (left.tolist(), found.tolist()) == (rows[kept].tolist(), safe[kept].tolist())

    room = room_by(deadline, idle - size, held, ends)
    assert room.tolist() == (idle + (ends <= deadline) @ held - size).tolist()
    kept = safe | (now + requested[rows] <= deadline) | fits_each(room, sizes, rows)
    if resources > 1:
        kept &= in_time | fits_each(np.append(1 << 60, extra[1:]), sizes, rows)
    asked = now, rows, sizes, requested, shadow, extra, deadline, idle - size, held, ends
    left, found = sift_by_deadline(*asked)
    assert (left.tolist(), found.tolist()) == (rows[kept].tolist(), safe[kept].tolist())


@given(data=st.data(), waiting=st.integers(0, 6), jobs=st.integers(0, 6), free=st.integers(1, 6))
def test_a_pass_over_tables_is_one_over_arrays(data: st.DataObject, waiting: int, jobs: int, free: int) -> None:
    queue, running = Queue(), Running((60, 300))
    for number in range(waiting):
        times = [data.draw(st.integers(1, 900)) for _ in range(4)]
        queue.add((number, number, data.draw(st.integers(1, 8)), *times, -1))
    for number in range(waiting, waiting + jobs):
        times = [data.draw(st.integers(1, 900)) for _ in range(4)]
        running.add((number, 0, data.draw(st.integers(1, 8)), *times, -1, data.draw(st.integers(0, 99))))
    for by in (False, True):
        run_times = queue.requested_time if by else queue.predicted_time
        held = running.jobs(on_requests=by)
        asked = 100, np.array([free]), queue.sizes, run_times, np.arange(waiting), held.sizes
        heads, shadow_time, extra, rows = easy_pass(*asked, expected_ends(100, held))
        found = pass_as_submitted(100, free, queue.packed(on_requests=by), running.packed(on_requests=by))
        assert found[0] == heads
        assert found[3].tolist() == rows.tolist()
        assert not len(rows) or found[1:3] == (shadow_time, extra)


def test_what_a_pass_has_started_counts_as_running() -> None:
    queue, running = Queue(), Running()
    queue.add((7, 0, 2, 60, 60, 60, 60, -1))
    running.add((1, 0, 2, 600, 600, 300, 300, -1, 10))
    busy = PassState(100, queue, running)
    assert busy.requested_ends.tolist() == [610]
    busy.add(np.array([0]))
    assert busy.requested_ends.tolist() == [610, 160]
    assert busy.limit_times.tolist() == [600, 60]
