"""When a running job is expected to end, also once it has outlived its prediction."""

import numpy as np
import numpy.typing as npt

from shadowtime.shared.kernel import kernel

Column = npt.NDArray[np.int64]

CORRECTIONS: dict[str, tuple[int, ...]] = {
    "request": (),
    "incremental": (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000),
}
"""Seconds by which the first, second, … correction of an outlived prediction exceeds it, by the predictor's
`fallback`. Those of EASY++ are of Tsafrir 2007, section 5, each replacing the last (Gaussier 2015).
When they are used up, the job is assumed to run to its request."""


GRACE = 300
"""Seconds that a running job past its adjusted request is assumed to need still, each time anew.

So does Cobalt, the scheduler of Tang 2013 (docs/algorithms.md#expected-end).
"""


@kernel("int64[::1](int64, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def expected_ends(
    now: int,
    start_times: Column,
    predicted_times: Column,
    adjusted_times: Column,
    requested_times: Column,
    corrections: Column,
) -> Column:
    """Return the time at which each running job is expected to end, in seconds.

    A job is expected to run as predicted; if it has outlived that, as the corrections say; then to its adjusted
    request, and past that, for `GRACE` more seconds from now. It is never expected to run beyond its request, and once
    it has, for one more second (docs/algorithms.md#limits-of-a-prediction). O(jobs).

    >>> import numpy as np
    >>> none = np.array([], dtype=np.int64)
    >>> starts, adjusted, requested = np.array([0, 0, 0]), np.array([300, 300, 90]), np.array([300, 300, 800])
    >>> expected_ends(100, starts, np.array([150, 60, 90]), adjusted, requested, none).tolist()
    [150, 300, 400]
    """
    ends = np.empty_like(start_times)
    for job in range(len(start_times)):
        elapsed = now - start_times[job]
        run_time = predicted_times[job]
        for correction in corrections:
            if run_time > elapsed:
                break
            run_time = predicted_times[job] + correction
        if run_time <= elapsed:
            run_time = adjusted_times[job] if adjusted_times[job] > elapsed else elapsed + GRACE
        ends[job] = start_times[job] + max(min(run_time, requested_times[job]), elapsed + 1)
    return ends
