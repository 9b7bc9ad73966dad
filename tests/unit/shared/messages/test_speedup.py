"""How run times change with the number of processors."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shadowtime.shared.messages.base import MAX_DURATION
from shadowtime.shared.messages.speedup import Amdahl, Downey, SpeedUp, ratio, reshaped_time

MODELS: st.SearchStrategy[SpeedUp] = st.one_of(
    st.builds(Amdahl, serial=st.floats(0, 1)),
    st.builds(Downey, parallelism=st.floats(0.1, 100), sigma=st.floats(0, 10)),
)
SIZES = st.integers(1, 5000)


@given(requested=SIZES, processors=SIZES, run_time=st.integers(1, MAX_DURATION // 5000))
def test_constant_efficiency_conserves_work(requested: int, processors: int, run_time: int) -> None:
    work = processors * reshaped_time(run_time, ratio(requested, processors, None))
    assert requested * run_time <= work < requested * run_time + processors


@given(requested=SIZES, processors=SIZES, run_time=st.integers(0, MAX_DURATION))
def test_a_request_is_kept_as_before(requested: int, processors: int, run_time: int) -> None:
    by = ratio(requested, processors, None)
    assert reshaped_time(run_time, by) <= reshaped_time(min(run_time + 1, MAX_DURATION), by) <= MAX_DURATION
    assert reshaped_time(run_time, ratio(requested, requested, None)) == run_time


@given(model=MODELS, requested=SIZES, processors=SIZES)
def test_more_processors_are_never_slower_nor_faster_than_their_number(
    model: SpeedUp, requested: int, processors: int
) -> None:
    fewer, more = model.speedup(processors, requested), model.speedup(processors + 1, requested)
    assert fewer <= more * (1 + 1e-9)
    assert 0 < fewer <= processors * (1 + 1e-9)
    assert model.speedup(1, requested) == pytest.approx(1)


@given(model=MODELS, requested=SIZES)
def test_a_model_never_saves_work(model: SpeedUp, requested: int) -> None:
    times, over = ratio(requested, 2 * requested, model)
    assert 0.5 - 1e-6 <= times / over <= 1 + 1e-6


@pytest.mark.parametrize(
    ("n", "expected"), [(1, 1.0), (10, 10 / (1 + 0.9 * 0.1 * 0 + 0.1 * 9)), (1000, 1 / (0.1 + 0.9 / 1000))]
)
def test_amdahl(n: int, expected: float) -> None:
    assert Amdahl(serial=0.1).speedup(n, 1) == pytest.approx(expected)


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0, 2.0])
def test_downey_is_continuous_where_its_pieces_meet(sigma: float) -> None:
    model, most = Downey(parallelism=1, sigma=sigma), 64
    curve = [model.speedup(n, most) for n in range(1, 64 * 4)]
    assert max(b - a for a, b in pairwise(curve)) <= 1.0 + 1e-9
    assert curve[-1] == most


def test_parameters_out_of_range_are_named() -> None:
    for wrong in ({"serial": 1.5}, {"serial": -0.1}):
        with pytest.raises(ValidationError, match="serial"):
            Amdahl.model_validate(wrong)
    with pytest.raises(ValidationError, match="parallelism"):
        Downey(parallelism=0, sigma=1)
