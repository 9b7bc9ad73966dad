"""Kernels that sort: their cost does not depend on the order of what is sorted."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from shadowtime.shared.kernels import Integers, ascending, shadow_of

JOBS = 50_000


def shadow(ends: Integers) -> object:
    return shadow_of(np.array([10 * JOBS]), np.array([9 * JOBS]), np.ones((len(ends), 1), np.int64), ends)


def seconds(work: Callable[[Integers], object], values: Integers) -> float:
    taken = []
    for _ in range(3):
        began = time.process_time()
        work(values)
        taken.append(time.process_time() - began)
    return min(taken)


@pytest.mark.parametrize("work", [shadow, ascending])
def test_no_order_of_ends_takes_longer_than_a_random_one(work: Callable[[Integers], object]) -> None:
    later = np.arange(JOBS)
    starts = [later, np.concatenate((10**7 + 7 * later[30_000:], 13 * later[:30_000] % 911_000))]
    at_random = np.random.default_rng(1).permutation(JOBS)
    usual = seconds(work, at_random)
    for ends in (*starts, later[::-1].copy(), np.concatenate((10**6 + later[100:], later[:100]))):
        assert seconds(work, ends) < 5 * usual, ends
