"""The plan of a pass against one made second by second."""

from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.kernels.conservative_plan import NUMBER, STARTS, SUBMIT, UNPLANNED, carried, plan
from shadowtime.services.scheduler.kernels.profile import FOREVER
from shadowtime.testing.examples import examples

HORIZON = 400


class Waiting(NamedTuple):
    """Shapes of a job as (processors, seconds), no processors where it has none; its promise, in which shape."""

    shapes: list[tuple[int, int]]
    promised: int
    shape: int


SHAPE = st.tuples(st.integers(1, 6), st.integers(1, 9))
WAITING = st.builds(
    lambda first, second, promised, shape: Waiting(
        [first, second or (0, 1)], promised, shape if second is not None and promised != UNPLANNED else 0
    ),
    SHAPE,
    st.none() | SHAPE,
    st.sampled_from([UNPLANNED, 0, 3, 4, 10, 25, 40]),
    st.integers(0, 1),
)


def by_second(
    now: int, free: list[int], jobs: list[Waiting], order: list[int], *, compress: bool, keep: bool
) -> list[tuple[int, int]]:
    """Return start and shape of each job, planned on a list of the processors that are free in each second."""

    def fits(job: int, shape: int, start: int) -> bool:
        size, seconds = jobs[job].shapes[shape]
        return all(free[second - now] >= size for second in range(start, start + seconds))

    def take(job: int, shape: int, start: int, sign: int) -> None:
        size, seconds = jobs[job].shapes[shape]
        for second in range(start, start + seconds):
            free[second - now] -= sign * size

    def first(job: int, shape: int, until: int) -> int | None:
        return next((second for second in range(now, until + 1) if fits(job, shape, second)), None)

    found: dict[int, tuple[int, int]] = {}
    if keep:
        for job in sorted(range(len(jobs)), key=lambda each: jobs[each].promised):
            promised, shape = jobs[job].promised, jobs[job].shape
            if promised >= now and fits(job, shape, promised):
                found[job] = promised, shape
                take(job, shape, promised, 1)
        for job in order if compress else []:
            if job not in found:
                continue
            start, shape = found[job]
            take(job, shape, start, -1)
            end = start + jobs[job].shapes[shape][1]
            for other, (size, seconds) in enumerate(jobs[job].shapes):
                at = first(job, other, found[job][0]) if size else None
                if at is not None and at + seconds < end:
                    start, shape, end = at, other, at + seconds
            found[job] = start, shape
            take(job, shape, start, 1)
    left = free[0]
    for job in order:
        if job in found:
            continue
        if not keep and left <= 0:
            break
        best = None
        for other, (size, seconds) in enumerate(jobs[job].shapes):
            at = first(job, other, now + HORIZON // 2) if size else None
            if at is not None and (best is None or at + seconds < best[2]):
                best = at, other, at + seconds
        if best is not None:
            found[job] = best[:2]
            take(job, best[1], best[0], 1)
            left -= jobs[job].shapes[best[1]][0] if best[0] == now else 0
    return [found.get(job, (UNPLANNED, 0)) for job in range(len(jobs))]


@given(
    running=st.lists(st.tuples(st.integers(1, 4), st.integers(4, 12)), max_size=4),
    idle=st.integers(0, 5),
    jobs=st.lists(WAITING, min_size=1, max_size=6),
    seed=st.randoms(use_true_random=False),
    compress=st.booleans(),
    keep=st.booleans(),
)
@examples(300)
def test_plan(
    running: list[tuple[int, int]],
    idle: int,
    jobs: list[Waiting],
    seed: Random,
    *,
    compress: bool,
    keep: bool,
) -> None:
    now, order = 3, list(range(len(jobs)))
    seed.shuffle(order)
    free = [idle + sum(size for size, end in running if end <= now + second) for second in range(HORIZON)]
    sizes, ends = (np.array(each, dtype=np.int64) for each in (list(zip(*running, strict=True)) or [(), ()]))
    table = np.array([job.shapes for job in jobs], dtype=np.int64)
    starts, shapes, *_ = plan(
        now,
        np.array([idle]),
        sizes.reshape(-1, 1),
        ends,
        np.ascontiguousarray(table[:, :, :1].transpose(1, 0, 2)),
        np.ascontiguousarray(table[:, :, 1].T),
        np.array([job.promised for job in jobs], dtype=np.int64),
        np.array([job.shape for job in jobs], dtype=np.int64),
        np.array(order, dtype=np.int64),
        compress,
        keep,
        1 << 40,
    )
    planned = np.where(starts == FOREVER, UNPLANNED, starts).tolist()
    expected = by_second(now, free, jobs, order, compress=compress, keep=keep)
    assert planned == [start for start, _ in expected]
    assert [s for s, at in zip(shapes.tolist(), planned, strict=True) if at != UNPLANNED] == [
        s for start, s in expected if start != UNPLANNED
    ]


@given(
    before=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 20)), unique=True, max_size=8),
    now=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 20)), unique=True, max_size=8),
)
def test_places_are_carried_to_the_jobs_that_still_wait(
    before: list[tuple[int, int]], now: list[tuple[int, int]]
) -> None:
    reservations = np.array(
        [[number, submit, 100 + number, 200 + number, 1] for submit, number in sorted(before)], dtype=np.int64
    ).reshape(-1, 5)
    waiting = np.array(sorted(now), dtype=np.int64).reshape(-1, 2)
    found = carried(
        np.ascontiguousarray(reservations.T), np.ascontiguousarray(waiting[:, 1]), np.ascontiguousarray(waiting[:, 0])
    )
    assert found[[SUBMIT, NUMBER]].T.tolist() == waiting.tolist()
    assert found[STARTS].tolist() == [100 + n if (s, n) in before else UNPLANNED for s, n in sorted(now)]
