"""Reservations of waiting jobs against free processors, second by second."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.forecasting.by_reservation import Reservations
from shadowtime.services.scheduler.kernels.profile import FOREVER
from shadowtime.testing.examples import examples
from tests.unit.services.scheduler.drawn_jobs import RUNNING, WAITING

HORIZON = 200


@given(running=RUNNING, idle=st.integers(-2, 5), waiting=WAITING, cut=st.integers(0, 6), in_turn=st.booleans())
@examples(300)
def test_each_is_put_where_it_first_fits(
    running: list[tuple[int, int]], idle: int, waiting: list[tuple[int, int]], cut: int, *, in_turn: bool
) -> None:
    """Also where some are put behind others later."""
    sizes, ends = (np.array(each, dtype=np.int64) for each in (list(zip(*running, strict=True)) or [(), ()]))
    free = [idle + sum(size for size, end in running if end <= second) for second in range(2 * HORIZON)]
    starts: list[int] = []
    for size, run_time in waiting:
        earliest = max(starts, default=0) if in_turn else 0
        fitting = [t for t in range(earliest, HORIZON) if all(each >= size for each in free[t : t + run_time])]
        starts.append(fitting[0] if fitting else FOREVER)
        if fitting:
            for second in range(fitting[0], fitting[0] + run_time):
                free[second] -= size
        elif in_turn:
            starts += [FOREVER] * (len(waiting) - len(starts))
            break
    reservations = Reservations(0, idle, sizes, ends, in_turn=in_turn)
    parts = [part for part in (waiting[:cut], waiting[cut:]) if part]
    columns = [[np.array(column) for column in zip(*part, strict=True)] for part in parts]
    found = [reservations.add(*part) for part in columns]
    counts = np.cumsum([len(part) for part in parts]).tolist()
    assert found == [starts[count - 1] for count in counts]
    assert reservations.soonest == min(starts, default=FOREVER)
