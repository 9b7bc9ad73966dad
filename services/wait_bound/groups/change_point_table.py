"""Numbers of misses in a row that indicate a change, by the autocorrelation of the waits; made by Monte Carlo.

`python -m shadowtime.services.wait_bound.groups.change_point_table` recomputes and prints the table.
"""

import sys
from collections import Counter
from itertools import count
from statistics import NormalDist

from numpy.random import PCG64, Generator

THRESHOLDS = {
    0.0: 3,
    0.1: 4,
    0.2: 4,
    0.3: 5,
    0.4: 5,
    0.5: 6,
    0.6: 7,
    0.7: 8,
    0.8: 11,
    0.9: 17,
    0.95: 26,
}
"""Length of the rare run by lag-1 autocorrelation, as `rare_run` finds it, for bounds on the 0.95 quantile.

The entry at 0.3 is a close case: with some other seeds it is 4.
"""

QUANTILE = 0.95
RARE = 1.05 / 8000
"""Maximum number of rare runs per observation.

1/8000 is the rate of three misses in a row without correlation. The factor 1.05 allows for chance.
"""

OBSERVATIONS = 4_000_000
SEED = 7
_DRAWN_AT_ONCE = 100_000


def run_lengths(autocorrelation: float, observations: int) -> Counter[int]:
    """Return the number of runs above the 0.95 quantile in a Gaussian AR(1) series, by length.

    >>> runs = run_lengths(0.0, 100_000)
    >>> 0.045 < sum(length * number for length, number in runs.items()) / 100_000 < 0.055
    True
    """
    chance = Generator(PCG64([SEED, round(100 * autocorrelation)]))
    level = NormalDist().inv_cdf(QUANTILE)
    scale = (1.0 - autocorrelation**2) ** 0.5  # keeps the variance of the series at 1
    runs: Counter[int] = Counter()
    value = float(chance.standard_normal())
    length = 0
    for start in range(0, observations, _DRAWN_AT_ONCE):
        noise = scale * chance.standard_normal(min(_DRAWN_AT_ONCE, observations - start))
        for innovation in noise.tolist():
            value = autocorrelation * value + innovation
            if value > level:
                length += 1
            elif length:
                runs[length] += 1
                length = 0

    if length:
        runs[length] += 1
    return runs


def rare_run(runs: Counter[int], observations: int) -> int:
    """Return the least length that no more than `RARE` distinct runs per observation reach.

    >>> rare_run(Counter({1: 4000, 2: 200, 3: 10}), 80_000)
    3
    """
    reaching = runs.total()
    for length in count(1):
        if reaching <= RARE * observations:
            break
        reaching -= runs[length]
    return length


if __name__ == "__main__":
    for threshold in THRESHOLDS:
        sys.stdout.write(f"{threshold:4.2f}  {rare_run(run_lengths(threshold, OBSERVATIONS), OBSERVATIONS)}\n")
