"""Draws of chance."""

import numpy as np

from shadowtime.shared.chance import uniform


def test_rounds_before_the_beginning_of_time_are_drawn_too() -> None:
    jobs = np.array([1, 2, 3])
    before, after = uniform(7, jobs, -5), uniform(7, jobs, 5)
    assert ((before >= 0) & (before < 1)).all()
    assert before.tolist() != after.tolist()
