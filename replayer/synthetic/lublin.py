"""The workload model of Lublin and Feitelson: sizes, run times and arrivals of jobs.

The constants are those of the model variant without separate batch and interactive jobs.

References
----------
docs/algorithms.md#generated-traces (Lublin 2003).
"""

import math

import numpy as np
from numpy.random import Generator

from shadowtime.shared.kernels import Floats, Integers

SERIAL_SHARE = 0.244
POWER_OF_TWO_SHARE = 0.576
MIN_LOG_SIZE = 0.8
MIDDLE_BELOW_HIGHEST = 2.5
LOWER_STAGE_SHARE = 0.86

RUN_TIME_GAMMAS = ((4.2, 0.94), (312.0, 0.03))
SHORT_SHARE_SLOPE, SHORT_SHARE_OF_NONE = -0.0054, 0.78
MAX_LOG_RUN_TIME = 12.0

ARRIVAL_GAMMA = (10.2303 * 1.0225, 0.4871)
MAX_LOG_ARRIVAL = 13.0
DAILY_CYCLE_GAMMA = (8.1737, 3.9631)
BUCKETS, BUCKET_SECONDS = 48, 1800
DAY_STARTS_AT_BUCKET = 11


def draw_sizes(rng: Generator, count: int, processors: int) -> Integers:
    """Return job sizes in processors, shape (count,), for a machine of this size.

    A job is serial, or the logarithm of its size is two-stage uniform, mostly rounded to a power of two.

    Examples
    --------
    >>> from numpy.random import PCG64
    >>> draw_sizes(Generator(PCG64([1])), 8, 128)
    array([ 2,  5,  1,  3, 16,  4,  6, 16])
    """
    highest = math.log2(processors)
    middle = max(highest - MIDDLE_BELOW_HIGHEST, MIN_LOG_SIZE)
    highest = max(highest, middle)
    kind, stage, place = rng.random((3, count))
    lower = stage <= LOWER_STAGE_SHARE
    low, high = np.where(lower, MIN_LOG_SIZE, middle), np.where(lower, middle, highest)
    log_size = low + (high - low) * place
    rounded = np.minimum(np.floor(log_size + 0.5), processors.bit_length() - 1)
    log_size = np.where(kind <= SERIAL_SHARE + POWER_OF_TWO_SHARE, rounded, log_size)
    log_size[kind <= SERIAL_SHARE] = 0
    sizes: Integers = np.floor(np.exp2(log_size) + 0.5).astype(np.int64).clip(1, processors)
    return sizes


def draw_run_times(rng: Generator, sizes: Integers) -> Floats:
    """Return run times in seconds, at most exp(12), for jobs of the given sizes. Both have shape (n,).

    The logarithm of the run time has one of two gamma distributions, one for short and one for long jobs. A larger
    job is more likely to be long.

    Examples
    --------
    >>> from numpy.random import PCG64
    >>> draw_run_times(Generator(PCG64([1])), np.array([1, 128])).round().tolist()
    [72.0, 13967.0]
    """
    log_run_time = np.full(len(sizes), np.inf)
    short_share = (SHORT_SHARE_SLOPE * sizes + SHORT_SHARE_OF_NONE).clip(0, 1)
    while len(again := np.flatnonzero(log_run_time > MAX_LOG_RUN_TIME)):
        is_short = rng.random(len(again)) <= short_share[again]
        (short_shape, short_scale), (long_shape, long_scale) = RUN_TIME_GAMMAS
        drawn_short = rng.gamma(short_shape, short_scale, size=len(again))
        log_run_time[again] = np.where(is_short, drawn_short, rng.gamma(long_shape, long_scale, size=len(again)))

    run_times: Floats = np.exp(log_run_time)
    return run_times


def bucket_weights() -> Floats:
    """Return the relative arrival rate in each half hour from midnight on, shape (48,), with mean 1.

    Examples
    --------
    >>> weights = bucket_weights()
    >>> int(weights.argmax()), int(weights.argmin())
    (27, 10)
    """
    from scipy.special import gammainc  # here: the import is slow, and a replay of a log does not need it

    shape, scale = DAILY_CYCLE_GAMMA
    half_hours = np.arange(DAY_STARTS_AT_BUCKET, DAY_STARTS_AT_BUCKET + BUCKETS)
    edges = np.append(half_hours - 0.5, half_hours[-1] + 0.5)
    weights: Floats = np.empty(BUCKETS)
    weights[(half_hours - 1) % BUCKETS] = np.diff(gammainc(shape, edges / scale))
    weights /= weights.mean()
    return weights


def draw_arrivals(rng: Generator, count: int, span: float) -> Integers:
    """Return `count` arrival times in whole seconds from midnight on, in order. The last one is `span`, rounded.

    Inter-arrival times are drawn in units called points. A half hour has as many points as its weight. So busy half
    hours get more arrivals. Points are scaled instead of seconds, which keeps the daily cycle at any load.

    Examples
    --------
    >>> from numpy.random import PCG64
    >>> draw_arrivals(Generator(PCG64([1])), 4, 86_400.0)
    array([36044, 46757, 79388, 86400])
    """
    shape, scale = ARRIVAL_GAMMA
    log_points = np.full(count, np.inf)
    while len(again := np.flatnonzero(log_points > MAX_LOG_ARRIVAL)):
        log_points[again] = rng.gamma(shape, scale, size=len(again))
    points = np.cumsum(np.exp(log_points))

    paid = np.append(0.0, np.cumsum(bucket_weights()))  # cumulative points of a day at each half hour
    seconds = np.arange(BUCKETS + 1) * float(BUCKET_SECONDS)
    day, rest = divmod(span, seconds[-1])
    points *= (day * paid[-1] + np.interp(rest, seconds, paid)) / points[-1]
    days, rests = np.divmod(points, paid[-1])
    arrivals: Floats = days * seconds[-1] + np.interp(rests, paid, seconds)
    return np.rint(arrivals).astype(np.int64)
