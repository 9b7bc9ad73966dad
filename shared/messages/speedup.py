"""The run time of a moldable job on another number of processors than it requested."""

from typing import Annotated, Literal

from pydantic import Field

from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.messages.base import FrozenModel

EXACT = 1 << 20
"""The denominator to which ratios of real numbers, and of larger whole numbers, are rounded."""


class Amdahl(FrozenModel):
    """A share of the work is sequential, the rest perfectly parallel (Amdahl 1967)."""

    kind: Literal["amdahl"] = "amdahl"
    serial: Annotated[float, Field(ge=0, le=1)]

    def speedup(self, processors: int, requested: int) -> float:
        """Return the speed-up over one processor. It does not depend on the job's request.

        >>> Amdahl(serial=0.1).speedup(10, requested=10)
        5.2631578947368425
        """
        del requested
        return 1.0 / (self.serial + (1.0 - self.serial) / processors)


class Downey(FrozenModel):
    """A job whose average parallelism is `parallelism` times the processors it requests; `sigma` measures its variance.

    References
    ----------
    docs/algorithms.md#speed-up-of-moldable-jobs (Downey 1997b).
    """

    kind: Literal["downey"] = "downey"
    parallelism: Annotated[float, Field(gt=0, le=1e6)]
    sigma: Annotated[float, Field(ge=0, le=1e6)]

    def speedup(self, processors: int, requested: int) -> float:
        """Return the speed-up over one processor, at most `parallelism` times `requested`, or 1 if that is less.

        >>> [round(Downey(parallelism=2, sigma=0.5).speedup(n, requested=4), 3) for n in (1, 8, 12, 16)]
        [1.0, 6.564, 7.529, 8.0]
        >>> [round(Downey(parallelism=1, sigma=2).speedup(n, requested=8), 3) for n in (1, 8, 22, 23)]
        [1.0, 5.053, 8.0, 8.0]
        """
        n, most, sigma = processors, max(self.parallelism * requested, 1.0), self.sigma
        if sigma >= 1:
            return n * most * (sigma + 1) / (sigma * (n + most - 1) + most) if n < most + sigma * (most - 1) else most
        if n <= most:
            return most * n / (most + sigma * (n - 1) / 2)
        return most * n / (sigma * (most - 0.5) + n * (1 - sigma / 2)) if n < 2 * most - 1 else most


SpeedUp = Annotated[Amdahl | Downey, Field(discriminator="kind")]


def ratio(requested: int, processors: int, speedup: Amdahl | Downey | None) -> tuple[int, int]:
    """Return the factor and the divisor of run times on `processors` instead of `requested` processors.

    Without a model, efficiency is constant: the work, processors times seconds, does not change.

    >>> ratio(8, 4, None), ratio(4, 4, Amdahl(serial=0.5)), ratio(8, 4, Amdahl(serial=1))
    ((8, 4), (1, 1), (1048576, 1048576))
    """
    if processors == requested:
        return 1, 1
    if speedup is None and max(requested, processors) <= EXACT:
        return requested, processors
    times = requested / processors
    if speedup is not None:
        times = speedup.speedup(requested, requested) / speedup.speedup(processors, requested)
    return max(round(times * EXACT), 1), EXACT


def reshaped_time(run_time: int, by: tuple[int, int]) -> int:
    """Return a run time after a change of size, in whole seconds, rounded up; `by` is a `ratio`.

    >>> reshaped_time(4000, ratio(5, 3, None)), reshaped_time(1000, ratio(8, 16, None))
    (6667, 500)

    References
    ----------
    docs/algorithms.md#speed-up-of-moldable-jobs (Perković 2000, section 7).
    """
    return min(-(-run_time * by[0] // by[1]), MAX_DURATION)
