"""The workload model: sizes, run times and arrivals are those of the paper."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from shadowtime.replayer.synthetic.lublin import (
    RUN_TIME_GAMMAS,
    SHORT_SHARE_OF_NONE,
    SHORT_SHARE_SLOPE,
    bucket_weights,
    draw_arrivals,
    draw_run_times,
    draw_sizes,
)
from tests.unit.replayer.synthetic.sizes import is_power_of_two

DAY = 86_400


def chance() -> Generator:
    return Generator(PCG64([20031101]))


# Each tolerance is several standard errors of the sample


def test_shares_of_sizes() -> None:
    sizes = draw_sizes(chance(), 200_000, 128)
    assert np.mean(sizes == 1) == pytest.approx(0.244, abs=0.004)
    # Beside the share that is rounded to a power of two, some of the others fall on one.
    assert 0.82 < np.mean(is_power_of_two(sizes)) < 0.90
    parallel = np.log2(sizes[sizes > 1])
    assert np.mean(parallel <= 4.5) == pytest.approx(0.86, abs=0.02)


@pytest.mark.parametrize("processors", [1, 2, 3, 5, 8, 100, 128, 1000, 80_000])
def test_sizes_fit_every_machine(processors: int) -> None:
    sizes = draw_sizes(chance(), 20_000, processors)
    assert sizes.min() == 1
    assert processors / 2 < sizes.max() <= processors


@pytest.mark.parametrize("size", [1, 16, 128, 1000])
def test_mean_log_run_time_grows_with_size(size: int) -> None:
    log_run_times = np.log(draw_run_times(chance(), np.full(100_000, size)))
    short_share = max(0.0, SHORT_SHARE_SLOPE * size + SHORT_SHARE_OF_NONE)
    (short_shape, short_scale), (long_shape, long_scale) = RUN_TIME_GAMMAS
    expected = short_share * short_shape * short_scale + (1 - short_share) * long_shape * long_scale
    assert log_run_times.mean() == pytest.approx(expected, abs=0.04)
    assert log_run_times.max() <= 12


def test_arrivals_follow_the_daily_cycle() -> None:
    arrivals = draw_arrivals(chance(), 500_000, 2000.0 * DAY)
    share = np.bincount(arrivals % DAY // 1800, minlength=48) / len(arrivals)
    assert np.abs(48 * share - bucket_weights()).max() < 0.2
    assert share[24:32].sum() > 5 * share[6:14].sum()  # noon to four against three to seven


def test_arrivals_equal_paying_bucket_by_bucket() -> None:
    """The inverted sum equals the walk over half hours that the paper describes."""
    arrivals = draw_arrivals(chance(), 500, 20.0 * DAY)
    weights, rng = bucket_weights(), chance()
    points = np.cumsum(np.exp(rng.gamma(10.2303 * 1.0225, 0.4871, size=500)))  # none of these is redrawn
    points *= 20 * weights.sum() / points[-1]
    for arrival, paid in zip(arrivals, points, strict=True):
        bucket = 0
        while paid > weights[bucket % 48]:
            paid -= weights[bucket % 48]
            bucket += 1
        assert arrival == pytest.approx(1800 * (bucket + paid / weights[bucket % 48]), abs=0.51)
