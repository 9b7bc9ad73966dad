"""Which of n sorted values is a percentile."""

from functools import lru_cache


@lru_cache(maxsize=4096)
def positions(count: int, percentiles: tuple[int, ...], rank: str) -> tuple[int, ...]:
    """Return the positions, counted from 0, of rising percentiles among `count` sorted values.

    `nearest` is the nearest rank: at least that many per cent of the values are no larger. `cobalt` is the index
    that the Cobalt scheduler takes, one further where the share is a whole number of values
    (docs/algorithms.md#percentile-adjustment).

    >>> positions(10, (50, 85), "nearest"), positions(10, (50, 85), "cobalt")
    ((4, 8), (5, 8))
    """
    if rank == "cobalt":
        return tuple(min(each * count // 100, count - 1) for each in percentiles)
    return tuple(-(-each * count // 100) - 1 for each in percentiles)
