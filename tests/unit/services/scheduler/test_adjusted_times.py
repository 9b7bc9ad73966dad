"""What an adjusted request is used for, and the times that follow from it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.catalogue import canonical
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.histograms import UNKNOWN
from shadowtime.services.scheduler.tables.job_table import NEVER, Queue, Running, planned_times
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.predictions import RunTimePrediction, WalltimeAdjustment
from shadowtime.shared.spec import parse


@pytest.mark.parametrize(
    "wrong", ["adjust_queue=perhaps", "adjust_candidates=2", "distribution=posterior", "fallback=hope"]
)
@pytest.mark.parametrize("name", POLICIES.classes)
def test_a_use_that_is_none_is_named(name: str, wrong: str) -> None:
    with pytest.raises(SettingsError, match=f"policy '{name}': {wrong}"):
        POLICIES.build(parse(f"{name}:{wrong}"))


def test_uses_are_spelled_out_where_they_are_not_the_default() -> None:
    assert canonical("policy", "wfp") == "wfp"
    typed = "wfp:running=yes,adjust_queue=yes,fallback=incremental"
    assert canonical("policy", typed) == "wfp(running=yes,fallback=incremental)"


@given(
    requested=st.integers(1, 1000) | st.just(NEVER),
    point=st.none() | st.floats(0, 2000),
    adjusted=st.none() | st.integers(1, 1200),
)
def test_planned_times(requested: int, point: float | None, adjusted: int | None) -> None:
    prediction = None if point is None else RunTimePrediction(point=point, observations=1)
    adjustment = None if adjusted is None else WalltimeAdjustment(adjusted_time=adjusted, observations=10)
    times = planned_times(requested, prediction, adjustment)
    assert times.requested_time == requested
    assert times.adjusted_time == min(requested, NEVER if adjusted is None else adjusted)
    assert times.predicted_time == (requested if point is None else min(max(int(point), 1), requested))
    assert times.adjusted_prediction == min(times.predicted_time, times.adjusted_time) >= 1


# A job that requests 100 s, adjusted to 60; 80 are predicted.
ROW = (7, 0, 1, 100, 60, 80, 60, UNKNOWN)
EVERY_USE = [
    PolicySettings(adjust_queue=queue, adjust_candidates=candidates, running=running, distribution=distribution)
    for queue, candidates, running in product([False, True], repeat=3)
    for distribution in ("ignore", "limit", "prior")
]


@pytest.mark.parametrize("uses", EVERY_USE, ids=str)
def test_a_table_has_the_times_that_its_jobs_are_planned_with(uses: PolicySettings) -> None:
    queue, running = Queue(None, uses), Running((), None, uses)
    queue.add(ROW)
    running.add((*ROW, 5))
    limit = uses.distribution == "limit"
    assert queue.order_time.tolist() == [60 if uses.adjust_queue else 80]
    assert queue.order_request.tolist() == [60 if uses.adjust_queue else 100]
    assert queue.predicted_time.tolist() == [60 if uses.adjust_candidates else 80]
    assert queue.limit_time.tolist() == [60 if limit and uses.adjust_candidates else 100]
    assert running.predicted_time.tolist() == [60 if uses.running else 80]
    assert running.limit_time.tolist() == [60 if limit and uses.running else 100]
    assert running.adjusted_time.tolist() == [60 if uses.running else 100]
    for table in (queue, running):
        assert table.requested_time.tolist() == [100]
        assert table.slot.tolist() == [UNKNOWN]
    assert running.start_time.tolist() == [5]
    assert (queue.remove(7), running.remove(7)) == (ROW, (*ROW, 5))
