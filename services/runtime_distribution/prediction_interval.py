"""The estimate that like values give, by their mean or a regression, and the interval in which the next one lies."""

import math

import numpy as np

from shadowtime.shared.arrays import Floats
from shadowtime.shared.kernel import kernel

MIN_DEVIATION = 1.0
"""Seconds; no smaller standard deviation is believed, so that two equal run times do not claim to know it all."""

MIN_SPREAD = 1e-13
"""Variance of x over its mean square; what is less is an error of rounding."""


def t_quantiles(confidence: float, degrees: int) -> Floats:
    """Return how many standard errors an interval of this confidence reaches to either side, by degrees of freedom.

    Shape (degrees + 1,); with none there is no interval, so the first is infinite.

    >>> t_quantiles(0.9, 3).round(3).tolist()
    [inf, 6.314, 2.92, 2.353]
    """
    from scipy.special import stdtrit  # here, for it takes a moment, which a run without templates need not

    return np.concatenate(([math.inf], stdtrit(np.arange(1, degrees + 1), (1 + confidence) / 2)))


@kernel
def estimate(
    fitted: bool, n: int, y: float, yy: float, x: float, xx: float, xy: float, at: float, scale: float
) -> tuple[float, float]:
    """Return the estimate of the next value, and the standard error of that value about it; both times `scale`.

    Parameters
    ----------
    fitted
        Whether the estimate is that of the regression line of y on x, with n - 2 degrees of freedom; else it is the
        mean of y, with n - 1.
    n, y, yy, x, xx, xy
        Number of values, and the sums of y, y², x, x² and xy.
    at
        Where x is asked about.
    scale
        What one unit of y is worth, in seconds; the error is that of a deviation of at least `MIN_DEVIATION`.

    Returns
    -------
    tuple
        Two numbers in seconds. The error is infinite where there are too few values, or no two different x.

    Examples
    --------
    >>> mean, error = estimate(False, 4, 460.0, 53400.0, 0.0, 0.0, 0.0, 0.0, 1.0)  # 100, 110, 120, 130
    >>> mean, round(float(error * t_quantiles(0.9, 3)[3]), 3)
    (115.0, 33.968)

    References
    ----------
    docs/algorithms.md#templates (Draper 1998, section 1.4, for the interval of a new observation).
    """
    if n < 2:
        return 0.0, math.inf
    mean = y / n
    squares = max(yy - y * mean, 0.0)
    if not fitted:
        deviation = math.sqrt(squares / (n - 1)) * scale
        return mean * scale, max(deviation, MIN_DEVIATION) * math.sqrt(1.0 + 1.0 / n)
    spread = n * xx - x * x
    if n < 3 or spread <= MIN_SPREAD * n * xx:
        return 0.0, math.inf
    slope = (n * xy - x * y) / spread
    off = at - x / n
    deviation = math.sqrt(max(squares - slope * slope * spread / n, 0.0) / (n - 2)) * scale
    error = max(deviation, MIN_DEVIATION) * math.sqrt(1.0 + 1.0 / n + off * off * n / spread)
    return (mean + slope * off) * scale, error
